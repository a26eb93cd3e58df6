"""The kinds of authorization.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.builtin.meta_v1 import FieldSelectorRequirement, LabelSelectorRequirement
from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.resource import Object


class FieldSelectorAttributes(Model, builtin=True):
    raw_selector: str = ""
    requirements: list[FieldSelectorRequirement] = []


class LabelSelectorAttributes(Model, builtin=True):
    raw_selector: str = ""
    requirements: list[LabelSelectorRequirement] = []


class NonResourceAttributes(Model, builtin=True):
    path: str = ""
    verb: str = ""


class ResourceAttributes(Model, builtin=True):
    field_selector: FieldSelectorAttributes | None = None
    group: str = ""
    label_selector: LabelSelectorAttributes | None = None
    name: str = ""
    namespace: str = ""
    resource: str = ""
    subresource: str = ""
    verb: str = ""
    version: str = ""


class SubjectAccessReviewSpec(Model, builtin=True):
    extra: dict[str, list[str]] = {}
    groups: list[str] = []
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None
    uid: str = ""
    user: str = ""


class SubjectAccessReviewStatus(Model, builtin=True):
    allowed: bool
    denied: bool = False
    evaluation_error: str = ""
    reason: str = ""


class LocalSubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="localsubjectaccessreviews",
    status=False,
    builtin=True,
):
    spec: SubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = _field(default_factory=lambda: zero(SubjectAccessReviewStatus))


class NonResourceRule(Model, builtin=True, wire_names={"non_resource_urls": "nonResourceURLs"}):
    non_resource_urls: list[str] = []
    verbs: list[str]


class ResourceRule(Model, builtin=True):
    api_groups: list[str] = []
    resource_names: list[str] = []
    resources: list[str] = []
    verbs: list[str]


class SelfSubjectAccessReviewSpec(Model, builtin=True):
    non_resource_attributes: NonResourceAttributes | None = None
    resource_attributes: ResourceAttributes | None = None


class SelfSubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectaccessreviews",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: SelfSubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = _field(default_factory=lambda: zero(SubjectAccessReviewStatus))


class SelfSubjectRulesReviewSpec(Model, builtin=True):
    namespace: str = ""


class SubjectRulesReviewStatus(Model, builtin=True):
    evaluation_error: str = ""
    incomplete: bool
    non_resource_rules: list[NonResourceRule]
    resource_rules: list[ResourceRule]


class SelfSubjectRulesReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="selfsubjectrulesreviews",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: SelfSubjectRulesReviewSpec
    status: SubjectRulesReviewStatus = _field(default_factory=lambda: zero(SubjectRulesReviewStatus))


class SubjectAccessReview(
    Object,
    group="authorization.k8s.io",
    version="v1",
    plural="subjectaccessreviews",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: SubjectAccessReviewSpec
    status: SubjectAccessReviewStatus = _field(default_factory=lambda: zero(SubjectAccessReviewStatus))


__all__ = [
    "FieldSelectorAttributes",
    "LabelSelectorAttributes",
    "LocalSubjectAccessReview",
    "NonResourceAttributes",
    "NonResourceRule",
    "ResourceAttributes",
    "ResourceRule",
    "SelfSubjectAccessReview",
    "SelfSubjectAccessReviewSpec",
    "SelfSubjectRulesReview",
    "SelfSubjectRulesReviewSpec",
    "SubjectAccessReview",
    "SubjectAccessReviewSpec",
    "SubjectAccessReviewStatus",
    "SubjectRulesReviewStatus",
]
