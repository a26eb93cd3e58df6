"""Is it so already? Judged before a write, and learned from its answer."""

from typing import Any

from kubewright.api import Kind, PartialMeta, RawObject, parse
from kubewright.controller.comparison import apply_difference, content_of, status_difference
from kubewright.controller.ownership import Fields, applied_fields, read_entries
from kubewright.controller.running.instruments import Instruments
from kubewright.controller.running.memory import AnswerMemory
from kubewright.controller.running.subjects import Subject, status_of, typed_wire
from kubewright.controller.running.surroundings import Surroundings

Wire = dict[str, Any]

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

    def is_applied(self, child: Subject, desired: Wire, live: RawObject) -> bool:
        """Tell whether applying the desired object would change nothing."""
        if apply_difference(desired, typed_wire(child.form, live), self._owned(live)) is None:
            return True
        return self._memory.settled(live.meta.uid, "", desired, _content(child.kind, live))

    def note(self, child: Subject, desired: Wire, answer: RawObject) -> None:
        """Learn from the answer to an apply."""
        field = apply_difference(desired, typed_wire(child.form, answer), self._owned(answer))
        if field is None:
            self._memory.forget(answer.meta.uid, "")
        elif self._memory.remember(answer.meta.uid, "", desired, _content(child.kind, answer)):
            self._report(child.kind, answer.meta, field)

    def is_status_applied(self, desired: Wire, live: RawObject, known: Wire) -> bool:
        """Tell whether applying the desired status would change nothing; `known` is the live one."""
        if status_difference(desired, known, self._owned(live, STATUS)) is None:
            return True
        return self._memory.settled(live.meta.uid, STATUS, desired, known)

    def note_status(self, target: Subject, desired: Wire, answer: RawObject) -> None:
        """Learn from the answer to an apply of a status."""
        answered = status_of(target.form, answer)
        field = status_difference(desired, answered, self._owned(answer, STATUS))
        if field is None:
            self._memory.forget(answer.meta.uid, STATUS)
        elif self._memory.remember(answer.meta.uid, STATUS, desired, answered):
            self._report(target.kind, answer.meta, field)

    def _owned(self, state: RawObject, subresource: str = "") -> Fields | None:
        return applied_fields(read_entries(state.meta.managed_fields), self._manager, subresource)

    def _report(self, kind: Kind, meta: PartialMeta, field: str) -> None:
        self._instruments.applies_altered.inc()
        note = f"The server did not take {field} as controller {self._controller} applied it"
        self._surroundings.tell(kind, meta, "Warning", "ApplyAltered", note)


def _content(kind: Kind, state: RawObject) -> Wire:
    return content_of(parse(state.raw), has_status=kind.status)
