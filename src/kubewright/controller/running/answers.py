"""Is it so already? Judged before a write, and learned from its answer."""

from kubewright.api import JsonObject, Kind, PartialMeta, RawObject, parse
from kubewright.controller.comparison import apply_difference, content_of, status_difference
from kubewright.controller.ownership import Fields, applied_fields, read_entries
from kubewright.controller.running.instruments import Instruments
from kubewright.controller.running.memory import AnswerMemory, VersionMemory
from kubewright.controller.running.subjects import Subject, status_of, typed_status, typed_wire
from kubewright.controller.running.surroundings import Surroundings

STATUS = "status"


class Answers:
    """Know what one controller's applies led to."""

    def __init__(
        self, controller: str, manager: str, surroundings: Surroundings, instruments: Instruments
    ) -> None:
        self._controller = controller
        self._manager = manager
        self._surroundings = surroundings
        self._instruments = instruments
        self._memory = AnswerMemory()
        self._versions = VersionMemory()

    def is_applied(self, child: Subject, desired: JsonObject, live: RawObject) -> bool:
        """Tell whether applying the desired object would change nothing."""
        meta = live.meta
        if self._versions.fits(meta.uid, "", meta.resource_version, desired):
            return True
        state: JsonObject = parse(live.raw)
        if self._difference(child, desired, live, state) is not None:
            return (meta.uid, "") in self._memory and self._memory.settled(
                meta.uid, "", desired, self._came(child.kind, state)
            )
        self._versions.note(meta.uid, "", meta.resource_version, desired)
        return True

    def note(self, child: Subject, desired: JsonObject, answer: RawObject) -> None:
        """Learn from the answer to an apply."""
        meta = answer.meta
        state: JsonObject = parse(answer.raw)
        field = self._difference(child, desired, answer, state)
        if field is None:
            self._memory.forget(meta.uid, "")
            self._versions.note(meta.uid, "", meta.resource_version, desired)
        elif self._memory.remember(meta.uid, "", desired, self._came(child.kind, state)):
            self._report(child.kind, meta, field)

    def is_status_known(self, status: JsonObject, live: RawObject) -> bool:
        """Tell whether this very version was found to have the status, whatever times are stamped into it."""
        return self._versions.fits(live.meta.uid, STATUS, live.meta.resource_version, status)

    def is_status_applied(
        self, target: Subject, status: JsonObject, desired: JsonObject, live: RawObject, state: JsonObject
    ) -> bool:
        """Tell whether applying the status, as `desired` once stamped, would change nothing of the live one, `state`."""
        meta = live.meta
        if self._status_difference(target, desired, live, state) is not None:
            return (meta.uid, STATUS) in self._memory and self._memory.settled(
                meta.uid, STATUS, desired, self._status_came(live, state)
            )
        self._versions.note(meta.uid, STATUS, meta.resource_version, status)
        return True

    def note_status(
        self, target: Subject, status: JsonObject, desired: JsonObject, answer: RawObject
    ) -> None:
        """Learn from the answer to an apply of a status."""
        meta, state = answer.meta, status_of(answer)
        field = self._status_difference(target, desired, answer, state)
        if field is None:
            self._memory.forget(meta.uid, STATUS)
            self._versions.note(meta.uid, STATUS, meta.resource_version, status)
        elif self._memory.remember(meta.uid, STATUS, desired, self._status_came(answer, state)):
            self._report(target.kind, meta, field)

    def _difference(
        self, child: Subject, desired: JsonObject, live: RawObject, state: JsonObject
    ) -> str | None:
        owned = self._owned(state)
        found = apply_difference(desired, state, owned)
        if found is None or owned is None:
            return found
        # The server may write the same quantity or time in another way: in typed form they are equal.
        return apply_difference(desired, typed_wire(child.form, live), owned)

    def _status_difference(
        self, target: Subject, desired: JsonObject, live: RawObject, state: JsonObject
    ) -> str | None:
        owned = self._status_owned(live)
        found = status_difference(desired, state, owned)
        if found is None or owned is None:
            return found
        return status_difference(desired, typed_status(target.form, live), owned)

    def _owned(self, state: JsonObject) -> Fields | None:
        return applied_fields(state["metadata"].get("managedFields") or (), self._manager)

    def _status_owned(self, live: RawObject) -> Fields | None:
        return applied_fields(read_entries(live.meta.managed_fields), self._manager, STATUS)

    def _came(self, kind: Kind, state: JsonObject) -> JsonObject:
        """Return what came of an apply: the content, and what of it is ours. Who takes that away must be answered."""
        return {"content": content_of(state, has_status=kind.status), "owned": self._owned(state)}

    def _status_came(self, live: RawObject, state: JsonObject) -> JsonObject:
        return {"content": state, "owned": self._status_owned(live)}

    def _report(self, kind: Kind, meta: PartialMeta, field: str) -> None:
        self._instruments.applies_altered.inc()
        note = f"The server did not take {field} as controller {self._controller} applied it"
        self._surroundings.tell(kind, meta, "Warning", "ApplyAltered", note)
