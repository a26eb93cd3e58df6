"""Admission policies with their bindings from the store, compiled when they change."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kubewright.api import KubewrightError, LabelMatcher, label_selector
from kubewright.devserver.admission.matching import (
    ResourceMatch,
    in_selected_namespace,
    is_selected_object,
    match_rules,
    parse_selector,
)
from kubewright.devserver.admission.versions import VersionConverter, VersionedAttributes
from kubewright.devserver.admission.webhooks import GROUP
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import CONDITIONS_BUDGET, CostBudget, PolicyCompiler, declared_variables
from kubewright.devserver.objects import JsonObject, items, meta, section, split_api_version
from kubewright.devserver.registry import ServedResource, converting
from kubewright.devserver.request.admission import AdmissionAttributes
from kubewright.devserver.storage import Derived
from kubewright.devserver.strategy.access import Access
from kubewright.schema import cel


class PolicyFailure(KubewrightError):
    """A policy that cannot be evaluated: a missing parameter, an unknown kind."""


@dataclass(frozen=True, slots=True)
class Constraints:
    """Which writes a policy or binding matches."""

    declared: JsonObject
    namespaces: LabelMatcher
    objects: LabelMatcher

    @classmethod
    def of(cls, declared: JsonObject) -> "Constraints":
        """Read constraints; none at all match everything."""
        return cls(
            declared,
            parse_selector(declared.get("namespaceSelector")),
            parse_selector(declared.get("objectSelector")),
        )

    def match(self, attributes: AdmissionAttributes, core: Core, api: Access) -> ResourceMatch | None:
        """Find how a write is matched."""
        if not is_selected_object(self.objects, attributes):
            return None
        if not in_selected_namespace(self.namespaces, attributes, api):
            return None
        equivalent = self.declared.get("matchPolicy") != "Exact"
        excluded, included = (
            items(self.declared, "excludeResourceRules"),
            items(self.declared, "resourceRules"),
        )
        if excluded and match_rules(excluded, attributes, core.registry, equivalent=equivalent):
            return None
        if not included:
            return ResourceMatch(attributes.resource, attributes.kind)
        return match_rules(included, attributes, core.registry, equivalent=equivalent)


@dataclass(frozen=True, slots=True)
class Validation:
    """One rule of a policy."""

    declared: JsonObject
    program: cel.Program
    message: cel.Program | None


@dataclass(frozen=True, slots=True)
class Mutation:
    """One change that a policy makes: an apply configuration or a JSON patch."""

    program: cel.Program
    patches: bool


@dataclass(frozen=True, slots=True)
class Binding:
    """Where a policy applies, and with which parameters."""

    name: str
    spec: JsonObject
    constraints: Constraints


@dataclass(frozen=True, slots=True)
class Policy:
    """A policy, compiled."""

    name: str
    spec: JsonObject
    constraints: Constraints
    conditions: Sequence[cel.Program]
    variables: dict[str, cel.Program]
    validations: Sequence[Validation]
    annotations: Sequence[tuple[str, cel.Program]]
    mutations: Sequence[Mutation]
    bindings: Sequence[Binding]

    @property
    def fails_open(self) -> bool:
        """Return True if writes pass when the policy cannot be evaluated."""
        return self.spec.get("failurePolicy") == "Ignore"

    @property
    def reinvoke(self) -> bool:
        """Return True if the policy is reinvoked after later plugins changed the object."""
        return self.spec.get("reinvocationPolicy") == "IfNeeded"


class PolicySet:
    """All validating or all mutating policies, in the order of their names."""

    def __init__(self, plural: str, core: Core, api: Access) -> None:
        self._plural = plural
        self._core = core
        self._api = api
        self._bindings = f"{plural.removesuffix('ies')}ybindings"
        names = [f"{plural}.{GROUP}", f"{self._bindings}.{GROUP}"]
        self._policies = Derived(core.store, names, self._read)

    def all(self) -> Sequence[Policy]:
        """Return all policies with their bindings."""
        return self._policies.get()

    def _read(self) -> Sequence[Policy]:
        bound = [_binding(item) for item in self._api.list(GROUP, self._bindings)]
        found = sorted(self._api.list(GROUP, self._plural), key=lambda item: meta(item)["name"])
        return [
            _policy(item, [one for one in bound if one.spec.get("policyName") == meta(item)["name"]])
            for item in found
        ]

    def match(self, constraints: Constraints, attributes: AdmissionAttributes) -> ResourceMatch | None:
        """Find how the constraints of a policy or binding match a write."""
        return constraints.match(attributes, self._core, self._api)

    def check_params(self, policy: Policy) -> None:
        """Raise PolicyFailure if a bound policy's `paramKind` is unknown."""
        kind = policy.spec.get("paramKind")
        if kind is not None and policy.bindings:
            self.param_resource(kind)

    @staticmethod
    def namespace(attributes: AdmissionAttributes, versions: VersionConverter) -> JsonObject | None:
        """Find the namespace that expressions see; a Namespace itself is in none."""
        return None if attributes.kind == ("", "v1", "Namespace") else versions.namespace(attributes)

    async def params(
        self, policy: Policy, binding: Binding, attributes: AdmissionAttributes
    ) -> list[JsonObject | None]:
        """Find the parameters of a policy for one binding."""
        kind, reference = policy.spec.get("paramKind"), binding.spec.get("paramRef")
        if kind is None or reference is None:
            return [None]
        resource = self.param_resource(kind)
        found: list[JsonObject | None] = []
        for record in resource.collection.records(self._prefix(resource, reference, attributes)):
            if _is_meant(record.key.rpartition("/")[2], record.labels, reference):
                await resource.prepare([record])
                found.append(await converting(lambda record=record: resource.read(record)))
        if not found and reference.get("parameterNotFoundAction") == "Deny":
            raise PolicyFailure(
                "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction"
            )
        return found

    def param_resource(self, kind: JsonObject) -> ServedResource:
        """Find the resource that parameters are of."""
        group, version = split_api_version(kind.get("apiVersion", ""))
        for resource in self._core.registry:
            if (resource.group, resource.version, resource.kind) == (group, version, kind.get("kind")):
                return resource
        shown = f"{group}/{version}, Kind={kind.get('kind', '')}"
        raise PolicyFailure(
            f"failed to configure policy: failed to find resource referenced by paramKind: '{shown}'"
        )

    @staticmethod
    def _prefix(resource: ServedResource, reference: JsonObject, attributes: AdmissionAttributes) -> str:
        namespace = reference.get("namespace", "")
        if not resource.namespaced:
            if namespace:
                why = "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
                raise PolicyFailure(f"failed to configure binding: {why}")
            return ""
        if not namespace and not attributes.namespace:
            why = "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            raise PolicyFailure(f"failed to configure binding: {why}")
        return f"{namespace or attributes.namespace}/"


