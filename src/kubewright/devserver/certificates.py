"""What the server shows its clients: a certificate for the names they know it by."""

import ssl

from kubewright.certificates import Authority, KeyPair, load_pair

_HOSTS = (
    *("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"),
    *("127.0.0.1", "::1", "10.0.0.1"),
)


def server_context(authority: Authority, host: str) -> ssl.SSLContext:
    """Make the TLS settings of the server: client certificates are welcome, not needed."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_verify_locations(cadata=authority.pair.certificate.decode())
    context.set_alpn_protocols(["http/1.1"])
    # Go's and Python's clients keep connections and resume no sessions; tickets were a third of each handshake.
    context.num_tickets = 0
    pair = authority.serving("kube-apiserver", (*_HOSTS, host))
    # With the chain at hand: OpenSSL would look for it among the authorities at each handshake, a tenth of its time.
    load_pair(context, KeyPair(pair.certificate + b"\n" + authority.pair.certificate, pair.key))
    return context
