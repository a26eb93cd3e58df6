"""Writes of one controller.

`Writer` creates the document to send (`controller.writes`), decides whether an apply must be sent
(`controller.applying`), sends it, and stores the response in the cache.

Invariants:

- The response to a write is in every informer of its kind before the write returns, so the next read returns it.
- A write never changes another object of the same name: deletes contain the uid; updates, finalizers and status contain
  the resourceVersion that was read and are retried with a newer one (`RACES`).
- An existing object that the reconciled object does not control is not applied, unless it is adopted.
- Before an error that only delays a write (`ContestedField`, `ChildRecreateBackoff`) is raised, the key is queued for the end of
  the delay: a reconciler may catch the error, and the desired state must still be applied.
"""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, Literal

import msgspec

from kubewright.api import (
    Conflict,
    InvalidRequest,
    JsonObject,
    Kind,
    Model,
    NotFound,
    Object,
    ObjectKey,
    OwnerReference,
    PartialMeta,
    RawObject,
    controller_of,
    decode_as,
    kind_of,
    parse,
    raw_object,
    typed_diff,
    utc_now,
)
from kubewright.client import requests
from kubewright.controller import managed_fields
from kubewright.controller.applying import ApplyMemory, Mismatch, may_change_again
from kubewright.controller.declaration import Controller
from kubewright.controller.errors import (
    ChildRecreateBackoff,
    ObjectTerminating,
    StaleObject,
    UndeclaredAccess,
)
from kubewright.controller.running.dependencies import RuntimeDependencies
from kubewright.controller.running.disruption import is_disruptive, pass_gate
from kubewright.controller.running.drift import Creations, DriftControl
from kubewright.controller.running.own_writes import note_status_write
from kubewright.controller.running.reading import CacheReader
from kubewright.controller.running.telemetry import Instruments, controller_log
from kubewright.controller.steps import steps_field
from kubewright.controller.writes import (
    WriteTarget,
    check_controlled,
    child_document,
    desired_status,
    finalizer_added,
    finalizer_removed,
    is_earlier_owner,
    live_status,
    observes_generation,
    stamp_conditions,
    with_finalizer,
    with_owner,
)
from kubewright.guards import calling_line
from kubewright.journal import current

_CREATED = 201

RACES = 5
"""How often a write that carries a version is repeated on the newer version when raced."""

REPEATED_APPLIES = 2
"""How often an apply is repeated at most because the server did only a part of it; no case is known that needs more."""

WakeOnDeletion = Callable[[Kind, PartialMeta, ObjectKey], bool]
"""Enqueue the key when the object is deleted; return False if its deletion would not be seen."""

Requeue = Callable[[ObjectKey, float], None]
"""Enqueue the key after this many seconds."""


