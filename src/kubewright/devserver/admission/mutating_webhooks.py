"""Webhooks that change writes: one after the other, and again when a later one changed what an earlier one saw."""

from typing import Any, cast

from kubewright.api import PatchError, json_patch
from kubewright.devserver.admission.hooks import Hook, Hooks, failure
from kubewright.devserver.admission.matching import ResourceMatch, is_configuration
from kubewright.devserver.admission.reviews import denial
from kubewright.devserver.admission.versions import VersionedAttributes, Versions
from kubewright.devserver.objects import JsonObject, copy, encode_sorted
from kubewright.devserver.objects.status import StatusError, quote
from kubewright.devserver.request.admission import AdmissionAttributes, AdmissionPlugin
from kubewright.devserver.webhook_client import CallFailed
from kubewright.devserver.wire import DecodeError, parse_json


class MutatingWebhooks(AdmissionPlugin):
    """Let webhooks change writes."""

    def __init__(self, hooks: Hooks, versions: Versions) -> None:
        self._hooks = hooks
        self._versions = versions

    async def admit(self, attributes: AdmissionAttributes) -> None:
        """Ask each webhook that the write concerns, in order."""
        hooks = self._hooks.all()
        if not hooks or is_configuration(attributes):
            return
        reinvocation, state = attributes.reinvocation, attributes.reinvocation.webhooks
        if reinvocation.is_reinvoke and state.output != attributes.object:
            state.object_changed()
        for hook in hooks:
            versioned = await self._hooks.matched(hook, attributes)
            if versioned is None or (reinvocation.is_reinvoke and hook.uid not in state.due):
                continue
            if await self._ask(hook, versioned):
                state.object_changed()
                reinvocation.requested = True
            if hook.reinvoke:
                state.invoked.add(hook.uid)
        state.output = copy(attributes.object)

    async def _ask(self, hook: Hook, versioned: VersionedAttributes) -> bool:
        """Ask one webhook; return True if it changed the object."""
        try:
            decision = await self._hooks.call(hook, versioned, mutating=True)
            if not decision.allowed:
                raise denial(hook.name, decision.result)
            operations = _operations(decision.patch)
            if operations and decision.patch_type != "JSONPatch":
                raise CallFailed(f"unsupported patch type {quote(decision.patch_type)}")
        except CallFailed as error:
            if hook.fails_open:
                return False
            raise failure(hook, error) from None
        return bool(operations) and await self._change(hook, versioned, operations)

    async def _change(self, hook: Hook, versioned: VersionedAttributes, operations: list[Any]) -> bool:
        if versioned.object is None:
            why = "attempted to modify the object, which is not supported for this operation"
            raise StatusError.internal(f"admission webhook {quote(hook.name)} {why}")
        match = ResourceMatch(versioned.resource, versioned.kind)
        before = encode_sorted(versioned.object)
        try:
            patched: JsonObject = json_patch(copy(versioned.object), operations)
            fresh = self._versions.canonical(patched, versioned.attributes, match)
        except (PatchError, DecodeError) as error:
            raise StatusError.internal(str(error)) from None
        changed = encode_sorted(fresh) != before
        await self._versions.replace(versioned.attributes, match, fresh)
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
