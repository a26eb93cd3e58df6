"""Policies that judge writes by expressions."""

from dataclasses import dataclass
from typing import Any

from kubewright.devserver.admission.matching import Match, is_beyond_policies
from kubewright.devserver.admission.policies import (
    Binding,
    Policies,
    Policy,
    PolicyFailure,
    Validation,
    applies,
)
from kubewright.devserver.admission.refusals import forbidden
from kubewright.devserver.admission.versions import Versions
from kubewright.devserver.expressions import POLICY_BUDGET, Budget, ExpressionError, Situation, Variables
from kubewright.devserver.objects import encode, items
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.admission import Operation
from kubewright.schema import cel

MAX_MESSAGE = 5 * 1024
MAX_ANNOTATION = 10 * 1024
_CODES = {"Forbidden": 403, "Unauthorized": 401, "RequestEntityTooLarge": 413}
_FAILURE_KEY = "validation.policy.admission.k8s.io/validation_failure"


@dataclass(frozen=True, slots=True)
class Objection:
    """Why a policy does not like a write."""

    message: str
    reason: str = ""
    index: int = 0


class ValidatingPolicies:
    """Let policies refuse writes, warn of them, or note them."""

    def __init__(self, policies: Policies, versions: Versions) -> None:
        self._policies = policies
        self._versions = versions

    async def admit(self, operation: Operation) -> None:
        """Change nothing."""

    async def validate(self, operation: Operation) -> None:
        """Ask each policy; the first objection of one that denies is told."""
        policies = self._policies.all()
        if not policies or is_beyond_policies(operation):
            return
        refusal: StatusError | None = None
        for policy in policies:
            found = await self._ask(policy, operation)
            refusal = refusal or found
        if refusal is not None:
            raise refusal

    async def _ask(self, policy: Policy, operation: Operation) -> StatusError | None:
        match = self._policies.match(policy.constraints, operation)
        if match is None:
            return None
        refusal = self._misconfigured(policy, operation)
        if refusal is not None:
            return None if policy.forgiving else refusal
        for binding in policy.bindings:
            if self._policies.match(binding.constraints, operation) is None:
                continue
            try:
                found = await self._evaluate(policy, binding, operation, match)
            except PolicyFailure as error:
                if not policy.forgiving:
                    refusal = refusal or _refusal(operation, policy, binding, Objection(str(error)))
                continue
            for objection in found:
                denied = _act(operation, policy, binding, objection)
                refusal = refusal or denied
        return refusal

    def _misconfigured(self, policy: Policy, operation: Operation) -> StatusError | None:
        """Refuse what a policy matches while its parameters are of an unknown kind, however it is bound."""
        try:
            self._policies.check_params(policy)
        except PolicyFailure as error:
            return _refusal(operation, policy, None, Objection(str(error)))
        return None

    async def _evaluate(
        self, policy: Policy, binding: Binding, operation: Operation, match: Match
    ) -> list[Objection]:
        objections: list[Objection] = []
        situation = await self._versions.situation(operation, match)
        situation.namespace = self._policies.namespace(operation, self._versions)
        for params in await self._policies.params(policy, binding, operation):
            situation.params = params
            try:
                objections += _judge(policy, situation)
            except (ExpressionError, cel.EvaluationError) as error:
                if not policy.forgiving:
                    objections.append(Objection(str(error)))
        return objections


def _judge(policy: Policy, situation: Situation) -> list[Objection]:
    if not applies(policy, situation):
        return []
    budget = Budget(POLICY_BUDGET)
    values = situation.values()
    values["variables"] = Variables(policy.variables, lambda: values, budget)
    objections: list[Objection] = []
    for index, validation in enumerate(policy.validations):
        try:
            if budget.evaluate(validation.program, values) is not True:
                reason = validation.declared.get("reason") or "Invalid"
                message = _message(validation, values, budget)
                objections.append(Objection(message, reason, index))
        except cel.EvaluationError as error:
            if not policy.forgiving:
                objections.append(Objection(str(error), "", index))
    _annotate(policy, situation.operation, values, budget)
    return objections


def _message(validation: Validation, values: dict[str, Any], budget: Budget) -> str:
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


def _annotate(policy: Policy, operation: Operation, values: dict[str, Any], budget: Budget) -> None:
    for key, program in policy.annotations:
        try:
            value = budget.evaluate(program, values)
        except cel.EvaluationError:
            if not policy.forgiving:
                raise
            continue
        if isinstance(value, str) and value.strip():
            operation.annotations[f"{policy.name}/{key}"] = value.strip()[:MAX_ANNOTATION]


def _act(operation: Operation, policy: Policy, binding: Binding, objection: Objection) -> StatusError | None:
    """Do with an objection what the binding says."""
    refusal: StatusError | None = None
    for action in items(binding.spec, "validationActions"):
        if action == "Deny":
            refusal = _refusal(operation, policy, binding, objection)
        elif action == "Warn":
            operation.warnings.append(
                f"Validation failed for ValidatingAdmissionPolicy '{policy.name}' with binding '{binding.name}': "
                f"{objection.message}"
            )
        elif action == "Audit":
            failure = {
                "message": objection.message,
                "policy": policy.name,
                "binding": binding.name,
                "expressionIndex": objection.index,
                "validationActions": items(binding.spec, "validationActions"),
            }
            operation.annotations[_FAILURE_KEY] = encode([failure]).decode()
    return refusal


def _refusal(
    operation: Operation, policy: Policy, binding: Binding | None, objection: Objection
) -> StatusError:
    bound = f" with binding '{binding.name}'" if binding is not None else ""
    message = f"ValidatingAdmissionPolicy '{policy.name}'{bound} denied request: {objection.message}"
    error = forbidden(operation, message, [{"message": message}])
    error.reason = objection.reason or "Invalid"
    error.code = _CODES.get(error.reason, 422)
    return error
