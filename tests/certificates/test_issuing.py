"""What an authority issues: certificates that TLS accepts for their hosts and users, and for nothing else."""

import ssl
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from kubewright.certificates import SKEW, Authority, FollowingContext, KeyPair, load_pair


def shake_hands(server: ssl.SSLContext, client: ssl.SSLContext, host: str) -> ssl.SSLObject:
    """Do a handshake in memory; give the server's end."""
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    there = server.wrap_bio(up, down, server_side=True)
    here = client.wrap_bio(down, up, server_hostname=host)
    for _ in range(5):
        for end in (here, there):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                pass
    assert here.version() in ("TLSv1.2", "TLSv1.3")
    return there


def trusting(authority: Authority) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=authority.pair.certificate.decode())


def showing(pair: KeyPair) -> FollowingContext:
    context = FollowingContext()
    context.load(pair.certificate, pair.key)
    return context


def test_a_serving_certificate_is_trusted_for_its_hosts_only() -> None:
    authority = Authority.create()
    server = showing(authority.serving("a" * 100, ["a.example", "127.0.0.1", "a.example"]))
    for host in ("a.example", "127.0.0.1"):
        shake_hands(server, trusting(authority), host)
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, trusting(authority), "b.example")
    with pytest.raises(ssl.SSLCertVerificationError):
        shake_hands(server, trusting(Authority.create()), "a.example")


def test_a_client_certificate_has_the_name_and_groups_of_its_user() -> None:
    authority = Authority.create()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.verify_mode = ssl.CERT_REQUIRED
    server.load_verify_locations(cadata=authority.pair.certificate.decode())
    load_pair(server, authority.serving("a", ["a.example"]))
    client = trusting(authority)
    load_pair(client, authority.client("alice", ["dev", "ops"]))
    subject = (shake_hands(server, client, "a.example").getpeercert() or {})["subject"]
    assert [item for (item,) in subject] == [  # type: ignore[misc]
        ("organizationName", "dev"),
        ("organizationName", "ops"),
        ("commonName", "alice"),
    ]


def test_a_user_name_that_is_too_long_is_not_truncated_to_another_user() -> None:
    with pytest.raises(ValueError, match="64"):
        Authority.create().client("a" * 65)


def test_validity_times_are_as_requested_and_tolerate_clock_skew() -> None:
    now = datetime(2030, 1, 1, tzinfo=UTC)
    authority = Authority.create("mine", life=timedelta(days=9), now=now)
    issued = authority.serving("a", ["a"], life=timedelta(days=2), now=now).certificate
    for pem, days in ((authority.pair.certificate, 9), (issued, 2)):
        found = x509.load_pem_x509_certificate(pem)
        assert found.not_valid_before_utc == now - SKEW
        assert found.not_valid_after_utc == now + timedelta(days=days)


def test_issued_certificates_cannot_sign() -> None:
    authority = Authority.create()
    for pair in (authority.serving("a", ["a"]), authority.client("a")):
        found = x509.load_pem_x509_certificate(pair.certificate)
        limits = found.extensions.get_extension_for_class(x509.BasicConstraints).value
        assert not limits.ca


def test_an_authority_is_the_same_after_it_was_reloaded() -> None:
    authority = Authority.create()
    again = Authority(KeyPair(authority.pair.certificate, authority.pair.key))
    shake_hands(showing(again.serving("a", ["a.example"])), trusting(authority), "a.example")


def test_a_key_of_another_kind_is_refused() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with pytest.raises(TypeError, match="elliptic curve"):
        Authority(KeyPair(Authority.create().pair.certificate, pem))


def test_a_modified_certificate_request_is_not_signed() -> None:
    key, other = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "alice")])
    builder = x509.CertificateSigningRequestBuilder().subject_name(name)
    good = builder.sign(key, hashes.SHA256())
    changed = good.public_bytes(Encoding.DER)
    forged = changed[:-1] + bytes([changed[-1] ^ 1])
    authority = Authority.create()
    signed = authority.sign(good.public_bytes(Encoding.PEM), ["client auth"], timedelta(hours=1))
    found = x509.load_pem_x509_certificate(signed)
    assert found.public_key() == key.public_key() != other.public_key()
    pem = x509.load_der_x509_csr(forged).public_bytes(Encoding.PEM)
    with pytest.raises(ValueError, match="not signed with its own key"):
        authority.sign(pem, ["client auth"], timedelta(hours=1))


def test_half_a_key_pair_is_refused_and_the_old_one_stays_in_use() -> None:
    authority = Authority.create()
    old, new = (authority.serving("a", ["a.example"]) for _ in range(2))
    context = showing(old)
    with pytest.raises(ValueError, match=r"KEY_VALUES_MISMATCH|key values mismatch"):
        context.load(new.certificate, old.key)
    shake_hands(context, trusting(authority), "a.example")
