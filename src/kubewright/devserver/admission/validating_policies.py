"""ValidatingAdmissionPolicies: reject writes, warn of them or annotate the audit event, by CEL expressions."""

from dataclasses import dataclass
from typing import Any

from kubewright.devserver.admission.matching import ResourceMatch, is_exempt
from kubewright.devserver.admission.policies import (
    Binding,
    Policy,
    PolicyFailure,
    PolicySet,
    Validation,
    applies,
)
from kubewright.devserver.admission.versions import ConversionFailed, VersionConverter, VersionedAttributes
from kubewright.devserver.expressions import POLICY_BUDGET, CostBudget, ExpressionError, Variables
from kubewright.devserver.objects import encode, items
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.schema import cel

MAX_MESSAGE = 5 * 1024
MAX_ANNOTATION = 10 * 1024
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"


@dataclass(frozen=True, slots=True)
class PolicyViolation:
    """Why a policy rejects a write, or warns of it."""

    message: str
    reason: str = ""
    index: int = 0


class ValidatingPolicies(AdmissionPlugin):
    """Let policies reject writes, warn of them, or annotate the audit event."""

    def __init__(self, policies: PolicySet, versions: VersionConverter) -> None:
        self._policies = policies
        self._versions = versions

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Evaluate each policy; raise for the first violation whose binding denies."""
        policies = self._policies.all()
        if not policies or is_exempt(attributes):
            return
        refusal: StatusError | None = None
        for policy in policies:
            found = await self._ask(policy, attributes)
            refusal = refusal or found
        if refusal is not None:
            raise refusal

    async def _ask(self, policy: Policy, attributes: AdmissionAttributes) -> StatusError | None:
        match = self._policies.match(policy.constraints, attributes)
        if match is None:
            return None
        refusal = self._misconfigured(policy, attributes)
        if refusal is not None:
            return None if policy.fails_open else refusal
        for binding in policy.bindings:
            if self._policies.match(binding.constraints, attributes) is None:
                continue
            try:
                found = await self._evaluate(policy, binding, attributes, match)
            except PolicyFailure as error:
                if not policy.fails_open:
                    refusal = refusal or _refusal(attributes, policy, binding, PolicyViolation(str(error)))
                continue
            for violation in found:
                denied = _act(attributes, policy, binding, violation)
                refusal = refusal or denied
        return refusal

    def _misconfigured(self, policy: Policy, attributes: AdmissionAttributes) -> StatusError | None:
        """Return the rejection of a write that matches a policy with an unknown `paramKind`."""
        try:
            self._policies.check_params(policy)
        except PolicyFailure as error:
            return _refusal(attributes, policy, None, PolicyViolation(str(error)))
        return None

    async def _evaluate(
        self, policy: Policy, binding: Binding, attributes: AdmissionAttributes, match: ResourceMatch
    ) -> list[PolicyViolation]:
        violations: list[PolicyViolation] = []
        try:
            versioned = await self._versions.versioned(attributes, match)
        except ConversionFailed as failure:
            text = f"failed to configure binding: failed to convert object version: {failure}"
            raise PolicyFailure(text) from None
        versioned.namespace = self._policies.namespace(attributes, self._versions)
        for params in await self._policies.params(policy, binding, attributes):
            versioned.params = params
            try:
                violations += _violations(policy, versioned)
            except (ExpressionError, cel.EvaluationError) as error:
                if not policy.fails_open:
                    violations.append(PolicyViolation(str(error)))
        return violations


def _violations(policy: Policy, versioned: VersionedAttributes) -> list[PolicyViolation]:
    if not applies(policy, versioned):
        return []
    budget = CostBudget(POLICY_BUDGET)
    values = versioned.values()
    values["variables"] = Variables(policy.variables, lambda: values, budget)
    violations: list[PolicyViolation] = []
    for index, validation in enumerate(policy.validations):
        try:
            if budget.evaluate(validation.program, values) is not True:
                reason = validation.declared.get("reason") or "Invalid"
                message = _message(validation, values, budget)
                violations.append(PolicyViolation(message, reason, index))
        except cel.EvaluationError as error:
            if not policy.fails_open:
                violations.append(PolicyViolation(str(error), "", index))
    _annotate(policy, versioned.attributes, values, budget)
    return violations


def _message(validation: Validation, values: dict[str, Any], budget: CostBudget) -> str:
    message = ""
    if validation.message is not None:
        try:
            message = str(budget.evaluate(validation.message, values)).strip()
        except cel.EvaluationError:
            message = ""
        if len(message) > MAX_MESSAGE or "\n" in message:
            message = ""
    declared = validation.declared
    return (
        message
        or declared.get("message", "").strip()
        or f"failed expression: {declared['expression'].strip()}"
    )


def _annotate(
    policy: Policy, attributes: AdmissionAttributes, values: dict[str, Any], budget: CostBudget
) -> None:
    for key, program in policy.annotations:
        try:
            value = budget.evaluate(program, values)
        except cel.EvaluationError:
            if not policy.fails_open:
                raise
            continue
        if isinstance(value, str) and value.strip():
            attributes.context.audit_annotations[f"{policy.name}/{key}"] = value.strip()[:MAX_ANNOTATION]


def _act(
    attributes: AdmissionAttributes, policy: Policy, binding: Binding, violation: PolicyViolation
) -> StatusError | None:
    """Deny, warn or audit a violation, as the binding says; return the rejection."""
    refusal: StatusError | None = None
    for action in items(binding.spec, "validationActions"):
        if action == "Deny":
            refusal = _refusal(attributes, policy, binding, violation)
        elif action == "Warn":
            attributes.context.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                f"{violation.message}"
            )
        elif action == "Audit":
            failure = {
                "message": violation.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": violation.index,
                "validationActions": items(binding.spec, "validationActions"),
            }
            attributes.context.audit_annotations[_FAILURE_KEY] = encode([failure]).decode()
    return refusal


def _refusal(
    attributes: AdmissionAttributes, policy: Policy, binding: Binding | None, violation: PolicyViolation
) -> StatusError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {violation.message}"
    error = attributes.forbidden(message, [{"message": message}])
    error.reason = violation.reason or "Invalid"
    error.code = _CODES.get(error.reason, 422)
    return error
