"""Webhooks as their configurations declare them, and which of them a write concerns."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api import LabelMatcher
from kubewright.devserver.admission.matching import (
    Match,
    in_selected_namespace,
    is_selected_object,
    match_rules,
    parse_selector,
)
from kubewright.devserver.admission.reviews import Verdict, ask, read_verdict
from kubewright.devserver.admission.versions import Versions
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import (
    CONDITIONS_BUDGET,
    Budget,
    ExpressionError,
    Situation,
    compile_condition,
)
from kubewright.devserver.objects import JsonObject, items, meta
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client import Caller, CallFailed
from kubewright.schema import cel

GROUP = "admissionregistration.k8s.io"


@dataclass(frozen=True, slots=True)
class Hook:
    """One webhook of a configuration."""

    uid: str
    name: str
    declared: JsonObject
    namespaces: LabelMatcher
    objects: LabelMatcher

    @property
    def forgiving(self) -> bool:
        """Tell whether writes pass when the webhook cannot be asked."""
        return self.declared.get("failurePolicy") == "Ignore"

    @property
    def again(self) -> bool:
        """Tell whether the webhook wants to see what others changed after it."""
        return self.declared.get("reinvocationPolicy") == "IfNeeded"


class Hooks:
    """The webhooks of one kind of configuration, in the order in which they are asked."""

    def __init__(self, plural: str, core: Core, api: Access, versions: Versions, caller: Caller) -> None:
        self._plural = plural
        self._core = core
        self._api = api
        self._versions = versions
        self._caller = caller
        self._revision = -1
        self._hooks: Sequence[Hook] = ()

    def all(self) -> Sequence[Hook]:
        """Give the webhooks, read anew when a configuration was written."""
        latest = self._core.store.collection(f"{self._plural}.{GROUP}").latest
        if latest != self._revision:
            found = self._api.list(GROUP, self._plural)
            found.sort(key=lambda item: meta(item)["name"])
            self._hooks = [hook for configuration in found for hook in _hooks_of(configuration)]
            self._revision = latest
        return self._hooks

    async def situation(self, hook: Hook, operation: Operation) -> Situation | None:
        """Show a write as a webhook wants to see it, or None when it is none of its business."""
        if not is_selected_object(hook.objects, operation):
            return None
        unknown: StatusError | None = None
        try:
            if not in_selected_namespace(hook.namespaces, operation, self._api):
                return None
        except StatusError as error:
            unknown = error
        match = self._match(hook, operation)
        if match is None:
            return None
        if unknown is not None:
            raise unknown
        situation = await self._versions.situation(operation, match)
        return situation if _wanted(hook, situation) else None

    def _match(self, hook: Hook, operation: Operation) -> Match | None:
        equivalent = hook.declared.get("matchPolicy") == "Equivalent"
        return match_rules(
            items(hook.declared, "rules"), operation, self._core.registry, equivalent=equivalent
        )

    async def call(self, hook: Hook, situation: Situation, *, mutating: bool) -> Verdict:
        """Ask a webhook; raises CallFailed when that does not work."""
        match = Match(situation.resource, situation.kind)
        new, old = (self._versions.encoded(obj, match) for obj in (situation.object, situation.old_object))
        question = ask(situation, new, old, items(hook.declared, "admissionReviewVersions"))
        seconds = hook.declared.get("timeoutSeconds") or 10
        try:
            body = await self._caller.post(
                hook.declared["clientConfig"], question.body, seconds, f"timeout={seconds}s"
            )
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from None
        verdict = read_verdict(question, body, mutating=mutating)
        operation = situation.operation
        operation.warnings.extend(verdict.warnings)
        operation.annotations.update(
            {f"{hook.name}/{key}": value for key, value in verdict.annotations.items()}
        )
        return verdict


def failure(hook: Hook, error: CallFailed) -> StatusError:
    """Refuse a write because its webhook could not be asked."""
    return StatusError.internal(f"failed calling webhook {quote(hook.name)}: {error}")


def _hooks_of(configuration: JsonObject) -> list[Hook]:
    counts: dict[str, int] = {}
    found: list[Hook] = []
    for declared in items(configuration, "webhooks"):
        name = declared["name"]
        counts[name] = counts.get(name, -1) + 1
        found.append(
            Hook(
                f"{meta(configuration)['name']}/{name}/{counts[name]}",
                name,
                declared,
                parse_selector(declared.get("namespaceSelector")),
                parse_selector(declared.get("objectSelector")),
            )
        )
    return found


def _wanted(hook: Hook, situation: Situation) -> bool:
    """Evaluate the match conditions: one that is false settles it, else one that fails does as the policy says."""
    conditions = items(hook.declared, "matchConditions")
    if not conditions:
        return True
    values = situation.values()
    budget = Budget(CONDITIONS_BUDGET)
    failures: list[str] = []
    try:
        for condition in conditions:
            try:
                if budget.evaluate(compile_condition(condition["expression"]), values) is False:
                    return False
            except cel.EvaluationError as error:
                failures.append(str(error))
    except ExpressionError as error:
        failures = [str(error)]
    if not failures:
        return True
    if hook.forgiving:
        return False
    operation = situation.operation
    why = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
    group, _, plural = operation.resource
    raise StatusError.forbidden(group, plural, operation.name, why)