class Writer:
    """Write as one controller."""

    def __init__(
        self,
        controller: Controller[Any],
        dependencies: RuntimeDependencies,
        reader: CacheReader,
        instruments: Instruments,
        wake_on_deletion: WakeOnDeletion,
        requeue: Requeue,
    ) -> None:
        self._wake_on_deletion = wake_on_deletion
        self._requeue = requeue
        self._creations = Creations()
        self._controller = controller
        self._kind = kind_of(controller.kind)
        self._manager = controller.field_manager
        self._formers = controller.options.former_field_managers
        self._dependencies = dependencies
        self._client = dependencies.client
        self._reader = reader
        self._permissions = reader.permissions
        self._instruments = instruments
        self._log = controller_log(controller.name, self._kind)
        self._applied = ApplyMemory(self._manager)
        self._drift = DriftControl(
            self._manager,
            dependencies,
            instruments,
            self._log,
            lambda: asyncio.get_running_loop().time(),
            events=controller.options.drift == "event",
        )
        self._owned = {_group_kind(kind_of(child.kind)): child for child in controller.owns}
        self._kinds: dict[tuple[str, str], list[Kind]] = {}
        for kind in (
            self._kind,
            *(kind_of(child.kind) for child in controller.owns),
            *(kind_of(watched.kind) for watched in controller.watches),
            *(need.kind for need in controller.needs),
        ):
            self._kinds.setdefault(_group_kind(kind), []).append(kind)

    def resolve(self, given: Object | JsonObject) -> WriteTarget:
        """Return an object given to a verb with its kind; JSON objects must be of a declared group and kind."""
        if isinstance(given, Object):
            return WriteTarget(kind_of(given), given)
        api_version, name = given.get("apiVersion", ""), given.get("kind", "")
        group, _, version = api_version.rpartition("/")
        declared = self._kinds.get((group, name))
        if not declared or not version:
            line = calling_line()
            raise UndeclaredAccess(
                f"controller {self._controller.name!r} does not declare "
                f"{f'{api_version} {name}'.strip() or 'this object'}{f' (called at {line})' if line else ''}: add its "
                "kw.Kind to owns= if each object has its own, or to needs= if it is shared"
            )
        same = next((kind for kind in declared if kind.version == version), None)
        # The version selects the representation; it does not make another kind.
        return WriteTarget(same or msgspec.structs.replace(declared[0], version=version), given)

    async def apply(
        self, owner: PartialMeta, child: WriteTarget, *, owned: bool | None, adopt: bool, force: bool
    ) -> Any:
        """Apply the child if that may change anything; return the live object in the form that the child was given in."""
        kind = child.kind
        self._permissions.require(kind, "get", "create", "patch")
        owned = self._is_owned(kind, owned)
        desired, key = self._desired(owner, child, owned)
        live = await self._reader.get_raw(kind, key)
        if live is not None:
            if live.meta.deletion_timestamp is not None:
                self._expect_deletion(owner, kind, live.meta)
                return decode_as(child.form, live.raw)
            if owned:
                check_controlled(live.meta, kind, owner, self._kind, adopt=adopt)
            holder = controller_of(live.meta)
            if holder is not None and is_earlier_owner(holder, owner, self._kind):
                live = await self._remove_controller(kind, live, holder)
            if self._formers:
                live = await self._take_over(kind, live)
            reason = self._applied.reason_to_send(kind, desired, live, form=child.form)
            if reason is None:
                self._instruments.applies_skipped.inc()
                self._note_skipped()
                return decode_as(child.form, live.raw)
            await pass_gate()
            if reason.drift is not None:
                await self._correct_drift(owner.key, kind, live, reason.drift)
        elif self._creations.is_repeated(kind, key, owner.uid):
            await self._check_recreation(owner, kind, key)
        request = requests.apply(desired, kind, field_manager=self._manager, force=force)
        response, created = await self._send_apply(lambda _: request, live)
        if live is None or live.meta.uid != response.meta.uid:
            self._creations.note(kind, key, owner.uid)
            if not created and owned and not adopt:
                self._report_existing(kind, response)
        self._report_altered(kind, response, self._applied.learn(kind, desired, response))
        self._dependencies.record_write(kind, response)
        if response.meta.deletion_timestamp is not None:
            self._expect_deletion(owner, kind, response.meta)
        return decode_as(child.form, response.raw)

    async def create(self, owner: PartialMeta, child: WriteTarget, *, owned: bool | None) -> Any:
        """Create the child."""
        kind = child.kind
        self._permissions.require(kind, "create")
        desired, _ = self._desired(owner, child, self._is_owned(kind, owned))
        # With generateName each child has another name, so the last one of the kind stands for all.
        last = self._creations.last(kind, owner.uid)
        if last is not None and self._reader.is_gone(kind, *last):
            await self._check_owner(owner)
        response = await self._client.send(requests.create(desired, kind, field_manager=self._manager))
        self._creations.note_last(kind, owner.uid, response.meta)
        self._dependencies.record_write(kind, response)
        return decode_as(child.form, response.raw)

    async def update(self, target: WriteTarget, change: Callable[[Any], None]) -> Any:
        """Call the function with the object and send the difference; unknown fields are kept."""
        self._permissions.require(target.kind, "get", "patch")
        raw = await self._reader.get_raw(target.kind, target.key)
        attempt = 1
        while True:
            if raw is None:
                raw = await self._read(target.kind, target.key)
            if target.uid and raw.meta.uid != target.uid:
                raise InvalidRequest(
                    f"update {target.kind.resource} {target.key}: "
                    "it was deleted, and another of the same name is there now"
                )
            before, after = decode_as(target.form, raw.raw), decode_as(target.form, raw.raw)
            change(after)
            operations = typed_diff(before, after, parse(raw.raw))
            if not operations:
                return after
            await pass_gate()
            try:
                response = await self._patch_at(target.kind, raw.meta, operations)
            except Conflict as conflict:
                # After a lost response the conflict may be with our own write: `change` must not be applied twice.
                if attempt == RACES or conflict.after_lost_response:
                    raise
                attempt, raw = attempt + 1, None
                continue
            return decode_as(target.form, response.raw)

    async def patch(
        self,
        target: WriteTarget,
        patch: Any,
        *,
        type: Literal["json", "merge", "strategic"],  # noqa: A002 (the word of the whole API)
        subresource: str,
    ) -> Any:
        """Send a patch as it is; one of a subresource that is another kind (scale) returns the target as given."""
        kind, key = target.kind, target.key
        self._permissions.require(kind, "patch", subresource=subresource)
        request = requests.patch(
            kind,
            key.name,
            key.namespace,
            patch,
            type=type,
            subresource=subresource,
            field_manager=self._manager,
        )
        await pass_gate()
        response = await self._client.send(request)
        if subresource and _kinds.decode(response.raw).kind != kind.kind:
            return target.given
        self._record(kind, response)
        return decode_as(target.form, response.raw)

    async def patch_status(
        self, reconciled: PartialMeta, target: WriteTarget, status: Model | JsonObject | None
    ) -> Any:
        """Apply the status where it differs from the live one; return the target if it is gone."""
        kind, key = target.kind, target.key
        self._permissions.require(kind, "patch", subresource="status")
        live = await self._reader.get_raw(kind, key)
        if live is None or (target.uid and live.meta.uid != target.uid):
            # The caller may have read the target from the server, ahead of the cache.
            live = await self._reader.read(kind, key)
        if live is None or (target.uid and live.meta.uid != target.uid):
            return target.given
        uid, attempt = live.meta.uid, 1
        while True:
            try:
                return await self._apply_status(reconciled, target, status, live, report_drift=attempt == 1)
            except Conflict:
                if attempt == RACES:
                    raise
            attempt, live = attempt + 1, await self._reader.read(kind, key)
            if live is None or live.meta.uid != uid:
                return target.given

    async def _apply_status(
        self,
        reconciled: PartialMeta,
        target: WriteTarget,
        status: Model | JsonObject | None,
        live: RawObject,
        *,
        report_drift: bool,
    ) -> Any:
        """Apply the status to this version of the object; raise Conflict if the object changed since.

        The version is sent along because a name is not enough: the object may have been deleted and created again, and
        the status of a custom resource can be applied with the uid of another object.
        """
        kind, key = target.kind, target.key
        given = desired_status(target, status)
        # The target may be older than the last step that was recorded: steps have a field manager of their own.
        given.pop(steps_field(self._class_of(target)), None)
        desired, generation = given, None
        if "conditions" in given:
            if observes_generation(target, status):
                generation = self._reconciled_generation(reconciled, target)
            desired = stamp_conditions(given, live_status(live), generation, utc_now())
        # The same status of another generation is another statement.
        source: JsonObject = {"status": given, "generation": generation}
        document: JsonObject = {"metadata": _name(kind, key), "status": desired}
        reason = self._applied.reason_to_send(
            kind, document, live, subresource="status", source=source, form=target.form
        )
        if reason is None:
            self._note_skipped()
            return decode_as(target.form, live.raw)
        if reason.drift is not None and report_drift:
            await self._correct_drift(reconciled.key, kind, live, reason.drift, subresource="status")

        before = ""

        def request(version: str) -> requests.ApiRequest:
            nonlocal before
            before = version
            sent = document | {"metadata": document["metadata"] | {"resourceVersion": version}}
            return requests.apply(sent, kind, field_manager=self._manager, subresource="status")

        try:
            response, _ = await self._send_apply(request, live, "status")
        except NotFound:
            there = await self._reader.read(kind, key)
            if there is None or there.meta.uid != live.meta.uid:
                return target.given
            raise InvalidRequest(
                f"patch {kind.resource}/status {key}: the object exists but has no status subresource: "
                "does its CRD declare one?"
            ) from None
        altered = self._applied.learn(kind, document, response, subresource="status", source=source)
        self._report_altered(kind, response, altered)
        note_status_write(before, response.meta.resource_version)
        self._dependencies.record_write(kind, response)
        return decode_as(target.form, response.raw)

    async def delete(
        self, target: WriteTarget, *, propagation: Any, grace_period_seconds: int | None
    ) -> None:
        """Delete exactly this object; it is not an error if it is gone or was replaced."""
        kind, key, uid = target.kind, target.key, target.uid
        self._permissions.require(kind, "delete")
        self._creations.forget(kind, key)
        if is_disruptive() and await self._reader.get_raw(kind, key) is not None:
            await pass_gate()
        if not uid:
            live = await self._reader.get_raw(kind, key)
            if live is None:
                return
            uid = live.meta.uid
        request = requests.delete(
            kind,
            key.name,
            key.namespace,
            uid=uid,
            propagation=propagation,
            grace_period_seconds=grace_period_seconds,
        )
        try:
            response = await self._client.raw(request)
        except NotFound:
            return
        except Conflict as conflict:
            if conflict.replaced:
                return
            raise
        document: JsonObject = msgspec.json.decode(response.body)
        if document.get("kind") == "Status":
            self._dependencies.record_delete(
                kind, PartialMeta(name=key.name, namespace=key.namespace, uid=uid)
            )
        else:
            self._record(kind, raw_object(response.body))

    async def add_finalizer(self, kind: Kind, state: RawObject, finalizer: str) -> RawObject | None:
        """Add the finalizer to the object; return None if it is gone, terminating, or was replaced."""

        def operations(meta: PartialMeta) -> Sequence[JsonObject]:
            if finalizer in meta.finalizers or meta.deletion_timestamp is not None:
                return ()
            return finalizer_added(meta, finalizer)

        try:
            there = await self._change_finalizers(kind, state, operations)
        except NotFound:
            return None
        return there if there.meta.uid == state.meta.uid and finalizer in there.meta.finalizers else None

    async def remove_finalizer(
        self,
        kind: Kind,
        state: RawObject,
        finalizer: str,
        when: Callable[[PartialMeta], bool] | None = None,
    ) -> None:
        """Remove the finalizer from the object while `when` is true for it; it is not an error if the object is gone."""

        def operations(meta: PartialMeta) -> Sequence[JsonObject]:
            if finalizer not in meta.finalizers or (when is not None and not when(meta)):
                return ()
            return finalizer_removed(meta, finalizer)

        try:
            await self._change_finalizers(kind, state, operations)
        except NotFound:
            pass

    async def _change_finalizers(
        self, kind: Kind, state: RawObject, operations: Callable[[PartialMeta], Sequence[JsonObject]]
    ) -> RawObject:
        uid, attempt = state.meta.uid, 1
        while True:
            needed = operations(state.meta)
            if not needed or state.meta.uid != uid:
                return state
            try:
                return await self._patch_at(kind, state.meta, needed)
            except Conflict:
                if attempt == RACES:
                    raise
            attempt, state = attempt + 1, await self._read(kind, state.meta.key)

    async def _patch_at(self, kind: Kind, meta: PartialMeta, operations: Sequence[JsonObject]) -> RawObject:
        """Send a JSON patch that fails with Conflict when the object is no longer at this version."""
        at_version = {"op": "replace", "path": "/metadata/resourceVersion", "value": meta.resource_version}
        request = requests.patch(
            kind,
            meta.name,
            meta.namespace,
            [at_version, *operations],
            type="json",
            field_manager=self._manager,
        )
        response = await self._client.send(request)
        self._record(kind, response)
        return response

    async def _take_over(self, kind: Kind, live: RawObject) -> RawObject:
        """Become the manager of what former names of this controller applied, so that it can be removed."""
        entries = managed_fields.read_entries(live.meta.managed_fields)
        if managed_fields.hand_over(entries, self._manager, self._formers) is None:
            return live
        # The cache does not keep all entries of others; the list must be written whole.
        live = await self._read(kind, live.meta.key)
        entries = managed_fields.read_entries(live.meta.managed_fields)
        handed = managed_fields.hand_over(entries, self._manager, self._formers)
        if handed is None:
            return live
        return await self._patch_at(
            kind, live.meta, [{"op": "replace", "path": "/metadata/managedFields", "value": handed}]
        )

    async def _remove_controller(self, kind: Kind, live: RawObject, holder: OwnerReference) -> RawObject:
        """Remove the controller reference of an earlier owner, in whose place one of the same name adopts the child.

        An object has one controller reference at most, and an apply removes only references that it added itself.
        """
        position = live.meta.owner_references.index(holder)
        return await self._patch_at(
            kind, live.meta, [{"op": "remove", "path": f"/metadata/ownerReferences/{position}"}]
        )

    def _report_existing(self, kind: Kind, response: RawObject) -> None:
        """Report an object that was created between our read and our apply, which took it over.

        An apply cannot be limited to creating, so this is only known from the response.
        """
        note = (
            f"{kind.kind} {response.meta.key} was created by another client just before controller "
            f"{self._controller.name} applied it, and is controlled by it now: check that this is intended"
        )
        self._dependencies.publish_event(kind, response.meta, "Warning", "ExistingObjectAdopted", note)
        self._log.warning("Adopted an existing object: %s", note)

    def _desired(self, owner: PartialMeta, child: WriteTarget, owned: bool) -> tuple[JsonObject, ObjectKey]:
        kind = child.kind
        desired = child_document(child.document, kind, owner.namespace)
        if owned:
            desired = with_owner(desired, kind, owner, self._kind)
            declared = self._owned.get(_group_kind(kind))
            # Without an owner nothing would lead to the finalizer's removal.
            if declared is not None and declared.finalizer:
                desired = with_finalizer(desired, declared.finalizer)
        meta = desired["metadata"]
        return desired, ObjectKey(meta.get("namespace", ""), meta.get("name", ""))

    async def _check_recreation(self, owner: PartialMeta, kind: Kind, key: ObjectKey) -> None:
        """Raise if a child must not be created again: its owner is gone, or it was deleted soon after each creation."""
        await self._check_owner(owner)
        delay = self._creations.delay(kind, key)
        if delay > 0:
            # Before the error: a reconciler may catch it, and the child must still be created.
            self._requeue(owner.key, delay)
            raise ChildRecreateBackoff(
                f"{kind.kind} {key} was deleted each time right after it was created, though "
                f"{self._kind.kind} {owner.key} is there: find out what deletes it; it is created again in {delay:.1f} s",
                delay,
            )

    async def _check_owner(self, owner: PartialMeta) -> None:
        """Read the owner from the server; raise StaleObject if it is gone or being deleted."""
        found = await self._read_owner(owner)
        if found is not None and found.meta.uid == owner.uid:
            if found.meta.deletion_timestamp is None or owner.deletion_timestamp is not None:
                return
            # So that its finalizers run although its watch is behind.
            self._dependencies.record_write(self._kind, found)
        state = "is being deleted" if found is not None and found.meta.uid == owner.uid else "was deleted"
        raise StaleObject(
            f"{self._kind.kind} {owner.key} (uid {owner.uid}) {state}, which the cache has not seen yet: "
            "nothing more is created for it"
        )

    async def _read_owner(self, owner: PartialMeta) -> RawObject | None:
        try:
            return await self._read(self._kind, owner.key)
        except NotFound as error:
            if error.kind_missing:
                raise  # the server does not serve the kind now, which says nothing about the object
            return None

    def _reconciled_generation(self, reconciled: PartialMeta, target: WriteTarget) -> int | None:
        """Return the generation that conditions of the target are a statement about, or None if unknown.

        For the reconciled object it is never newer than the one given to the reconciler: the cache, or a
        later read, may show a spec that this reconcile has not acted on.
        """
        kind, given = target.kind, target.generation
        is_reconciled = (
            (kind.group, kind.kind) == (self._kind.group, self._kind.kind)
            and target.key == reconciled.key
            and target.uid in ("", reconciled.uid)
        )
        if not is_reconciled:
            return given or None
        return min(given or reconciled.generation, reconciled.generation) or None

    def _expect_deletion(self, owner: PartialMeta, kind: Kind, terminating: PartialMeta) -> None:
        """Reconcile the owner once the object is gone; raise ObjectTerminating if its deletion would not be seen."""
        if not self._wake_on_deletion(kind, terminating, owner.key):
            raise ObjectTerminating(
                f"apply {kind.resource} {terminating.key}: the object is being deleted and cannot be "
                "applied until it is gone; declare its kind in owns= or watches= to have that noticed at once"
            )

    def _class_of(self, target: WriteTarget) -> Any:
        """Return the class of the target's kind; of a JSON object it is known only for the controller's own kind."""
        if isinstance(target.form, Kind) and _group_kind(target.kind) == _group_kind(self._kind):
            return self._controller.kind
        return target.form

    def _is_owned(self, kind: Kind, owned: bool | None) -> bool:
        return _group_kind(kind) in self._owned if owned is None else owned

    async def _correct_drift(
        self, key: ObjectKey, kind: Kind, live: RawObject, drift: Mismatch, *, subresource: str = ""
    ) -> None:
        """Report what is about to be corrected; raise ContestedField if the correction has to wait."""
        after = self._drift.remaining(live.meta, drift.text)
        if after:
            # Before the error: a reconciler may catch it, and the last state must still be applied.
            self._requeue(key, after)
            raise self._drift.contested(kind, live.meta, drift.text, after)
        entries = managed_fields.read_entries(live.meta.managed_fields)
        if managed_fields.applied_entry(entries, self._manager, subresource) is None:
            # The cache keeps the entries of others only beside one of ours.
            there = await self._reader.read(kind, live.meta.key)
            entries = [] if there is None else managed_fields.read_entries(there.meta.managed_fields)
        managers = managed_fields.owners_of(entries, drift.path, apart=self._manager)
        self._drift.correct(kind, live.meta, drift, managers)

    async def _send_apply(
        self, request: Callable[[str], requests.ApiRequest], live: RawObject | None, subresource: str = ""
    ) -> tuple[RawObject, bool]:
        """Send an apply, again if the first one left something for the next to do; return True if it created the object.

        `request` makes the request for a version of the object.
        """
        version = "" if live is None else live.meta.resource_version
        sent = request(version)
        response, code = await self._client.send_with_code(sent)
        for _ in range(REPEATED_APPLIES):
            if response.meta.resource_version == version or not may_change_again(
                sent.body, response, subresource
            ):
                break
            version = response.meta.resource_version
            response = await self._client.send(request(version))
        return response, code == _CREATED

    def _note_skipped(self) -> None:
        """Count an apply that was not sent in the journal of the current reconcile."""
        if (entry := current()) is not None:
            entry.skipped_applies += 1

    def _report_altered(self, kind: Kind, response: RawObject, found: Mismatch | None) -> None:
        """Report a field that the server did not keep as it was applied."""
        if found is not None:
            self._instruments.applies_altered.inc()
            note = f"The server did not take {found.text} as controller {self._controller.name} applied it"
            self._dependencies.publish_event(kind, response.meta, "Warning", "ApplyAltered", note)

    def _record(self, kind: Kind, response: RawObject) -> None:
        """Store the response in the cache; an object whose last finalizer was removed is deleted."""
        meta = response.meta
        if meta.deletion_timestamp is not None and not meta.finalizers and not _in_grace(response):
            self._dependencies.record_delete(kind, meta)
        else:
            self._dependencies.record_write(kind, response)

    async def _read(self, kind: Kind, key: ObjectKey) -> RawObject:
        return await self._client.send(requests.get(kind, key.name, key.namespace))


def _group_kind(kind: Kind) -> tuple[str, str]:
    return kind.group, kind.kind


def _name(kind: Kind, key: ObjectKey) -> JsonObject:
    return {"name": key.name} | ({"namespace": key.namespace} if kind.namespaced else {})


class _Named(msgspec.Struct):
    kind: str = ""


_kinds = msgspec.json.Decoder(_Named)


class _GraceMeta(msgspec.Struct, rename="camel"):
    deletion_grace_period_seconds: int | None = None


class _Grace(msgspec.Struct):
    metadata: _GraceMeta


_graces = msgspec.json.Decoder(_Grace)


def _in_grace(state: RawObject) -> bool:
    return bool(_graces.decode(state.raw).metadata.deletion_grace_period_seconds)
