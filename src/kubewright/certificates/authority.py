"""A certificate authority: issues certificates for servers and users, and signs certificate requests."""

import ipaddress
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SKEW = timedelta(hours=1)
"""Certificates are valid from before now, so that a machine whose clock is behind accepts them."""
LIFE = timedelta(days=3650)
_BACKDATED = timedelta(minutes=5)
"""How long before now signed requests become valid, as with kube-controller-manager's signer."""

_EXTENDED = {"client auth": ExtendedKeyUsageOID.CLIENT_AUTH, "server auth": ExtendedKeyUsageOID.SERVER_AUTH}
_LONGEST_NAME = 64
_PublicKey = ec.EllipticCurvePublicKey | rsa.RSAPublicKey | ed25519.Ed25519PublicKey


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both in PEM."""

    certificate: bytes
    key: bytes


def requested_organizations(request: bytes) -> list[str]:
    """Return the organizations in the subject of a certificate signing request (PEM); raise ValueError if it is not one."""
    subject = x509.load_pem_x509_csr(request).subject
    return [str(found.value) for found in subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]


def private_key() -> bytes:
    """Return a new private key (P-256) in PEM."""
    return _pem(ec.generate_private_key(ec.SECP256R1()))


class Authority:
    """Issue certificates; `pair` is its own."""

    def __init__(self, pair: KeyPair) -> None:
        key = load_pem_private_key(pair.key, None)
        if not isinstance(key, ec.EllipticCurvePrivateKey):
            raise TypeError("the authority's key is not an elliptic curve key")
        self.pair = pair
        self._key = key
        self._certificate = x509.load_pem_x509_certificate(pair.certificate)

    @classmethod
    def create(
        cls, name: str = "kubewright", *, life: timedelta = LIFE, now: datetime | None = None
    ) -> "Authority":
        """Create an authority that may sign for servers and users, but not for further authorities."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject, begin = _subject(name), (now or datetime.now(UTC)) - SKEW
        builder = (
            _builder(subject, key.public_key(), subject, key.public_key(), begin, SKEW + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(digital_signature=True, signs=True), critical=True)
        )
        certificate = builder.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
        return cls(KeyPair(certificate, _pem(key)))

    def serving(
        self, name: str, hosts: Sequence[str], *, life: timedelta = LIFE, now: datetime | None = None
    ) -> KeyPair:
        """Issue a server's certificate for host names and IP addresses."""
        names = x509.SubjectAlternativeName([_general_name(host) for host in dict.fromkeys(hosts)])
        # Clients check the hosts; a name may be longer than the common name allows.
        return self._issue(_subject(name[:_LONGEST_NAME]), ExtendedKeyUsageOID.SERVER_AUTH, names, life, now)

    def client(self, user: str, groups: Sequence[str] = ()) -> KeyPair:
        """Issue a client certificate that Kubernetes reads as this user in these groups."""
        return self._issue(_subject(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, None, LIFE, None)

    def sign(self, request: bytes, usages: Sequence[str], life: timedelta) -> bytes:
        """Sign a request (PEM) for the given usages and duration; raise ValueError if it is not a valid request."""
        asked = x509.load_pem_x509_csr(request)
        if not asked.is_signature_valid:
            raise ValueError("the request is not signed with its own key")
        key = asked.public_key()
        if not isinstance(key, _PublicKey):
            raise ValueError("the key is of a kind that cannot be signed")
        builder = self._leaf(asked.subject, key, datetime.now(UTC) - _BACKDATED, _BACKDATED + life)
        signature, encipherment = "digital signature" in usages, "key encipherment" in usages
        if signature or encipherment:
            usage = _key_usage(digital_signature=signature, key_encipherment=encipherment)
            builder = builder.add_extension(usage, critical=True)
        extended = [number for usage, number in _EXTENDED.items() if usage in usages]
        if extended:
            builder = builder.add_extension(x509.ExtendedKeyUsage(extended), critical=False)
        for extension in asked.extensions:
            if isinstance(extension.value, x509.SubjectAlternativeName):
                builder = builder.add_extension(extension.value, critical=False)
        return builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM)

    def _issue(
        self,
        subject: x509.Name,
        usage: x509.ObjectIdentifier,
        names: x509.SubjectAlternativeName | None,
        life: timedelta,
        now: datetime | None,
    ) -> KeyPair:
        key = ec.generate_private_key(ec.SECP256R1())
        begin = (now or datetime.now(UTC)) - SKEW
        builder = (
            self._leaf(subject, key.public_key(), begin, SKEW + life)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
        )
        if names is not None:
            builder = builder.add_extension(names, critical=False)
        return KeyPair(builder.sign(self._key, hashes.SHA256()).public_bytes(Encoding.PEM), _pem(key))

    def _leaf(
        self, subject: x509.Name, key: _PublicKey, begin: datetime, span: timedelta
    ) -> x509.CertificateBuilder:
        issuer = self._certificate.subject
        return _builder(subject, key, issuer, self._key.public_key(), begin, span).add_extension(
            x509.BasicConstraints(ca=False, path_length=None), critical=True
        )


def _builder(
    subject: x509.Name,
    key: _PublicKey,
    issuer: x509.Name,
    signer: ec.EllipticCurvePublicKey,
    begin: datetime,
    span: timedelta,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin)
        .not_valid_after(begin + span)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )


def _subject(name: str, organizations: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in organizations]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _key_usage(
    *, digital_signature: bool, key_encipherment: bool = False, signs: bool = False
) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        key_encipherment=key_encipherment,
        key_cert_sign=signs,
        crl_sign=signs,
        content_commitment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(host))
    except ValueError:
        return x509.DNSName(host)


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    # SEC 1 and not PKCS 8, from which kube-apiserver does not derive the key that verifies tokens.
    return key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
