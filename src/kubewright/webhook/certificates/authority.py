"""A certificate authority and its serving certificate, renewed so that every certificate that is served is trusted.

A new authority is published first and signs later; the old one is removed last:

    [old]  --renew-->  [old, new] served by old  --trust-->  [old, new] served by new  --follow-->  [new]
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding, load_pem_private_key

from kubewright.certificates import SKEW, Authority, KeyPair
from kubewright.webhook import Lifetimes


@dataclass(frozen=True, slots=True)
class CertificateBundle:
    """The certificates and keys that the replicas of an operator share, all in PEM.

    `authorities` are trusted, the newest last; `authority_key` belongs to the newest one.
    """

    authorities: tuple[bytes, ...]
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def ca_bundle(self) -> bytes:
        """Return the authorities for API servers to trust."""
        return b"".join(self.authorities)


def split_authorities(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a PEM text one by one."""
    return tuple(found.public_bytes(Encoding.PEM) for found in x509.load_pem_x509_certificates(pem))


def begin(hosts: Sequence[str], times: Lifetimes, now: datetime) -> CertificateBundle:
    """Create an authority and a first serving certificate."""
    authority, key = _authority(times, now)
    certificate, serving_key = _serving(authority, key, hosts, times, now)
    return CertificateBundle((authority,), key, certificate, serving_key)


def advance(
    bundle: CertificateBundle | None,
    hosts: Sequence[str],
    times: Lifetimes,
    now: datetime,
    shown: CertificateBundle | None = None,
) -> CertificateBundle:
    """Return the bundle that is due now: the same one, or one step further.

    `shown` is the bundle that this replica serves with. If the stored bundle was deleted or damaged, `shown` is renewed
    with a new authority as usual: other replicas serve with it too, and API servers trust it.
    """
    if bundle is None or not _usable(bundle, now):
        if shown is None or not _usable(shown, now):
            return begin(hosts, times, now)
        return _succeeded(shown, times, now)
    newest = _read(bundle.authorities[-1])
    if _left(newest, now) < times.authority / 3:
        return _succeeded(bundle, times, now)
    serving = _read(bundle.certificate)
    signed_by_newest = _signed(serving, newest)
    known = len(bundle.authorities) == 1 or now - _made(newest) >= times.trust
    stale = _left(serving, now) < times.serving / 3 or set(hosts) - _hosts(serving)
    if known and (stale or not signed_by_newest):
        certificate, key = _serving(bundle.authorities[-1], bundle.authority_key, hosts, times, now)
        return replace(bundle, certificate=certificate, key=key)
    if len(bundle.authorities) > 1 and signed_by_newest and now - _made(serving) >= times.follow:
        return replace(bundle, authorities=bundle.authorities[-1:])
    return bundle


def next_step(bundle: CertificateBundle, times: Lifetimes, now: datetime) -> timedelta:
    """Return how long the bundle may stay as it is."""
    newest, serving = _read(bundle.authorities[-1]), _read(bundle.certificate)
    moments = [
        newest.not_valid_after_utc - times.authority / 3,
        serving.not_valid_after_utc - times.serving / 3,
    ]
    if len(bundle.authorities) > 1:
        moved = _signed(serving, newest)
        moments.append(_made(serving) + times.follow if moved else _made(newest) + times.trust)
    return max(min(moments) - now, timedelta(0))


def expiry(certificate: bytes) -> datetime:
    """Return when a certificate expires."""
    return _read(certificate).not_valid_after_utc


def _succeeded(bundle: CertificateBundle, times: Lifetimes, now: datetime) -> CertificateBundle:
    """Add a new authority, which does not sign yet."""
    authority, key = _authority(times, now)
    return replace(bundle, authorities=(*bundle.authorities, authority), authority_key=key)


def _usable(bundle: CertificateBundle, now: datetime) -> bool:
    """Return True if API servers that trust the bundle accept the certificate now."""
    try:
        serving = _read(bundle.certificate)
        load_pem_private_key(bundle.key, None)
        Authority(KeyPair(bundle.authorities[-1], bundle.authority_key))
        signers = [found for found in map(_read, bundle.authorities) if _signed(serving, found)]
    except (ValueError, TypeError):
        return False
    living = [found for found in (serving, *signers) if _left(found, now) > timedelta(0)]
    return bool(signers) and len(living) == 1 + len(signers)


def _authority(times: Lifetimes, now: datetime) -> tuple[bytes, bytes]:
    # The name is unique: programs that look up issuers by name would confuse two authorities of the same name.
    made = Authority.create(f"webhooks-{secrets.token_hex(4)}", life=times.authority, now=now)
    return made.pair.certificate, made.pair.key


def _serving(
    authority: bytes, authority_key: bytes, hosts: Sequence[str], times: Lifetimes, now: datetime
) -> tuple[bytes, bytes]:
    # A certificate is not trusted after its authority expires, so it must not be valid for longer.
    life = min(times.serving, _left(_read(authority), now))
    made = Authority(KeyPair(authority, authority_key)).serving(hosts[0], hosts, life=life, now=now)
    return made.certificate, made.key


def _read(pem: bytes) -> x509.Certificate:
    return x509.load_pem_x509_certificate(pem)


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + SKEW


def _left(certificate: x509.Certificate, now: datetime) -> timedelta:
    return certificate.not_valid_after_utc - now


def _signed(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def _hosts(certificate: x509.Certificate) -> set[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = {str(address) for address in found.get_values_for_type(x509.IPAddress)}
    return addresses | set(found.get_values_for_type(x509.DNSName))


def utc_now() -> datetime:
    """Return the current time, for comparison with the dates of certificates."""
    return datetime.now(UTC)
