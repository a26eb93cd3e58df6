"""The expiration of a certificate, compared with a cryptographic library."""

import ssl
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.client.certificates import valid_until

KEY = ec.generate_private_key(ec.SECP256R1())


def certificate(until: datetime, name: str = "other") -> bytes:
    who = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    made = (
        x509.CertificateBuilder()
        .subject_name(who)
        .issuer_name(who)
        .public_key(KEY.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(until - timedelta(days=1))
        .not_valid_after(until)
        .sign(KEY, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


@settings(max_examples=30, deadline=None)
@given(
    st.integers(-600_000_000, 4_700_000_000),
    st.text("abcdefgh", min_size=1, max_size=64),
)
def test_the_expiry_of_a_certificate_equals_that_of_cryptography(seconds: int, name: str) -> None:
    until = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
    assert valid_until(certificate(until, name)) == until


def test_the_first_certificate_of_a_chain_counts_whatever_precedes_it() -> None:
    first, second = datetime(2030, 1, 1, tzinfo=UTC), datetime(2040, 1, 1, tzinfo=UTC)
    assert valid_until(b"subject=CN = x\n" + certificate(first) + certificate(second)) == first


@given(st.binary(max_size=200))
def test_invalid_certificates_raise_value_error(data: bytes) -> None:
    with pytest.raises(ValueError, match="no readable certificate"):
        valid_until(data)


@settings(max_examples=50)
@given(st.integers(0, 400), st.integers(0, 255))
def test_a_damaged_certificate_is_read_or_refused_but_never_worse(at: int, value: int) -> None:
    der = bytearray(
        x509.load_pem_x509_certificate(certificate(datetime(2030, 1, 1, tzinfo=UTC))).public_bytes(
            serialization.Encoding.DER
        )
    )
    der[at % len(der)] = value
    with suppress(ValueError):
        valid_until(ssl.DER_cert_to_PEM_cert(bytes(der)).encode())
