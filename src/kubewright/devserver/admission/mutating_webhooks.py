"""Webhooks that change writes: one after the other, and again when a later one changed what an earlier one saw."""

from typing import Any, cast

from kubewright.api import PatchError, json_patch
from kubewright.devserver.admission.hooks import Hook, Hooks, failure
from kubewright.devserver.admission.matching import Match, is_configuration
from kubewright.devserver.admission.reviews import denial
from kubewright.devserver.admission.versions import Versions
from kubewright.devserver.expressions import Situation
from kubewright.devserver.objects import JsonObject, copy, encode_sorted
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import Operation
from kubewright.devserver.webhook_client import CallFailed
from kubewright.devserver.wire import DecodeError, parse_json


class MutatingWebhooks:
    """Let webhooks change writes."""

    def __init__(self, hooks: Hooks, versions: Versions) -> None:
        self._hooks = hooks
        self._versions = versions

    async def admit(self, operation: Operation) -> None:
        """Ask each webhook that the write concerns, in order."""
        hooks = self._hooks.all()
        if not hooks or is_configuration(operation):
            return
        state, memory = operation.reinvocation, operation.reinvocation.webhooks
        if state.second and memory.output != operation.object:
            memory.changed()
        for hook in hooks:
            situation = await self._hooks.situation(hook, operation)
            if situation is None or (state.second and hook.uid not in memory.due):
                continue
            if await self._ask(hook, situation):
                memory.changed()
                state.wanted = True
            if hook.again:
                memory.invoked.add(hook.uid)
        memory.output = copy(operation.object)

    async def validate(self, operation: Operation) -> None:
        """Refuse nothing."""

    async def _ask(self, hook: Hook, situation: Situation) -> bool:
        """Ask one webhook; tells whether it changed the object."""
        try:
            verdict = await self._hooks.call(hook, situation, mutating=True)
            if not verdict.allowed:
                raise denial(hook.name, verdict.result)
            operations = _operations(verdict.patch)
            if operations and verdict.patch_type != "JSONPatch":
                raise CallFailed(f"unsupported patch type {quote(verdict.patch_type)}")
        except CallFailed as error:
            if hook.forgiving:
                return False
            raise failure(hook, error) from None
        return bool(operations) and await self._change(hook, situation, operations)

    async def _change(self, hook: Hook, situation: Situation, operations: list[Any]) -> bool:
        if situation.object is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise StatusError.internal(f"admission webhook {quote(hook.name)} {why}")
        match = Match(situation.resource, situation.kind)
        before = encode_sorted(situation.object)
        try:
            patched: JsonObject = json_patch(copy(situation.object), operations)
            fresh = self._versions.canonical(patched, situation.operation, match)
        except (PatchError, DecodeError) as error:
            raise StatusError.internal(str(error)) from None
        changed = encode_sorted(fresh) != before
        await self._versions.replace(situation.operation, match, fresh)
        return changed


def _operations(patch: bytes) -> list[Any]:
    if not patch:
        return []
    try:
        value, _ = parse_json(patch)
    except DecodeError as error:
        raise CallFailed(f"received undecodable patch in webhook response: {error}") from None
    if not isinstance(value, list):
        sort = "object" if isinstance(value, dict) else "string" if isinstance(value, str) else "number"
        raise CallFailed(
            "received undecodable patch in webhook response: "
            f"json: cannot unmarshal {sort} into Go value of type jsonpatch.Patch"
        )
    return cast(list[Any], value)
