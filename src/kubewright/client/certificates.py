"""The expiry date of a certificate, parsed from DER, so that clients need not import a cryptographic library."""

import ssl
from collections.abc import Iterator
from datetime import UTC, datetime

_BEGIN, _END = "-----BEGIN CERTIFICATE-----", "-----END CERTIFICATE-----"
_VERSION, _UTC_TIME, _GENERALIZED_TIME = 0xA0, 0x17, 0x18


def valid_until(pem: bytes) -> datetime:
    """Return when the first certificate expires; raise ValueError if there is no readable one."""
    try:
        text = pem.decode("ascii")
        block = text[text.index(_BEGIN) : text.index(_END) + len(_END)]
        (_, certificate), *_ = _elements(ssl.PEM_cert_to_DER_cert(block))
        (_, signed), *_ = _elements(certificate)
        # Version (optional), serial number, algorithm, issuer, validity.
        parts = [content for tag, content in _elements(signed) if tag != _VERSION]
        _, (tag, moment) = _elements(parts[3])
        return _time(tag, moment.decode("ascii"))
    except (ValueError, IndexError):
        raise ValueError("this is no readable certificate") from None


def _time(tag: int, text: str) -> datetime:
    if tag == _GENERALIZED_TIME:
        return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)
    if tag != _UTC_TIME:
        raise ValueError(tag)
    # Two digits of a year mean 1950 to 2049.
    century = "19" if int(text[:2]) >= 50 else "20"
    return datetime.strptime(century + text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _elements(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield tag and content of each element of a DER value."""
    at = 0
    while at < len(data):
        tag, length, at = data[at], data[at + 1], at + 2
        if length & 0x80:
            size = length & 0x7F
            length, at = int.from_bytes(data[at : at + size]), at + size
        if at + length > len(data):
            raise IndexError
        yield tag, data[at : at + length]
        at += length
