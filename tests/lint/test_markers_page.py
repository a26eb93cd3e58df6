"""Lint: the table of controller-gen markers is complete, and the keywords it names exist."""

import inspect
import re
from pathlib import Path

import kubewright as kw
from kubewright.api.resource import ObjectType
from kubewright.webhook.declaration import Terms

TEXT = (Path(__file__).parents[2] / "docs" / "markers.md").read_text()
MARKERS = [
    "groupName",
    "versionName",
    "kubebuilder:skip",
    "kubebuilder:object:generate",
    "kubebuilder:ac:generate",
    "kubebuilder:ac:output:package",
    "k8s:deepcopy-gen",
    "kubebuilder:rbac",
    "kubebuilder:webhook",
    "kubebuilder:webhookconfiguration",
    "kubebuilder:object:root",
    "kubebuilder:subresource:status",
    "kubebuilder:subresource:scale",
    "kubebuilder:printcolumn",
    "kubebuilder:resource:path",
    "shortName",
    "categories",
    "singular",
    "scope",
    "kubebuilder:storageversion",
    "kubebuilder:skipversion",
    "kubebuilder:unservedversion",
    "kubebuilder:deprecatedversion:warning",
    "kubebuilder:metadata:annotations",
    "kubebuilder:selectablefield",
    "kubebuilder:externalDocs",
    "k8s:deepcopy-gen:interfaces",
    "Maximum",
    "Minimum",
    "ExclusiveMaximum",
    "ExclusiveMinimum",
    "MultipleOf",
    "MinProperties",
    "MaxProperties",
    "MaxLength",
    "MinLength",
    "Pattern",
    "MaxItems",
    "MinItems",
    "UniqueItems",
    "Enum",
    "Format",
    "Type",
    "XPreserveUnknownFields",
    "XEmbeddedResource",
    "XIntOrString",
    "XValidation",
    "AtMostOneOf",
    "ExactlyOneOf",
    "AtLeastOneOf",
    "k8s:enum",
    "validation:Required",
    "validation:Optional",
    "required",
    "optional",
    "k8s:required",
    "k8s:optional",
    "nullable",
    "kubebuilder:default",
    "default",
    "kubebuilder:example",
    "validation:EmbeddedResource",
    "validation:Schemaless",
    "k8s:immutable",
    "pruning:PreserveUnknownFields",
    "kubebuilder:title",
    "listType",
    "listMapKey",
    "mapType",
    "structType",
    "k8s:listType",
    "k8s:listMapKey",
    "groups",
    "resources",
    "resourceNames",
    "verbs",
    "urls",
    "namespace",
    "roleName",
    "mutating",
    "failurePolicy",
    "matchPolicy",
    "sideEffects",
    "timeoutSeconds",
    "versions",
    "name",
    "path",
    "url",
    "serviceName",
    "serviceNamespace",
    "servicePort",
    "webhookVersions",
    "admissionReviewVersions",
    "reinvocationPolicy",
    "patch",
    "metav1.Time",
    "metav1.MicroTime",
    "metav1.Duration",
    "metav1.ObjectMeta",
    "metav1.Fields",
    "resource.Quantity",
    "intstr.IntOrString",
    "runtime.RawExtension",
    "unstructured.Unstructured",
    "apiextensionsv1.JSON",
]
KEYWORD = re.compile(r"\b([a-z_0-9]+)=")


def test_no_marker_is_missing() -> None:
    documented = set(re.findall(r"`([^`]+)`", TEXT))
    assert [
        marker
        for marker in MARKERS
        if marker not in documented and f"validation:items:{marker}" not in documented
    ] == []


def test_every_keyword_in_the_table_exists() -> None:
    known = {
        *inspect.signature(kw.Field).parameters,
        *inspect.signature(kw.Rule).parameters,
        *inspect.signature(kw.Column).parameters,
        *inspect.signature(kw.Scale).parameters,
        *inspect.signature(kw.Controller).parameters,
        *inspect.signature(kw.needs).parameters,
        *inspect.signature(kw.admission.validating_webhook).parameters,
        *inspect.signature(kw.admission.mutating_webhook).parameters,
        *inspect.signature(ObjectType.__new__).parameters,
        *Terms.__annotations__,
    }
    code = [part for part in re.findall(r"`([^`]+)`", TEXT) if "=" in part]
    assert code
    assert [word for part in code for word in KEYWORD.findall(part) if word not in known] == []
