from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from kubewright.webhook import Lifetimes
from kubewright.webhook.certificates.authority import (
    CertificateBundle,
    advance,
    begin,
    expiry,
    split_authorities,
)

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TIMES = Lifetimes()
HOSTS = ("svc.ns.svc", "127.0.0.1")
DAY = timedelta(days=1)


def step(bundle: CertificateBundle | None, now: datetime) -> CertificateBundle:
    return advance(bundle, HOSTS, TIMES, now)


def signer(bundle: CertificateBundle) -> int:
    """Return which of the trusted authorities signed the certificate."""
    certificate = x509.load_pem_x509_certificate(bundle.certificate)
    names = [x509.load_pem_x509_certificate(pem).subject for pem in bundle.authorities]
    return names.index(certificate.issuer)


def test_a_first_bundle_names_its_hosts_and_is_trusted_by_its_authority() -> None:
    bundle = step(None, NOW)
    certificate = x509.load_pem_x509_certificate(bundle.certificate)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["svc.ns.svc"]
    assert [str(address) for address in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    certificate.verify_directly_issued_by(x509.load_pem_x509_certificate(bundle.ca_bundle))


def test_a_valid_bundle_is_kept() -> None:
    bundle = step(None, NOW)
    assert step(bundle, NOW + DAY) is bundle


def test_the_certificate_is_renewed_by_the_same_authority_when_a_third_of_its_life_is_left() -> None:
    bundle = step(None, NOW)
    assert step(bundle, NOW + 59 * DAY) is bundle
    renewed = step(bundle, NOW + 61 * DAY)
    assert renewed.authorities == bundle.authorities
    assert expiry(renewed.certificate) == NOW + 151 * DAY


def test_the_authority_is_rotated_in_steps_so_that_every_certificate_is_trusted() -> None:
    times = Lifetimes(serving=TIMES.authority)
    late = NOW + times.authority * 0.7

    def then(bundle: CertificateBundle, after: timedelta) -> CertificateBundle:
        return advance(bundle, HOSTS, times, late + after)

    bundle = begin(HOSTS, times, NOW)
    both = then(bundle, timedelta(0))
    assert both.authorities[0] == bundle.authorities[0]
    assert (len(both.authorities), signer(both), both.certificate) == (2, 0, bundle.certificate)
    assert then(both, times.trust / 2) == both
    moved = then(both, times.trust)
    assert (moved.authorities, signer(moved)) == (both.authorities, 1)
    assert then(moved, times.trust + times.follow / 2) == moved
    alone = then(moved, times.trust + times.follow)
    assert (alone.authorities, signer(alone)) == (both.authorities[1:], 0)
    assert then(alone, DAY) == alone


def test_a_certificate_never_outlives_its_authority() -> None:
    times = Lifetimes(authority=30 * DAY, serving=90 * DAY)
    bundle = begin(HOSTS, times, NOW)
    assert expiry(bundle.certificate) == expiry(bundle.authorities[0])


def test_other_hosts_get_a_new_certificate_of_the_same_authority() -> None:
    bundle = step(None, NOW)
    moved = advance(bundle, ("other.ns.svc",), TIMES, NOW)
    assert moved.authorities == bundle.authorities
    assert moved.certificate != bundle.certificate


@pytest.mark.parametrize("field", ["authority_key", "certificate", "key"])
def test_a_damaged_bundle_is_replaced(field: str) -> None:
    bundle = step(None, NOW)
    parts = {name: getattr(bundle, name) for name in ("authorities", "authority_key", "certificate", "key")}
    assert step(CertificateBundle(**{**parts, field: b"junk"}), NOW).authorities != bundle.authorities


def test_an_authority_with_the_wrong_key_is_replaced() -> None:
    bundle = step(None, NOW)
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    assert step(replace(bundle, authority_key=pem), NOW).authorities != bundle.authorities


def test_an_expired_bundle_is_replaced() -> None:
    bundle = step(None, NOW)
    assert step(bundle, NOW + TIMES.serving).authorities != bundle.authorities


@pytest.mark.parametrize("damaged", [True, False])
def test_a_lost_authority_is_replaced_in_steps_from_the_served_one(damaged: bool) -> None:
    shown, later = step(None, NOW), NOW + DAY
    kept = replace(shown, authority_key=b"x") if damaged else None
    repaired = advance(kept, HOSTS, TIMES, later, shown)
    assert (repaired.certificate, repaired.authorities[:1]) == (shown.certificate, shown.authorities)
    assert (len(repaired.authorities), signer(repaired)) == (2, 0)
    assert signer(step(repaired, later + TIMES.trust)) == 1


def test_an_expired_authority_is_replaced_without_a_transition() -> None:
    shown = step(None, NOW)
    made = advance(None, HOSTS, TIMES, NOW + 100 * DAY, shown)
    assert not set(made.authorities) & set(shown.authorities)


def test_authorities_are_split_and_joined() -> None:
    one, two = step(None, NOW), step(None, NOW)
    assert split_authorities(one.ca_bundle + two.ca_bundle) == (*one.authorities, *two.authorities)
