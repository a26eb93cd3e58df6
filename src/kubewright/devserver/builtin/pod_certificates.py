"""PodCertificateRequests, which kubelets send for Pods, and ClusterTrustBundles, which signers publish."""

import base64
import binascii
import re
from collections.abc import Iterator
from typing import Any

from cryptography import x509

from kubewright.api import FieldError, names, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.printing import NAME, NONE, cell, printed
from kubewright.devserver.builtin.rules import changes, defaults, immutable, rules
from kubewright.devserver.builtin.writes import text_at
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Strategy

GROUP = "certificates.k8s.io"
_BLOCK = re.compile(r"-----BEGIN ([^\n-]+)-----\n(.*?)-----END \1-----", re.DOTALL)
_MAX_BUNDLE = 1024 * 1024
_BUNDLE = "spec.trustBundle"
_MAX_UID = 128
_HOUR, _DAY = 3600, 24 * 3600
_STATES = ("Issued", "Denied", "Failed")
_GO_FIELDS = {
    f"{name[0].upper()}{name[1:]}".replace("Pkix", "PKIX"): name
    for name in (
        "signerName",
        "podName",
        "podUID",
        "serviceAccountName",
        "serviceAccountUID",
        "nodeName",
        "nodeUID",
        "maxExpirationSeconds",
        "pkixPublicKey",
        "proofOfPossession",
        "stubPKCS10Request",
        "unverifiedUserAnnotations",
    )
}
"""The fields of a request, by their names in Go."""


def check_signer_name(path: str, name: str | None) -> Iterator[FieldError]:
    """Check the name of a signer: a domain and a path, such as example.com/signer."""
    if not name:
        yield problems.required(path)
        return
    domain, *rest = name.split("/")
    if len(rest) != 1:
        text = "must be a fully qualified domain and path of the form 'example.com/signer-name'"
        yield problems.invalid(path, name, text)
        return
    if len(domain.encode()) > 253:
        yield problems.too_long(path, 253)
    labels = domain.split(".")
    yield from _labels(path, domain, labels, names.dns1123_label)
    if len(labels) < 2:
        text = "should be a domain with at least two segments separated by dots"
        yield problems.invalid(path, domain, text)
    yield from _labels(path, rest[0], rest[0].split("."), names.dns1123_subdomain)
    if len(name.encode()) > 571:
        yield problems.too_long(path, 571)


def _labels(path: str, shown: str, labels: list[str], syntax: Any) -> Iterator[FieldError]:
    """Report the first label with errors."""
    for label in labels:
        if errors := syntax(label):
            for text in errors:
                yield problems.invalid(path, shown, f"validating label {problems.quoted(label)}: {text}")
            return


# Trust bundles


def trust_bundle_name(name: str, signer: str) -> list[str]:
    """Return why a bundle of a signer, which may be empty, cannot have a name."""
    prefix = f"{signer.replace('/', ':')}:"
    if not signer and ":" in name:
        return ['ClusterTrustBundle without signer name must not have ":" in its name']
    if signer and not name.startswith(prefix):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}"]
    return names.dns1123_subdomain(name.removeprefix(prefix) if signer else name)


def _bundle_name(bundle: JsonObject) -> list[FieldError]:
    """Check that a bundle is named after its signer; the check of all metadata reports a missing name."""
    signer: str = section(bundle, "spec").get("signerName", "")
    errors: list[FieldError] = []
    if base := bundle["metadata"].get("generateName"):
        found = names.generated(lambda name: trust_bundle_name(name, signer), base)
        errors += check.named("metadata.generateName", base, found)
    if name := bundle["metadata"].get("name"):
        errors += check.named("metadata.name", name, trust_bundle_name(name, signer))
    return errors


def _check_bundle(new: JsonObject, old: JsonObject | None = None) -> list[FieldError]:
    spec = section(new, "spec")
    errors = _bundle_name(new)
    if spec.get("signerName"):
        errors += check_signer_name("spec.signerName", spec["signerName"])
    bundle = spec.get("trustBundle", "")
    if old is None or bundle != section(old, "spec").get("trustBundle", ""):
        errors += _trust_anchors(bundle)
    return errors


def _trust_anchors(bundle: str) -> list[FieldError]:
    if len(bundle.encode()) > _MAX_BUNDLE:
        return [problems.too_long(_BUNDLE, _MAX_BUNDLE)]
    found: dict[bytes, list[int]] = {}
    reasons: list[str] = []
    for index, (kind, content) in enumerate(_BLOCK.findall(bundle)):
        data, reason = _trust_anchor(kind, content)
        if reason:
            reasons.append(f"entry {index} {reason}")
        found.setdefault(data, []).append(index)
    if not reasons and not found:
        reasons.append("at least one trust anchor must be provided")
    elif not reasons:
        repeated = [indices for indices in found.values() if len(indices) > 1]
        reasons += [f"duplicate trust anchor (indices [{' '.join(map(str, item))}])" for item in repeated]
    return [problems.invalid(_BUNDLE, "<value omitted>", text) for text in reasons]


def _trust_anchor(kind: str, content: str) -> tuple[bytes, str]:
    """Return the bytes of a PEM block, and why it is not the certificate of an authority."""
    if kind != "CERTIFICATE":
        return b"", f"has bad block type: {kind}"
    if ":" in content:
        return b"", "has PEM block headers"
    try:
        data = base64.b64decode(content)
        certificate = x509.load_der_x509_certificate(data)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
    except x509.ExtensionNotFound:
        return b"", "does not have the CA bit set"
    except (binascii.Error, ValueError):
        return b"", "does not parse as X.509"
    return data, "" if constraints.ca else "does not have the CA bit set"


# Requests


