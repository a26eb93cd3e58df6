"""Admission webhooks: their configurations, which writes they match, and the two plugins that call them.

Mutating webhooks are called one after the other, and once more (`reinvocationPolicy: IfNeeded`) if a later plugin changed the object.
Validating webhooks are called all at once; one denial rejects the write.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, cast

from kubewright.api import LabelMatcher, PatchError, json_patch
from kubewright.devserver.admission.matching import (
    ResourceMatch,
    in_selected_namespace,
    is_exempt,
    is_selected_object,
    match_rules,
    parse_selector,
)
from kubewright.devserver.admission.reviews import ReviewResponse, ask, denial, read_decision
from kubewright.devserver.admission.versions import ConversionFailed, VersionConverter, VersionedAttributes
from kubewright.devserver.core import Core
from kubewright.devserver.expressions import CONDITIONS_BUDGET, CostBudget, ExpressionError, compile_condition
from kubewright.devserver.objects import JsonObject, copy, encode_sorted, items, meta
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.storage import Derived
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.webhook_client import Caller, CallFailed
from kubewright.devserver.wire import WireDecodeError, parse_json
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
        """Return True if the webhook is reinvoked after later plugins changed the object."""
        return self.declared.get("reinvocationPolicy") == "IfNeeded"


class Hooks:
    """The webhooks of one kind of configuration, in the order in which they are called."""

    def __init__(
        self, plural: str, core: Core, api: Access, versions: VersionConverter, caller: Caller
    ) -> None:
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
        try:
            versioned = await self._versions.versioned(attributes, match)
        except ConversionFailed as failure:
            error = StatusError.internal(str(failure))
            # Mutating webhooks report it as an internal error of an internal error.
            mutating = self._plural.startswith("mutating")
            raise (StatusError.internal(error.message) if mutating else error) from None
        return versioned if _wanted(hook, versioned) else None

    def _match(self, hook: Hook, attributes: AdmissionAttributes) -> ResourceMatch | None:
        equivalent = hook.declared.get("matchPolicy") == "Equivalent"
        return match_rules(
            items(hook.declared, "rules"), attributes, self._core.registry, equivalent=equivalent
        )

    async def call(self, hook: Hook, versioned: VersionedAttributes, *, mutating: bool) -> ReviewResponse:
        """Call a webhook; raise CallFailed if there is no valid response."""
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
    budget = CostBudget(CONDITIONS_BUDGET)
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


class MutatingWebhooks(AdmissionPlugin):
    """Let webhooks change writes."""

    def __init__(self, hooks: Hooks, versions: VersionConverter) -> None:
        self._hooks = hooks
        self._versions = versions

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Call each webhook that matches the write, in order."""
        hooks = self._hooks.all()
        if not hooks or is_exempt(attributes):
            return
        reinvocation, state = attributes.reinvocation, attributes.reinvocation.webhooks
        if reinvocation.is_reinvoke and state.output != attributes.object:
            state.object_changed()
        for hook in hooks:
            versioned = await self._hooks.matched(hook, attributes)
            if versioned is None or (reinvocation.is_reinvoke and hook.uid not in state.due):
                continue
            if await self._call_hook(hook, versioned):
                state.object_changed()
                reinvocation.requested = True
            if hook.reinvoke:
                state.invoked.add(hook.uid)
        state.output = copy(attributes.object)

    async def _call_hook(self, hook: Hook, versioned: VersionedAttributes) -> bool:
        """Ask one webhook; return True if it changed the object."""
        try:
            decision = await self._hooks.call(hook, versioned, mutating=True)
            if not decision.allowed:
                raise denial(hook.name, decision.result)
            operations = _operations(decision.patch)
            if operations and versioned.object is None:
                why = "attempted to modify the object, which is not supported for this operation"
                raise StatusError.internal(f"admission webhook {quote(hook.name)} {why}")
            if operations and decision.patch_type != "JSONPatch":
                raise CallFailed(f"unsupported patch type {quote(decision.patch_type)}")
        except CallFailed as error:
            if hook.fails_open:
                return False
            raise failure(hook, error) from None
        if not operations or versioned.object is None:
            return False
        return await self._change(versioned, versioned.object, operations)

    async def _change(self, versioned: VersionedAttributes, obj: JsonObject, operations: list[Any]) -> bool:
        match = ResourceMatch(versioned.resource, versioned.kind)
        before = encode_sorted(obj)
        try:
            patched: JsonObject = json_patch(copy(obj), operations)
            fresh = self._versions.canonical(patched, versioned.attributes, match)
        except (PatchError, WireDecodeError) as error:
            raise StatusError.internal(str(error)) from None
        changed = encode_sorted(fresh) != before
        try:
            await self._versions.replace(versioned.attributes, match, fresh)
        except ConversionFailed as failure:
            raise StatusError.internal(str(failure)) from None
        return changed


def _operations(patch: bytes) -> list[Any]:
    if not patch:
        return []
    try:
        value, _ = parse_json(patch)
    except WireDecodeError as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    if value is None:
        return []
    if not isinstance(value, list):
        sort = "object" if isinstance(value, dict) else "string" if isinstance(value, str) else "number"
        raise CallFailed(
            "received undecodable patch in webhook response: "
            f"json: cannot unmarshal {sort} into Go value of type jsonpatch.Patch"
        )
    return cast(list[Any], value)


class ValidatingWebhooks(AdmissionPlugin):
    """Let webhooks reject writes."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def validate(self, attributes: AdmissionAttributes) -> None:
        """Call all webhooks that match; raise the first denial in their order."""
        hooks = self._hooks.all()
        if not hooks or is_exempt(attributes):
            return
        concerned: list[tuple[Hook, VersionedAttributes]] = []
        for hook in hooks:
            versioned = await self._hooks.matched(hook, attributes)
            if versioned is not None:
                concerned.append((hook, versioned))
        async with asyncio.TaskGroup() as group:
            calls = [group.create_task(self._call_hook(hook, versioned)) for hook, versioned in concerned]
        for task in calls:
            if (violation := task.result()) is not None:
                raise violation

    async def _call_hook(self, hook: Hook, versioned: VersionedAttributes) -> StatusError | None:
        try:
            decision = await self._hooks.call(hook, versioned, mutating=False)
        except CallFailed as error:
            return None if hook.fails_open else failure(hook, error)
        return None if decision.allowed else denial(hook.name, decision.result)
