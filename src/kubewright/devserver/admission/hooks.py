"""Webhooks as their configurations declare them, and which of them a write concerns."""

from collections.abc import Sequence
from dataclasses import dataclass

from kubewright.api import LabelMatcher
from kubewright.devserver.admission.matching import (
    ResourceMatch,
    in_selected_namespace,
    is_selected_object,
    match_rules,
    parse_selector,
)
from kubewright.devserver.admission.reviews import ReviewResponse, ask, read_decision
from kubewright.devserver.admission.versions import VersionedAttributes, Versions
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import CONDITIONS_BUDGET, Budget, ExpressionError, compile_condition
from kubewright.devserver.objects import JsonObject, items, meta
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import AdmissionAttributes
from kubewright.devserver.storage import Derived
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
    def fails_open(self) -> bool:
        """Return True if writes are allowed when the call fails (`failurePolicy: Ignore`)."""
        return self.declared.get("failurePolicy") == "Ignore"

    @property
    def reinvoke(self) -> bool:
        """Return True if the webhook wants to see what others changed after it."""
        return self.declared.get("reinvocationPolicy") == "IfNeeded"


class Hooks:
    """The webhooks of one kind of configuration, in the order in which they are called."""

    def __init__(self, plural: str, core: Core, api: Access, versions: Versions, caller: Caller) -> None:
        self._plural = plural
        self._core = core
        self._api = api
        self._versions = versions
        self._caller = caller
        self._hooks = Derived(core.store, [f"{plural}.{GROUP}"], self._read)

    def all(self) -> Sequence[Hook]:
        """Return the webhooks of all configurations."""
        return self._hooks.get()

    def _read(self) -> Sequence[Hook]:
        found = sorted(self._api.list(GROUP, self._plural), key=lambda item: meta(item)["name"])
        return [hook for configuration in found for hook in _hooks_of(configuration)]

    async def matched(self, hook: Hook, attributes: AdmissionAttributes) -> VersionedAttributes | None:
        """Return a write in the version that a webhook matches, or None if it does not match."""
        if not is_selected_object(hook.objects, attributes):
            return None
        unknown: StatusError | None = None
        try:
            if not in_selected_namespace(hook.namespaces, attributes, self._api):
                return None
        except StatusError as error:
            unknown = error
        match = self._match(hook, attributes)
        if match is None:
            return None
        if unknown is not None:
            raise unknown
        versioned = await self._versions.versioned(attributes, match)
        return versioned if _wanted(hook, versioned) else None

    def _match(self, hook: Hook, attributes: AdmissionAttributes) -> ResourceMatch | None:
        equivalent = hook.declared.get("matchPolicy") == "Equivalent"
        return match_rules(
            items(hook.declared, "rules"), attributes, self._core.registry, equivalent=equivalent
        )

    async def call(self, hook: Hook, versioned: VersionedAttributes, *, mutating: bool) -> ReviewResponse:
        """Ask a webhook; raise CallFailed when that does not work."""
        match = ResourceMatch(versioned.resource, versioned.kind)
        new, old = (self._versions.encoded(obj, match) for obj in (versioned.object, versioned.old_object))
        question = ask(versioned, new, old, items(hook.declared, "admissionReviewVersions"))
        seconds = hook.declared.get("timeoutSeconds") or 10
        try:
            body = await self._caller.post(
                hook.declared["clientConfig"], question.body, seconds, f"timeout={seconds}s"
            )
        except CallFailed as error:
            raise CallFailed(f"failed to call webhook: {error}") from None
        decision = read_decision(question, body, mutating=mutating)
        attributes = versioned.attributes
        attributes.context.warnings.extend(decision.warnings)
        attributes.context.audit_annotations.update(
            {f"{hook.name}/{key}": value for key, value in decision.annotations.items()}
        )
        return decision


def failure(hook: Hook, error: CallFailed) -> StatusError:
    """Return the error for a write whose webhook could not be called."""
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


def _wanted(hook: Hook, versioned: VersionedAttributes) -> bool:
    """Return True if all match conditions hold; without a false one, an error counts as `failurePolicy` says."""
    conditions = items(hook.declared, "matchConditions")
    if not conditions:
        return True
    values = versioned.values()
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
    if hook.fails_open:
        return False
    attributes = versioned.attributes
    why = failures[0] if len(failures) == 1 else f"[{', '.join(failures)}]"
    group, _, plural = attributes.resource
    raise StatusError.forbidden(group, plural, attributes.name, why)
