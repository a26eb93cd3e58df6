"""The kinds of admissionregistration.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.conditions import Condition
from kubewright.api.model import Model
from kubewright.api.resource import Object


class ApplyConfiguration(Model, builtin=True):
    expression: str = ""


class AuditAnnotation(Model, builtin=True):
    key: str
    value_expression: str


class ExpressionWarning(Model, builtin=True):
    field_ref: str
    warning: str


class JSONPatch(Model, builtin=True):
    expression: str = ""


class MatchCondition(Model, builtin=True):
    expression: str
    name: str


class NamedRuleWithOperations(Model, builtin=True):
    api_groups: list[str] = []
    api_versions: list[str] = []
    operations: list[str] = []
    resource_names: list[str] = []
    resources: list[str] = []
    scope: str | None = None


class MatchResources(Model, builtin=True):
    exclude_resource_rules: list[NamedRuleWithOperations] = []
    match_policy: str | None = None
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    resource_rules: list[NamedRuleWithOperations] = []


class Mutation(Model, builtin=True):
    apply_configuration: ApplyConfiguration | None = None
    json_patch: JSONPatch | None = None
    patch_type: str


class ParamKind(Model, builtin=True):
    api_version: str = ""
    kind: str = ""


class Variable(Model, builtin=True):
    expression: str
    name: str


class MutatingAdmissionPolicySpec(Model, builtin=True, lists={"match_conditions": ("name",)}):
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = []
    match_constraints: MatchResources | None = None
    mutations: list[Mutation] = []
    param_kind: ParamKind | None = None
    reinvocation_policy: str = ""
    variables: list[Variable] = []


class MutatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingadmissionpolicies",
    scope="Cluster",
    categories=["api-extensions"],
    status=False,
    builtin=True,
):
    spec: MutatingAdmissionPolicySpec = _field(default_factory=MutatingAdmissionPolicySpec)


class ParamRef(Model, builtin=True):
    name: str = ""
    namespace: str = ""
    parameter_not_found_action: str | None = None
    selector: LabelSelector | None = None


class MutatingAdmissionPolicyBindingSpec(Model, builtin=True):
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str = ""


class MutatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingadmissionpolicybindings",
    scope="Cluster",
    categories=["api-extensions"],
    status=False,
    builtin=True,
):
    spec: MutatingAdmissionPolicyBindingSpec = _field(default_factory=MutatingAdmissionPolicyBindingSpec)


class RuleWithOperations(Model, builtin=True):
    api_groups: list[str] = []
    api_versions: list[str] = []
    operations: list[str] = []
    resources: list[str] = []
    scope: str | None = None


class ServiceReference(Model, builtin=True):
    name: str
    namespace: str
    path: str | None = None
    port: int | None = None


class WebhookClientConfig(Model, builtin=True):
    ca_bundle: bytes = b""
    service: ServiceReference | None = None
    url: str | None = None


class MutatingWebhook(Model, builtin=True, lists={"match_conditions": ("name",)}):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = []
    match_policy: str | None = None
    name: str
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    reinvocation_policy: str | None = None
    rules: list[RuleWithOperations] = []
    side_effects: str
    timeout_seconds: int | None = None


class MutatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="mutatingwebhookconfigurations",
    scope="Cluster",
    categories=["api-extensions"],
    status=False,
    builtin=True,
    lists={"webhooks": ("name",)},
):
    webhooks: list[MutatingWebhook] = []


class TypeChecking(Model, builtin=True):
    expression_warnings: list[ExpressionWarning] = []


class Validation(Model, builtin=True):
    expression: str
    message: str = ""
    message_expression: str = ""
    reason: str | None = None


class ValidatingAdmissionPolicySpec(
    Model, builtin=True, lists={"match_conditions": ("name",), "variables": ("name",)}
):
    audit_annotations: list[AuditAnnotation] = []
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = []
    match_constraints: MatchResources | None = None
    param_kind: ParamKind | None = None
    validations: list[Validation] = []
    variables: list[Variable] = []


class ValidatingAdmissionPolicyStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[Condition] = []
    observed_generation: int = 0
    type_checking: TypeChecking | None = None


class ValidatingAdmissionPolicy(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicies",
    scope="Cluster",
    categories=["api-extensions"],
    status=True,
    builtin=True,
):
    spec: ValidatingAdmissionPolicySpec = _field(default_factory=ValidatingAdmissionPolicySpec)
    status: ValidatingAdmissionPolicyStatus = _field(default_factory=ValidatingAdmissionPolicyStatus)


class ValidatingAdmissionPolicyBindingSpec(Model, builtin=True, lists={"validation_actions": ()}):
    match_resources: MatchResources | None = None
    param_ref: ParamRef | None = None
    policy_name: str
    validation_actions: list[str]


class ValidatingAdmissionPolicyBinding(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingadmissionpolicybindings",
    scope="Cluster",
    categories=["api-extensions"],
    status=False,
    builtin=True,
):
    spec: ValidatingAdmissionPolicyBindingSpec


class ValidatingWebhook(Model, builtin=True, lists={"match_conditions": ("name",)}):
    admission_review_versions: list[str]
    client_config: WebhookClientConfig
    failure_policy: str | None = None
    match_conditions: list[MatchCondition] = []
    match_policy: str | None = None
    name: str
    namespace_selector: LabelSelector | None = None
    object_selector: LabelSelector | None = None
    rules: list[RuleWithOperations] = []
    side_effects: str
    timeout_seconds: int | None = None


class ValidatingWebhookConfiguration(
    Object,
    group="admissionregistration.k8s.io",
    version="v1",
    plural="validatingwebhookconfigurations",
    scope="Cluster",
    categories=["api-extensions"],
    status=False,
    builtin=True,
    lists={"webhooks": ("name",)},
):
    webhooks: list[ValidatingWebhook] = []


__all__ = [
    "ApplyConfiguration",
    "AuditAnnotation",
    "ExpressionWarning",
    "JSONPatch",
    "MatchCondition",
    "MatchResources",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicyBindingSpec",
    "MutatingAdmissionPolicySpec",
    "MutatingWebhook",
    "MutatingWebhookConfiguration",
    "Mutation",
    "NamedRuleWithOperations",
    "ParamKind",
    "ParamRef",
    "RuleWithOperations",
    "ServiceReference",
    "TypeChecking",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "ValidatingAdmissionPolicyBindingSpec",
    "ValidatingAdmissionPolicySpec",
    "ValidatingAdmissionPolicyStatus",
    "ValidatingWebhook",
    "ValidatingWebhookConfiguration",
    "Validation",
    "Variable",
    "WebhookClientConfig",
]
