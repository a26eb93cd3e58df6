"""Which writes a webhook or policy matches: rules on resources, namespace and object selectors."""

from collections.abc import Sequence
from typing import NamedTuple

from kubewright.api import GroupVersionKind, LabelMatcher, label_selector
from kubewright.api.identity import GroupVersionResource
from kubewright.devserver.objects import JsonObject, items, labels_of
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ResourceRegistry
from kubewright.devserver.request.admission import AdmissionAttributes
from kubewright.devserver.strategy.access import Access

_CONFIGURATIONS = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
_REVIEWS = frozenset(
    {
        ("authentication.k8s.io", "selfsubjectreviews"),
        ("authentication.k8s.io", "tokenreviews"),
        ("authorization.k8s.io", "localsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectaccessreviews"),
        ("authorization.k8s.io", "selfsubjectrulesreviews"),
        ("authorization.k8s.io", "subjectaccessreviews"),
    }
)


class ResourceMatch(NamedTuple):
    """The resource and kind by which a write was recognized, perhaps in another version than its own."""

    resource: GroupVersionResource
    kind: GroupVersionKind


def is_configuration(attributes: AdmissionAttributes) -> bool:
    """Return True for writes of admission configurations: a webhook that rejected them could not be removed."""
    return attributes.kind.group == "admissionregistration.k8s.io" and attributes.kind.kind in _CONFIGURATIONS


def is_exempt(attributes: AdmissionAttributes) -> bool:
    """Return True for writes that webhooks and policies never see: admission configurations, token and access reviews."""
    group, _, plural = attributes.resource
    return (group, plural) in _REVIEWS or is_configuration(attributes)


def match_rules(
    rules: Sequence[JsonObject],
    attributes: AdmissionAttributes,
    registry: ResourceRegistry,
    *,
    equivalent: bool,
) -> ResourceMatch | None:
    """Find the first rule that covers a write, in its own version or an equivalent one."""
    if any(_covers(rule, attributes, attributes.resource) for rule in rules):
        return ResourceMatch(attributes.resource, attributes.kind)
    resource = registry.find(*attributes.resource)
    if not equivalent or resource is None:
        return None
    others = registry.equivalents(resource)
    for rule in rules:
        for other in others:
            if _covers(rule, attributes, other.gvr):
                part = other.subresources.get(attributes.subresource)
                return ResourceMatch(other.gvr, part.gvk if part is not None else other.gvk)
    return None


def _covers(rule: JsonObject, attributes: AdmissionAttributes, resource: GroupVersionResource) -> bool:
    return (
        _in_scope(rule.get("scope", "*"), attributes)
        and _one_of(attributes.operation, items(rule, "operations"))
        and _one_of(resource.group, items(rule, "apiGroups"))
        and _one_of(resource.version, items(rule, "apiVersions"))
        and any(_names(text, resource, attributes.subresource) for text in items(rule, "resources"))
        and (not rule.get("resourceNames") or attributes.name in rule["resourceNames"])
    )


def _in_scope(scope: str, attributes: AdmissionAttributes) -> bool:
    if scope == "*":
        return True
    group, _, plural = attributes.resource
    clusterwide = (group, plural) == ("", "namespaces") or not attributes.namespace
    return clusterwide == (scope == "Cluster")


def _one_of(value: str, allowed: Sequence[str]) -> bool:
    return value in allowed or "*" in allowed


def _names(text: str, resource: GroupVersionResource, subresource: str) -> bool:
    plural, _, part = text.partition("/")
    return plural in ("*", resource.resource) and part in ("*", subresource)


def parse_selector(wire: JsonObject | None) -> LabelMatcher:
    """Read the selector of a webhook or policy, which selects everything when it is absent."""
    return label_selector({} if wire is None else wire)


def in_selected_namespace(selector: LabelMatcher, attributes: AdmissionAttributes, api: Access) -> bool:
    """Return True if the namespace of a write is selected; cluster-wide objects always are."""
    is_namespace = attributes.resource.resource == "namespaces"
    if (not attributes.namespace and not is_namespace) or not selector:
        return True
    if is_namespace and not attributes.subresource and attributes.object is not None:
        return selector.matches(labels_of(attributes.object))
    namespace = api.find("", "namespaces", "", attributes.namespace)
    if namespace is None:
        raise StatusError.not_found("", "namespaces", attributes.namespace)
    return selector.matches(labels_of(namespace))


def is_selected_object(selector: LabelMatcher, attributes: AdmissionAttributes) -> bool:
    """Return True if the object of a write is selected as it will be, or as it was."""
    if not selector:
        return True
    found = (attributes.object, attributes.old_object)
    return any(obj is not None and selector.matches(labels_of(obj)) for obj in found)
