"""MutatingAdmissionPolicies: change writes by CEL expressions, with an apply configuration or a JSON patch."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api import PatchError, json_patch
from kubewright.devserver.admission.matching import ResourceMatch, is_exempt
from kubewright.devserver.admission.policies import (
    Binding,
    Mutation,
    Policy,
    PolicyFailure,
    PolicySet,
    applies,
)
from kubewright.devserver.admission.versions import ConversionFailed, VersionConverter, VersionedAttributes
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import POLICY_BUDGET, CostBudget, ExpressionError, Variables
from kubewright.devserver.merge import ApplyError, MergeSchema, overlay
from kubewright.devserver.objects import JsonObject, copy, encode_sorted, meta
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.wire import WireDecodeError
from kubewright.schema import cel

_TEST_FAILED = ": test failed"


@dataclass(frozen=True, slots=True)
class PolicyInvocation:
    """A policy to be evaluated for a write: with one binding, one parameter object and one version."""

    policy: Policy
    binding: Binding
    match: ResourceMatch
    params: JsonObject | None

    @property
    def key(self) -> str:
        """Return a key that is unique among the invocations for one write."""
        metadata = {} if self.params is None else meta(self.params)
        param = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}"
        return f"{self.policy.name}/{self.binding.name}/{param}"


@dataclass(frozen=True, slots=True)
class PolicyRejection:
    """Why a policy could not be applied to a write."""

    policy: Policy
    binding: Binding | None
    why: str
    reason: str = ""

    def __str__(self) -> str:
        if self.binding is None:
            return f'policy "{self.policy.name}" denied request: {self.why}'
        return f"policy '{self.policy.name}' with binding '{self.binding.name}' denied request: {self.why}"


class MutatingPolicies(AdmissionPlugin):
    """Let policies change writes."""

    def __init__(self, policies: PolicySet, core: Core, versions: VersionConverter) -> None:
        self._policies = policies
        self._core = core
        self._versions = versions

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Apply the mutations of each policy that matches; raise for those that fail, unless they fail open."""
        policies = self._policies.all()
        if not policies or attributes.operation == "DELETE" or is_exempt(attributes):
            return
        failures: list[PolicyRejection] = []
        invocations = [
            found for policy in policies for found in await self._find(policy, attributes, failures)
        ]
        if invocations:
            failures += await self._carry_out(invocations, attributes)
        reported = [failure for failure in failures if not failure.policy.fails_open]
        if reported:
            raise _refusal(attributes, reported)

    async def _find(
        self, policy: Policy, attributes: AdmissionAttributes, failures: list[PolicyRejection]
    ) -> Sequence[PolicyInvocation]:
        match = self._policies.match(policy.constraints, attributes)
        if match is None:
            return ()
        try:
            self._policies.check_params(policy)
        except PolicyFailure as error:
            failures.append(PolicyRejection(policy, None, str(error)))
            return ()
        found: list[PolicyInvocation] = []
        for binding in policy.bindings:
            if self._policies.match(binding.constraints, attributes) is None:
                continue
            try:
                params = await self._policies.params(policy, binding, attributes)
            except PolicyFailure as error:
                failures.append(PolicyRejection(policy, binding, str(error)))
                continue
            found += [PolicyInvocation(policy, binding, match, self._typed(policy, each)) for each in params]
        return found

    def _typed(self, policy: Policy, params: JsonObject | None) -> JsonObject | None:
        """Return a parameter as kube-apiserver reads it: one of a built-in kind does not know its kind."""
        if params is None or self._policies.param_resource(policy.spec["paramKind"]).custom:
            return params
        return {name: value for name, value in params.items() if name not in ("apiVersion", "kind")}

    async def _carry_out(
        self, invocations: Sequence[PolicyInvocation], attributes: AdmissionAttributes
    ) -> list[PolicyRejection]:
        reinvocation, state = attributes.reinvocation, attributes.reinvocation.policies
        if reinvocation.is_reinvoke and state.output != attributes.object:
            state.object_changed()
        failures: list[PolicyRejection] = []
        shown: dict[ResourceMatch, VersionedAttributes] = {}
        last: ResourceMatch | None = None
        touched: set[ResourceMatch] = set()
        for each in invocations:
            if each.match not in shown:
                try:
                    shown[each.match] = await self._versions.versioned(attributes, each.match)
                except ConversionFailed as failure:
                    raise StatusError.internal(str(failure)) from None
                shown[each.match].namespace = self._policies.namespace(attributes, self._versions)
            versioned = shown[each.match]
            versioned.params = each.params
            try:
                if not applies(each.policy, versioned):
                    continue
            except (ExpressionError, cel.EvaluationError) as error:
                failures.append(PolicyRejection(each.policy, each.binding, str(error), "Invalid"))
                continue
            if reinvocation.is_reinvoke and each.key not in state.due:
                continue
            before, last = versioned.object, each.match
            if versioned.object is not None and self._mutate(each, versioned, failures):
                touched.add(each.match)
            if before is not None and encode_sorted(before) != encode_sorted(versioned.object):
                state.object_changed()
                reinvocation.requested = True
            if each.policy.reinvoke:
                state.invoked.add(each.key)
        if last is not None and last in touched and (fresh := shown[last].object) is not None:
            # Even what has changed nothing calls for a second round, as on kube-apiserver.
            state.object_changed()
            reinvocation.requested = True
            try:
                await self._versions.replace(attributes, last, copy(fresh))
            except ConversionFailed as failure:
                raise StatusError.internal(f"failed to convert object: {failure}") from None
        state.output = copy(attributes.object)
        return failures

    def _mutate(
        self, each: PolicyInvocation, versioned: VersionedAttributes, failures: list[PolicyRejection]
    ) -> bool:
        """Apply the mutations of one policy in their order; return True if any could be."""
        done = False
        for mutation in each.policy.mutations:
            try:
                versioned.object = self._completed(self._changed(each, mutation, versioned), each, versioned)
                done = True
            except (PolicyFailure, ExpressionError, cel.EvaluationError) as error:
                failures.append(PolicyRejection(each.policy, each.binding, str(error), "Invalid"))
            except WireDecodeError as error:
                raise StatusError.internal(str(error)) from None
        return done

    def _completed(
        self, changed: JsonObject, each: PolicyInvocation, versioned: VersionedAttributes
    ) -> JsonObject:
        here, there = each.match.kind, versioned.attributes.kind
        if here != there and self._core.types.has(here):
            # kube-apiserver does not get built-in kinds back from another version.
            text = f"converting ({here.version}.{here.kind}) to ({there.version}.{there.kind}): unknown conversion"
            raise PolicyFailure(text)
        return self._versions.canonical(changed, versioned.attributes, each.match)

    def _changed(
        self, each: PolicyInvocation, mutation: Mutation, versioned: VersionedAttributes
    ) -> JsonObject:
        budget, values = CostBudget(POLICY_BUDGET), versioned.values()
        values["variables"] = Variables(each.policy.variables, lambda: values, budget)
        result = budget.evaluate(mutation.program, values)
        live = copy(versioned.object)
        if mutation.patches:
            return self._checked(_patched(live, result), each.match)
        if texts := cel.misplaced(result):
            raise PolicyFailure(f"type mismatch: {chr(10).join(texts)}")
        identity = {"apiVersion": each.match.kind.api_version, "kind": each.match.kind.kind}
        try:
            return overlay(live, cel.to_json(result) | identity, self._schema(each.match))
        except ApplyError as error:
            raise PolicyFailure(f"error applying patch: {error}") from None

    def _checked(self, patched: JsonObject, match: ResourceMatch) -> JsonObject:
        """Refuse what the Go type of a built-in kind has no place for."""
        types = self._core.types
        if types.has(match.kind):
            _, unknown = types.decode(match.kind, patched)
            if unknown:
                raise StatusError.internal(f"strict decoding error: {', '.join(unknown)}")
        return patched

    def _schema(self, match: ResourceMatch) -> MergeSchema:
        if match.kind.kind == "Scale":
            # It is served within other groups, so no group's own document describes it.
            text = f"no corresponding type for {match.kind.api_version}, Kind=Scale"
            raise ApplyError(f"failed to convert patch object to typed object: {text}")
        resource = self._versions.resource(match.resource)
        return (
            resource.codec.merge_schema
            if resource.gvk == match.kind
            else self._core.types.merge_schema(match.kind)
        )


def _patched(live: JsonObject, result: list[cel.CelMessage]) -> JsonObject:
    operations: list[JsonObject] = []
    for each in result:
        value = each.get("value")
        if isinstance(value, cel.CelMessage) and (texts := cel.misplaced(value)):
            raise PolicyFailure(f"type mismatch: {chr(10).join(texts)}")
        operation: JsonObject = {"op": each.get("op", ""), "path": each.get("path", "")}
        if each.get("from"):
            operation["from"] = each["from"]
        if "value" in each:
            operation["value"] = cel.to_json(value)
        operations.append(operation)
    try:
        return json_patch(copy(live), operations)
    except PatchError as error:
        if str(error).endswith(_TEST_FAILED):
            return live
        raise PolicyFailure(f"JSON Patch: {error}") from None


def _refusal(attributes: AdmissionAttributes, failures: Sequence[PolicyRejection]) -> StatusError:
    error = attributes.forbidden("", [{"message": str(failure)} for failure in failures])
    error.message = str(failures[0])
    error.reason = failures[0].reason or error.reason
    return error