def _is_meant(name: str, labels: Mapping[str, str], reference: JsonObject) -> bool:
    if reference.get("name"):
        return name == reference["name"]
    return label_selector(reference.get("selector")).matches(labels)


def _binding(declared: JsonObject) -> Binding:
    spec = section(declared, "spec")
    return Binding(meta(declared)["name"], spec, Constraints.of(section(spec, "matchResources")))


def _policy(declared: JsonObject, bindings: Sequence[Binding]) -> Policy:
    spec = section(declared, "spec")
    compiler = PolicyCompiler(spec)
    conditions = [compiler.condition(item["expression"]) for item in items(spec, "matchConditions")]
    variables = declared_variables(spec, compiler)
    validations = [
        Validation(
            item,
            compiler.validation(item["expression"]),
            compiler.message(item["messageExpression"]) if item.get("messageExpression") else None,
        )
        for item in items(spec, "validations")
    ]
    annotations = [
        (item["key"], compiler.annotation(item["valueExpression"]))
        for item in items(spec, "auditAnnotations")
    ]
    constraints = Constraints.of(section(spec, "matchConstraints"))
    return Policy(
        meta(declared)["name"],
        spec,
        constraints,
        conditions,
        variables,
        validations,
        annotations,
        [_mutation(item, compiler) for item in items(spec, "mutations")],
        bindings,
    )


def _mutation(declared: JsonObject, compiler: PolicyCompiler) -> Mutation:
    if declared["patchType"] == "JSONPatch":
        return Mutation(compiler.patch(declared["jsonPatch"]["expression"]), patches=True)
    return Mutation(compiler.configuration(declared["applyConfiguration"]["expression"]), patches=False)


def applies(policy: Policy, versioned: VersionedAttributes) -> bool:
    """Evaluate the match conditions: False if one of them is false; otherwise raise if one of them failed."""
    if not policy.conditions:
        return True
    # kube-apiserver does not pass the namespace to match conditions.
    budget, values = CostBudget(CONDITIONS_BUDGET), {**versioned.values(), "namespaceObject": None}
    failures: list[str] = []
    for condition in policy.conditions:
        try:
            if budget.evaluate(condition, values) is False:
                return False
        except cel.EvaluationError as error:
            failures.append(str(error))
    if failures:
        raise cel.EvaluationError(failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]")
    return True
