"""One run of a sequence of specs: each is applied, and the operator settles before the next one.

The steps of a run:

1. The operator starts, and the other samples are created.
2. The steps of the sequence are carried out. A spec that the API server or a webhook refuses is skipped, because a schema
   does not express all rules.
3. The final state is compared with that of a run with the last spec alone, if that is given. After a restart nothing may
   be written.
4. Everything is deleted, and nothing may be left.

An operator whose reconciles fail with RetryLater or NotFound and write nothing, because a spec names something that does
not exist, counts as settled, unless its object is Ready=True.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from kubewright.api import ApiError, GroupVersionKind, JsonObject, Kind
from kubewright.journal import CachedList, CachedRead, Collected, ExternalCall, RequestExchange
from kubewright.journal.records import changed_fields
from kubewright.testing.proving.case_run import FINAL_SETTLE_SECONDS, QUIET_WITHOUT_FAULTS, CaseRun
from kubewright.testing.proving.cases import Case
from kubewright.testing.proving.child_edits import edits_of
from kubewright.testing.proving.continuous_checks import Observed
from kubewright.testing.proving.end_states import difference_lines, differences
from kubewright.testing.proving.properties import (
    INVARIANTS,
    SAME_FINAL_STATE,
    SETTLES,
    TRUTHFUL_STATUS,
    VALID_SPECS,
    Property,
    PropertyFailed,
    about_error,
    pattern_of,
)
from kubewright.testing.proving.sequences import ApplySpec, EditChild, SpecStep, differing, fields_of
from kubewright.testing.proving.status_claims import conditions_of, is_ready
from kubewright.testing.proving.subject import Subject, name_of, placed
from kubewright.testing.proving.values import schema_path
from kubewright.testing.simulation import outcome_of
from kubewright.testing.simulation.invariants import Invariant
from kubewright.testing.simulation.world import World, Write, resource_of

SEQUENCE_SETTLE_TIMEOUT = 1500.0
"""Seconds after a change in which an operator must settle: longer than the longest backoff."""
_FIELD_MANAGER = "kubectl"
_EDIT_MANAGER = "kubectl-edit"
_REFUSALS = (400, 422, 500)
"""Status codes with which a server refuses a write as invalid. No faults are injected here; an invalid quantity leads to a 500."""
_WAITING = ("RetryLater:", "NotFound:")
_START_QUIET = 20.0
_ATTEMPTS = 8
_SHOWN_CHANGES = 6
_FIELD = re.compile(r"is invalid: \[?([^:\s]+): ")


@dataclass
class SpecsSeen:
    """Counts of what the sequences of one or more runs did."""

    applied: int = 0
    refused: int = 0
    """Specs that the API server or a webhook refused."""
    edited: int = 0
    deleted: int = 0
    compared: int = 0
    """Final states that were compared with that of the last spec alone."""
    effects: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])
    """For each field: how often it was changed alone, and how often that changed what was written or read."""
    explained: dict[str, int] = field(default_factory=dict[str, int])
    """Conditions that explain a final state that differs from that of the last spec alone, with their number."""
    waiting: dict[str, int] = field(default_factory=dict[str, int])
    """Errors of reconciles that wait forever, with their number."""
    reported: dict[str, int] = field(default_factory=dict[str, int])
    """Refusals by the API server that the object's status reports, with their number."""

    def add(self, other: "SpecsSeen") -> None:
        """Add the counts of other runs."""
        self.applied += other.applied
        self.refused += other.refused
        self.edited += other.edited
        self.deleted += other.deleted
        self.compared += other.compared
        for name, (changes, effects) in other.effects.items():
            known = self.effects.get(name, (0, 0))
            self.effects[name] = known[0] + changes, known[1] + effects
        pairs = (
            (self.explained, other.explained),
            (self.waiting, other.waiting),
            (self.reported, other.reported),
        )
        for mine, theirs in pairs:
            for name, count in theirs.items():
                mine[name] = mine.get(name, 0) + count

    def without_effect(self) -> list[str]:
        """Return the fields that were changed alone at least twice and never had an effect."""
        return [
            name for name, (changes, effects) in sorted(self.effects.items()) if changes > 1 and not effects
        ]


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A write that the API server refused, or an object that the operator could not read."""

    text: str
    about: str
    """What is refused, such as a resource and its field."""


class SequenceRun(CaseRun):
    """Run one sequence; see the module."""

    def __init__(self, subject: Subject, case: Case, alone: Observed | None) -> None:
        super().__init__(subject, case, None)
        assert case.sequence is not None
        self._sequence = case.sequence
        self._sample = subject.samples[case.sequence.sample]
        self._alone = alone
        self._refusals: dict[tuple[str, str], _Refusal] = {}
        self._before: tuple[Any, Any, Any] | None = None
        self._is_edited = False
        self.done: list[SpecStep] = []
        """The steps that were carried out, up to a failing one."""
        self.seen: SpecsSeen = SpecsSeen()

    async def _run_steps(self) -> None:
        sim = self._sim
        await self._start()
        self._kind_of_sample: Kind = await self._kind(self._sample)
        before, resources = outcome_of(sim.world), sim.externals.resources()
        if not self.observed.webhooks:
            await self._settle("after its start", quiet=_START_QUIET)
        for number in self._chosen():
            if number != self._sequence.sample:
                sample = self._subject.samples[number]
                await self._apply(sample, f"create {name_of(sample)}")
        for step in self._sequence.steps:
            await self._run_step(step)
        if not self.done:
            return
        self.observed.outcome = self._outcome()
        await self._compare()
        await self._restart()
        await self._delete()
        await self._settle("after everything was deleted", quiet=QUIET_WITHOUT_FAULTS)
        await self._check_left(before, resources)
        self._check_healthy()

    # The steps

    async def _run_step(self, step: SpecStep) -> None:
        was_refused = bool(self._refusals)
        self._is_edited = not isinstance(step, ApplySpec)
        began = len(self.reconciles)
        before = self._outcome() if not isinstance(step, ApplySpec) else {}
        if isinstance(step, ApplySpec):
            if not await self._apply_spec(step):
                return
        elif not self.done or not await self._edit_or_delete_child(step):
            return
        else:
            # Writes after an edit are not an effect of a changed field.
            self._before = None
        await self._settle(_after(step), quiet=QUIET_WITHOUT_FAULTS, within=SEQUENCE_SETTLE_TIMEOUT)
        self._is_edited = False
        self._check_refusals()
        if isinstance(step, ApplySpec):
            self._note_effect(began)
        elif not was_refused:
            # While the API server refuses the operator's writes for a spec, which the status reports, children cannot
            # be restored; and a child that was deleted may be what makes the writes possible again.
            await self._check_restored(step, before)

    def _check_invariant(self, checked: Property, check: Invariant, world: World, write: Write) -> None:
        # A manual edit may break an invariant until the operator has restored the child.
        if checked is not INVARIANTS or not self._is_edited:
            super()._check_invariant(checked, check, world, write)

    async def _apply_spec(self, step: ApplySpec) -> bool:
        document = placed(
            {**{name: self._sample[name] for name in ("apiVersion", "kind", "metadata")}, **step.value},
            self._kind_of_sample,
        )
        earlier = [each for each in self.done if isinstance(each, ApplySpec)]
        base = earlier[-1].value if earlier else fields_of(self._sample)
        changes = [str(change) for change in changed_fields(base, step.value)]
        if len(changes) > _SHOWN_CHANGES:
            changes = [*changes[:_SHOWN_CHANGES], f"and {len(changes) - _SHOWN_CHANGES} more"]
        shown = "; ".join(changes) or ("applied again" if earlier else "the sample")
        what = f"{'change' if earlier else 'create'} {name_of(self._sample)}: {shown}"
        try:
            # A dry run first, so that a refused spec does not appear in the timeline.
            await self._sim.client.apply(
                document, field_manager=_FIELD_MANAGER, kind=self._kind_of_sample, force=True, dry_run=True
            )
        except ApiError:
            self.seen.refused += 1
            return False
        self.done.append(step)
        self.seen.applied += 1
        self._sim.change(what)
        self._refusals.clear()
        await self._retry_request(
            lambda: self._sim.client.apply(
                document, field_manager=_FIELD_MANAGER, kind=self._kind_of_sample, force=True
            )
        )
        return True

    async def _edit_or_delete_child(self, step: SpecStep) -> bool:
        """Edit or delete a child of the object; return False if there is none, or none that can be edited."""
        children = self._children()
        if not children:
            return False
        if isinstance(step, EditChild):
            return await self._edit(step, children)
        assert not isinstance(step, ApplySpec)
        child = children[step.choice % len(children)]
        metadata = child["metadata"]
        self.done.append(step)
        self.seen.deleted += 1
        self._sim.change(f"delete {name_of(child)} by hand")
        kind = await self._child_kind(child)
        await self._sim.client.delete(kind, metadata["name"], metadata.get("namespace", ""))
        return True

    async def _edit(self, step: EditChild, children: Sequence[JsonObject]) -> bool:
        possible = [(child, edit) for child in children for edit in edits_of(child)]
        for attempt in range(min(_ATTEMPTS, len(possible))):
            child, edit = possible[(step.choice + attempt) % len(possible)]
            metadata, kind = child["metadata"], await self._child_kind(child)
            place = {"name": metadata["name"], "namespace": metadata.get("namespace", "")}
            try:
                await self._sim.client.patch(
                    kind, edit.patch, type="json", field_manager=_EDIT_MANAGER, dry_run=True, **place
                )
            except ApiError:
                continue
            self.done.append(step)
            self.seen.edited += 1
            self._sim.change(f"edit {name_of(child)} by hand: {edit.text}")
            await self._sim.client.patch(kind, edit.patch, type="json", field_manager=_EDIT_MANAGER, **place)
            return True
        return False

    def _children(self) -> list[JsonObject]:
        """Return the objects that the operator created and that the object of the sequence controls."""
        world, stored = self._sim.world, self._stored()
        if stored is None:
            return []
        uid = stored["metadata"]["uid"]
        return [
            obj
            for _, _, obj in world.everything()
            if world.creator(obj["metadata"]["uid"]) in world.operators
            and "deletionTimestamp" not in obj["metadata"]
            and any(
                owner["uid"] == uid and owner.get("controller")
                for owner in obj["metadata"].get("ownerReferences") or ()
            )
        ]

    async def _child_kind(self, child: JsonObject) -> Kind:
        return await self._sim.client.resolve(GroupVersionKind.parse(child["apiVersion"], child["kind"]))

    def _stored(self) -> JsonObject | None:
        metadata = placed(self._sample, self._kind_of_sample)["metadata"]
        return self._sim.world.find(self._kind_of_sample, metadata["name"], metadata.get("namespace", ""))

    # Checks of a settled operator

    async def _settle(
        self, when: str, *, quiet: float | None = None, within: float = SEQUENCE_SETTLE_TIMEOUT
    ) -> None:
        try:
            await super()._settle(when, quiet=quiet, within=within)
        except PropertyFailed as failure:
            if failure.property is not SETTLES:
                raise
            if self._check_refusals() and self._is_quiet():
                return
            if (reason := self._waits_for()) is None:
                raise
            self._check_not_ready(reason)
            self.seen.waiting[reason] = 1
        else:
            # A retry after `RetryLater(after=...)` does not count as unsettled, so the reconcile may still be failing.
            for reason in self._failing():
                self._check_not_ready(reason)

    def _check_not_ready(self, reason: str) -> None:
        """Raise PropertyFailed if the object of the sequence is Ready=True although its reconcile fails."""
        stored = self._stored()
        if stored is not None and is_ready(stored) is True:
            raise PropertyFailed(
                TRUTHFUL_STATUS,
                f"{name_of(stored)} is Ready=True, although its reconcile keeps failing: {reason}",
                f"{stored['kind']} {about_error(reason)}",
            )

    def _waits_for(self) -> str | None:
        """Return the error with which the operator keeps waiting without a write; None if it does something else."""
        if not self._is_quiet():
            return None
        failing = self._failing()
        return failing[0] if failing and all(error.startswith(_WAITING) for error in failing) else None

    def _failing(self) -> list[str]:
        """Return the errors of the last reconcile of each object."""
        last: dict[tuple[str, str], Collected] = {}
        for _, entry, _ in self.reconciles:
            last[entry.controller, str(entry.key)] = entry
        return [entry.error for entry in last.values() if entry.error]

    def _is_quiet(self) -> bool:
        """Return True if nothing was written in the last FINAL_SETTLE_SECONDS."""
        last = max(self._sim.world.last_work, self._sim.externals.last_change)
        return self._sim.loop.time() - last >= FINAL_SETTLE_SECONDS

    def _check_refusals(self) -> bool:
        """Return True if the API server refused a write for this spec and the object's status reports it.

        Raise PropertyFailed if the status does not report it.
        """
        if not self._refusals:
            return False
        stored, refusal = self._stored(), next(iter(self._refusals.values()))
        if stored is not None and any(each.get("status") == "False" for each in conditions_of(stored)):
            self.seen.reported[refusal.text] = 1
            return True
        retried = any(replica.busy_reason() for replica in self._sim.replicas)
        again = "; it is retried forever" if retried else ""
        raise PropertyFailed(VALID_SPECS, f"{refusal.text}{again}", refusal.about)

    def _on_reconcile(self, replica: str, entry: Collected) -> None:
        super()._on_reconcile(replica, entry)
        reconciled = entry.controller, str(entry.key)
        # A reconcile that succeeds later replaces an earlier refusal.
        self._refusals.pop(reconciled, None)
        for step in entry.writes:
            if step.status in _REFUSALS:
                request = step.request
                message = step.message or step.error
                self._refusals[reconciled] = _Refusal(
                    f"the API server refuses {request.verb} {request.resource} {request.name}".rstrip()
                    + f": {message}",
                    f"{request.resource} {_refused_field(message)}",
                )
        if entry.error.startswith("InvalidRequest:"):
            self._refusals[reconciled] = _Refusal(
                f"the operator fails with {entry.error}", pattern_of(entry.error)
            )
        elif entry.error.startswith("MalformedObject:"):
            self._refusals[reconciled] = _Refusal(
                f"the operator cannot read what the CRD accepts: {entry.error}", pattern_of(entry.error)
            )

    async def _check_restored(self, step: SpecStep, before: Mapping[str, Any]) -> None:
        """Raise PropertyFailed if a child that was edited or deleted by hand is not restored."""
        if before == self._outcome():
            return
        await self._settle(_after(step), quiet=FINAL_SETTLE_SECONDS)
        found = self._outcome()
        if before == found:
            return
        if reason := self.explained(before, found):
            self.seen.explained[reason] = 1
            return
        different = differences(before, found)
        lines = difference_lines(different, "before", "after it")
        raise PropertyFailed(
            SAME_FINAL_STATE,
            f"{_after(step)}, it was not restored:\n{lines}",
            f"by hand {different[0].about}",
        )

    async def _compare(self) -> None:
        """Raise PropertyFailed if the final state differs from that of the last spec alone."""
        if self._alone is None:
            return
        expected = self._alone.outcome
        if expected == self._outcome():
            return
        await self._settle("after the last change", quiet=FINAL_SETTLE_SECONDS)
        found = self._outcome()
        if expected == found:
            return
        if self._check_refusals():
            # The status reports that this spec cannot be carried out: earlier objects may stay.
            return
        if reason := self.explained(expected, found):
            self.seen.explained[reason] = 1
            return
        different = differences(expected, found)
        lines = difference_lines(different, "with the last spec alone", "after this sequence")
        raise PropertyFailed(
            SAME_FINAL_STATE,
            "the final state depends on the earlier specs: it differs from that of the last spec alone, and either of "
            f"the two may be wrong:\n{lines}",
            different[0].about,
        )

    def explained(self, expected: Mapping[str, Any], found: Mapping[str, Any]) -> str:
        """Return the condition of the object that explains a different final state; an empty string without one."""
        name = self._key()
        if name not in expected or name not in found or is_ready(found[name]) is True:
            return ""
        before = {each.get("type"): each.get("status") for each in conditions_of(expected[name])}
        for each in conditions_of(found[name]):
            if each.get("status") != "True" and before.get(each.get("type")) != each.get("status"):
                return f"{each.get('type')}={each.get('status')} ({each.get('reason')})"
        return ""

    def _key(self) -> str:
        metadata = placed(self._sample, self._kind_of_sample)["metadata"]
        namespace = metadata.get("namespace", "")
        place = f"{namespace}/{metadata['name']}" if namespace else metadata["name"]
        return f"{resource_of(self._kind_of_sample)} {place}"

    # Fields without effect

    def _note_effect(self, began: int) -> None:
        """Record whether the change of a single field changed what is written or read."""
        outcome, name = self._outcome(), self._key()
        own: JsonObject = outcome.get(name) or {}
        spec = fields_of(own)
        rest = {**outcome, name: {each: value for each, value in own.items() if each not in spec}}
        reads = self._reads(began)
        before, self._before = self._before, (spec, rest, reads)
        if before is None:
            return
        paths = list(dict.fromkeys(schema_path(path) for path in differing(before[0], spec)))
        if len(paths) != 1:
            return
        label = f"{self._sample['kind']} {paths[0]}"
        known = self.seen.effects.get(label, (0, 0))
        effect = rest != before[1] or (reads is not None and reads != before[2])
        self.seen.effects[label] = known[0] + 1, known[1] + effect

    def _reads(self, began: int) -> list[str] | None:
        """Return what the last reconcile of the object read and called; None without a reconcile since `began`."""
        name = self._sample["metadata"]["name"]
        for _, entry, _ in reversed(self.reconciles[began:]):
            if entry.kind.kind == self._sample["kind"] and entry.key.name == name:
                return sorted({text for step in entry.steps if (text := _read(step))})
        return None


def _refused_field(message: str) -> str:
    """Return the field that the API server refuses; the message's pattern if it names none."""
    found = _FIELD.search(message)
    return pattern_of(found[1] if found is not None else message)


def _read(step: Any) -> str:
    match step:
        case CachedRead():
            return f"{step.kind.kind} {step.key}"
        case CachedList():
            return f"{step.kind.kind} {step.namespace} {step.labels} {step.index_value}"
        case RequestExchange() if not step.is_write:
            return f"{step.request.resource} {step.request.name}"
        case ExternalCall():
            return f"{step.function} {step.arguments.decode()}"
        case _:
            return ""


def _after(step: SpecStep) -> str:
    if isinstance(step, ApplySpec):
        return "after a spec was applied"
    return f"after a child was {'edited' if isinstance(step, EditChild) else 'deleted'} by hand"
