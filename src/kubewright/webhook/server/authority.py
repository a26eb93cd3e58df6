"""A certificate authority and what it signed, and how both are renewed so that nobody ever meets a stranger.

A new authority is made known first, signs later, and only then is the old one forgotten:

    [old]  --renew-->  [old, new] served by old  --trust-->  [old, new] served by new  --follow-->  [new]
"""

import ipaddress
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from kubewright.webhook import Lifetimes

# Certificates begin in the past, so that a machine whose clock is behind accepts them.
SKEW = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Bundle:
    """What the replicas of an operator share, all in PEM.

    `authorities` are trusted, the newest last; `authority_key` is the newest one's.
    """

    authorities: tuple[bytes, ...]
    authority_key: bytes
    certificate: bytes
    key: bytes

    @property
    def ca_bundle(self) -> bytes:
        """Return what API servers shall trust."""
        return b"".join(self.authorities)


def split_authorities(pem: bytes) -> tuple[bytes, ...]:
    """Return the certificates of a PEM text one by one."""
    return tuple(found.public_bytes(Encoding.PEM) for found in x509.load_pem_x509_certificates(pem))


def begin(hosts: Sequence[str], times: Lifetimes, now: datetime) -> Bundle:
    """Make an authority and a first certificate."""
    authority, key = _authority(times, now)
    certificate, serving_key = _serving(authority, key, hosts, times, now)
    return Bundle((authority,), key, certificate, serving_key)


def advance(bundle: Bundle | None, hosts: Sequence[str], times: Lifetimes, now: datetime) -> Bundle:
    """Return the bundle as it shall be now: the same one, or one step further."""
    if bundle is None or not _usable(bundle, now):
        return begin(hosts, times, now)
    newest = _read(bundle.authorities[-1])
    if _left(newest, now) < times.authority / 3:
        authority, key = _authority(times, now)
        return replace(bundle, authorities=(*bundle.authorities, authority), authority_key=key)
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


def next_step(bundle: Bundle, times: Lifetimes, now: datetime) -> timedelta:
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
    """Return when a certificate ends."""
    return _read(certificate).not_valid_after_utc


def _usable(bundle: Bundle, now: datetime) -> bool:
    """Say whether API servers that trust the bundle accept the certificate now."""
    try:
        serving = _read(bundle.certificate)
        load_pem_private_key(bundle.key, None)
        load_pem_private_key(bundle.authority_key, None)
        signers = [found for found in map(_read, bundle.authorities) if _signed(serving, found)]
    except (ValueError, TypeError):
        return False
    living = [found for found in (serving, *signers) if _left(found, now) > timedelta(0)]
    return bool(signers) and len(living) == 1 + len(signers)


def _authority(times: Lifetimes, now: datetime) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    # Two authorities of one name would be confused by those who look issuers up by name.
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"webhooks-{secrets.token_hex(4)}")])
    usage = x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=True,
        crl_sign=True,
        encipher_only=False,
        decipher_only=False,
    )
    builder = (
        _builder(name, name, key.public_key(), key.public_key(), now, times.authority)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
    )
    return builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM), _pem(key)


def _serving(
    authority: bytes, authority_key: bytes, hosts: Sequence[str], times: Lifetimes, now: datetime
) -> tuple[bytes, bytes]:
    issuer, signer = _read(authority), load_pem_private_key(authority_key, None)
    if not isinstance(signer, ec.EllipticCurvePrivateKey):
        raise ValueError("the authority's key is no elliptic curve key")
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, hosts[0][:64])])
    # A certificate that outlives its authority would end before its own date says so.
    life = min(times.serving, _left(issuer, now))
    builder = (
        _builder(name, issuer.subject, key.public_key(), signer.public_key(), now, life)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_general_name(host) for host in hosts]), critical=False)
    )
    return builder.sign(signer, hashes.SHA256()).public_bytes(Encoding.PEM), _pem(key)


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    signer: ec.EllipticCurvePublicKey,
    now: datetime,
    life: timedelta,
) -> x509.CertificateBuilder:
    authority_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(signer)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - SKEW)
        .not_valid_after(now + life)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(authority_id, critical=False)
    )


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


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def utc_now() -> datetime:
    """Return the time that certificates are measured by."""
    return datetime.now(UTC)