def _uid(path: str, value: str | None) -> Iterator[FieldError]:
    if not value:
        yield problems.invalid(path, "", "must not be empty")
    elif len(value.encode()) > _MAX_UID:
        yield problems.too_long(path, _MAX_UID)


def check_user_annotations(path: str, annotations: JsonObject | None) -> Iterator[FieldError]:
    """Check the keys of annotations for a signer, such as example.com/purpose."""
    for key in map(str.lower, annotations or ()):
        if not key:
            yield problems.required(path)
        elif errors := names.qualified_name(key):
            yield from check.named(path, key, errors)
        elif "/" not in key:
            yield problems.invalid(path, key, 'must be a domain-prefixed key (such as "acme.io/foo")')


def _named(path: str, value: str | None) -> list[FieldError]:
    return check.named(path, value or "", names.dns1123_subdomain(value or ""))


def _key_and_lifetime(path: str, spec: JsonObject) -> Iterator[FieldError]:
    seconds, host = spec.get("maxExpirationSeconds"), spec.get("signerName", "").partition("/")[0]
    if seconds is None:
        yield problems.required(f"{path}.maxExpirationSeconds", "must be set")
        return
    most = _DAY if host == "kubernetes.io" or host.endswith(".kubernetes.io") else 91 * _DAY
    if not _HOUR <= seconds <= most:
        text = f"must be in the range [{_HOUR}, {most}]"
        yield problems.invalid(f"{path}.maxExpirationSeconds", seconds, text)
    given = tuple(
        bool(spec.get(name)) for name in ("stubPKCS10Request", "pkixPublicKey", "proofOfPossession")
    )
    if given not in ((True, False, False), (False, True, True)):
        text = "exactly one of (stubPKCS10Request) or (pkixPublicKey, proofOfPossession) must be set"
        yield problems.invalid(path, problems.OMITTED, text)


_REQUEST = rules(
    ("spec.signerName", check_signer_name),
    ("spec.unverifiedUserAnnotations", check_user_annotations),
    ("spec.podName", _named),
    ("spec.podUID", _uid),
    ("spec.serviceAccountName", _named),
    ("spec.serviceAccountUID", _uid),
    ("spec.nodeName", _named),
    ("spec.nodeUID", _uid),
    ("spec", _key_and_lifetime),
)


def _same_request(new: JsonObject, old: JsonObject) -> list[FieldError]:
    after = section(new, "spec")
    if after == section(old, "spec"):
        return []
    shown = {go: after.get(name) for go, name in _GO_FIELDS.items()}
    return [check.invalid_struct("spec", shown, check.IMMUTABLE)]


def _check_request_status(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Check the one write of a signer: it issues, denies or fails the request."""
    after, before = section(new, "status"), section(old, "status")
    errors = [*_known_conditions(items(after, "conditions"))]
    errors += check.check_conditions(items(after, "conditions"), "status.conditions")
    if errors:
        return errors
    others = {name for name, value in after.items() if value} - {"conditions"}
    if _state(old) != "Pending":
        wrong, text = after != before, "immutable after PodCertificateRequest is issued, denied, or failed"
    elif _state(new) in ("Denied", "Failed"):
        wrong = bool(others)
        text = "non-condition status fields must be empty when denying or failing the PodCertificateRequest"
    elif _state(new) == "Pending":
        wrong = after != before
        text = 'status is immutable unless transitioning to "Issued", "Denied", or "Failed"'
    else:
        return []
    return [problems.invalid("status", problems.OMITTED, text)] if wrong else []


def _known_conditions(conditions: list[JsonObject]) -> Iterator[FieldError]:
    known = 0
    for index, condition in enumerate(conditions):
        # The real server makes a field of the index.
        path, kind = f"status.conditions.[{index}]", condition.get("type", "")
        if kind not in _STATES:
            yield problems.not_supported(f"{path}.type", kind, _STATES)
            continue
        known += 1
        if known > 1:
            text = 'There may be at most one condition with type "Issued", "Denied", or "Failed"'
            yield problems.invalid(f"{path}.type", kind, text)
        yield from check.one_of(f"{path}.status", condition.get("status", ""), ("True",))


def _state(request: JsonObject) -> str:
    for condition in items(section(request, "status"), "conditions"):
        if condition.get("type") in _STATES:
            return condition["type"]
    return "Pending"


def _annotations(request: JsonObject) -> str:
    found = section(section(request, "spec"), "unverifiedUserAnnotations")
    return ",".join(f"{key}={found[key]}" for key in sorted(found)) or NONE


STRATEGIES = {
    (GROUP, "ClusterTrustBundle"): Strategy(
        validate=_check_bundle,
        validate_update=changes(_check_bundle, immutable("spec.signerName", missing="")),
        # The name is checked together with the signer that it names.
        name_check=lambda name: [],
        allow_unconditional_update=False,
        selectable_fields={"spec.signerName": text_at("spec", "signerName")},
        **printed(NAME, cell("SignerName", "spec.signerName", NONE)),
    ),
    (GROUP, "PodCertificateRequest"): Strategy(
        default=defaults(("spec.maxExpirationSeconds", _DAY)),
        validate=_REQUEST.validate,
        validate_update=_same_request,
        validate_status_update=_check_request_status,
        allow_unconditional_update=False,
        selectable_fields={
            f"spec.{name}": text_at("spec", name) for name in ("signerName", "podName", "nodeName")
        },
        **printed(
            NAME,
            cell("PodName", "spec.podName"),
            cell("ServiceAccountName", "spec.serviceAccountName"),
            cell("NodeName", "spec.nodeName"),
            cell("SignerName", "spec.signerName"),
            cell("State", _state),
            cell("UnverifiedUserAnnotations", _annotations),
        ),
    ),
}
