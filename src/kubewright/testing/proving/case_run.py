"""One run of an operator: samples are created, changed and deleted while faults are injected, and properties are checked.

The steps of a run:

1. The operator starts, and the faults of the case begin.
2. The samples are created, then changed. The operator settles: no key is queued or retried, and nothing is written.
3. The final state is compared with that of the run without faults. Then the operator is restarted and must write nothing;
   in the run without faults it must also write nothing for fifteen minutes before that.
4. The samples, or their namespace, are deleted while the late faults are injected. Nothing may be left.

If the case has an order, a `MessageSchedule` delivers all messages from the creation of the samples on, except during
the restart of step 3. The schedule may also choose that the change or the deletion comes before the operator has
settled; an early deletion skips the steps before it.

`ContinuousChecks` checks properties after each write and each reconcile. The first property that does not hold ends the
run with PropertyFailed.
"""

import asyncio
import hashlib
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import msgspec

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    ApiError,
    GroupVersionKind,
    JsonObject,
    Kind,
    KubewrightError,
    Meta,
    NotFound,
)
from kubewright.api.builtin import core_v1
from kubewright.journal.records import changed_fields
from kubewright.testing.proving.cases import Case
from kubewright.testing.proving.changes import candidates
from kubewright.testing.proving.continuous_checks import ContinuousChecks, Observed, RaisedErrors, key_of
from kubewright.testing.proving.end_states import (
    SHOWN_LINES,
    about_write,
    described,
    difference_lines,
    differences,
    shown,
)
from kubewright.testing.proving.operator_state import SeenStates, state_of
from kubewright.testing.proving.properties import (
    HEALTHY,
    NOTHING_LEFT,
    SAME_FINAL_STATE,
    SETTLES,
    TRUTHFUL_STATUS,
    WITHIN_RIGHTS,
    PropertyFailed,
    about_error,
)
from kubewright.testing.proving.status_claims import is_ready
from kubewright.testing.proving.subject import NAMESPACE, ProofError, Subject, foreign_kinds, name_of, placed
from kubewright.testing.simulation import MessageSchedule, Simulation, Write, outcome_of
from kubewright.testing.simulation.schedule import Message
from kubewright.testing.simulation.simulation import QUIET

IDLE_CHECK_SECONDS = 900.0
"""Seconds for which a settled operator must write nothing in the run without faults."""
FINAL_SETTLE_SECONDS = 600.0
"""Seconds without a write before a final state that differs is reported: an operator may correct it after a requeue."""
SETTLE_TIMEOUT = 4000.0
"""Seconds after the last change and fault in which an operator must settle: several of the longest backoffs."""
QUIET_WITHOUT_FAULTS = 45.0
"""Seconds without a write after which an operator counts as settled if there was no fault since the last change."""
TOUCHES = 6
"""How often an annotation of each sample is changed in the run without faults, to find tasks that pile up."""
_FIELD_MANAGER = "kubectl"
_TOUCHED = "prove.kubewright.dev/touched"
_START_QUIET = 20.0
_CHANGE = "change the samples"
_DELETE = "delete everything"
_RETRY_SECONDS = 900.0


class CaseRun(ContinuousChecks):
    """Run one case; see the module."""

    def __init__(
        self, subject: Subject, case: Case, expected: Observed | None, seen: SeenStates | None = None
    ) -> None:
        super().__init__(subject, case, expected, seen)
        self._history = hashlib.blake2b(digest_size=16)
        self._hashed = 0
        self.schedule: MessageSchedule | None = None
        """Decides in which order messages arrive; None until it is in control, and in cases without an order."""
        self.pruned = False
        """True if the run was ended because another run had been in the same state."""

    async def execute(self, sim: Simulation) -> Observed:
        """Run the steps; raise PropertyFailed if a property does not hold."""
        self._sim = sim
        handler = RaisedErrors(self._on_error)
        log = logging.getLogger("kubewright")
        log.addHandler(handler)
        try:
            await self._run_steps()
        finally:
            log.removeHandler(handler)
        return self.observed

    def count(self) -> None:
        """Set the counts of `observed`, also after a run that failed."""
        sim = self._sim
        self.observed.requests = sum(replica.endpoint.requests for replica in sim.replicas)
        self.observed.writes = len(sim.world.work())
        self.observed.seconds = sim.loop.time()

    # The steps of a run

    async def _run_steps(self) -> None:
        sim, case = self._sim, self._case
        await self._start()
        self._read_schemas()
        before = outcome_of(sim.world)
        resources = sim.externals.resources()
        async with asyncio.TaskGroup() as group:
            group.create_task(case.faults.run(sim))
            if case.pauses is None and not self.observed.webhooks:
                await self._settle("after its start", quiet=_START_QUIET)
            self._control()
            await self._create()
            early = ""
            if case.change:
                if case.pauses is None:
                    early = await self._settle_or_take_offer(
                        "between two changes", _CHANGE, _DELETE, quiet=QUIET_WITHOUT_FAULTS
                    )
                else:
                    await asyncio.sleep(case.pauses[0])
                if early != _DELETE:
                    await self._change()
        if early != _DELETE:
            quiet = None if case.disturbed else QUIET_WITHOUT_FAULTS
            early = await self._settle_or_take_offer("after the last change and fault", _DELETE, quiet=quiet)
        if early != _DELETE:
            await self._check_end()
            self.observed.outcome = self._outcome()
            self.observed.external = bool(sim.externals.systems)
            self._records_crash_points = self._exploring = False
            await self._check_stays_idle()
            if self._expected is None:
                await self._touch()
        self._records_crash_points = self._deleting = self._exploring = True
        self._deletion_origin = sim.replicas[0].endpoint.requests
        async with asyncio.TaskGroup() as group:
            group.create_task(case.late_faults.run(sim))
            await self._delete()
        quiet = None if case.late_faults.faults or case.order else QUIET_WITHOUT_FAULTS
        await self._settle("after everything was deleted", quiet=quiet)
        await self._check_left(before, resources)
        self._check_healthy()

    def _control(self) -> None:
        """Let a MessageSchedule deliver the messages, if the case has an order."""
        if self._case.order is None:
            return
        self.schedule = self._sim.control(self._case.order)
        self.schedule.crash = self._sim.replicas[0].crash
        if self._seen is not None and not self._seen.off:
            self.schedule.state = self._check_state
        self._exploring = True

    def _check_state(self, transit: Sequence[Message], held: Sequence[str]) -> bytes:
        """Return the hash of the state at a choice point; raise StateSeen if another run has been in it."""
        sim, replica = self._sim, self._sim.replicas[0]
        assert self._seen is not None
        if sim.loop.failures:
            # The failure is reported at the end of this run, so the run must not be pruned.
            return b""

        def state() -> bytes:
            entries = sim.trace.entries
            for entry in entries[self._hashed :]:
                if entry.what in ("write", "crash"):
                    self._history.update(f"{entry.what} {entry.subject} ".encode() + entry.data)
            self._hashed = len(entries)
            found = self._history.copy()
            assert self.schedule is not None
            parts: list[Any] = [
                sim.loop.time(),
                sim.loop.ticks,
                self._deleting,
                self.schedule.offers,
                list(held),
            ]
            parts += [replica.endpoint.requests, sim.loop.timers_of(None), sim.cluster_timers()]
            parts += [[each.channel, each.kind, each.subject, each.content] for each in transit]
            found.update(repr(parts).encode())
            if replica.running and replica.process is not None:
                found.update(state_of(sim.loop, replica.process))
            return found.digest()

        return self._seen.check(state, None if replica.manager is None else replica.manager.operator)

    @property
    def _exploring(self) -> bool:
        return self.schedule is not None and self.schedule.exploring

    @_exploring.setter
    def _exploring(self, value: bool) -> None:
        if self.schedule is not None:
            self.schedule.exploring = value

    async def _settle_or_take_offer(self, when: str, *offers: str, quiet: float | None) -> str:
        """Wait until the operator has settled, or until the schedule takes one of the offered steps.

        Return the step that was taken; an empty string if the operator settled first.
        """
        if self.schedule is None:
            await self._settle(when, quiet=quiet)
            return ""
        early: asyncio.Future[str] = self._sim.loop.create_future()
        for offer in offers:
            self.schedule.offer(offer, partial(early.set_result, offer))
        rest = asyncio.create_task(self._settle(when, quiet=quiet))
        await asyncio.wait([early, rest], return_when=asyncio.FIRST_COMPLETED)
        self.schedule.withdraw_offers()
        if rest.done():
            rest.result()
            return ""
        rest.cancel()
        await asyncio.wait([rest])
        return early.result()

    async def _start(self) -> None:
        sim, case = self._sim, self._case
        operator = self._subject.make()
        # If the operator selects namespaces by label, the samples' namespace must have the label.
        labels = {} if operator.namespaces is None else operator.namespaces.example()
        await self._retry_request(
            lambda: sim.client.create(core_v1.Namespace(Meta(NAMESPACE, labels=labels)))
        )
        definitions = [
            sample for sample in self._subject.samples if sample["kind"] == "CustomResourceDefinition"
        ]
        for definition in definitions:
            await sim.client.apply(definition, field_manager=_FIELD_MANAGER, kind=CUSTOM_RESOURCE_DEFINITION)
        self._install_checks(operator)
        self.observed.webhooks = bool(operator.webhooks)
        await sim.start(self._subject.make, replicas=case.replicas, kinds=foreign_kinds(operator))
        if self.observed.webhooks:
            # Samples that are created before the webhooks are registered would not be validated by them.
            await self._settle("after its start", quiet=_START_QUIET)
        # Requests are numbered from here on.
        self._origin = sim.replicas[0].endpoint.requests
        self.observed.points.clear()
        self._lease_requests.clear()

    def _read_schemas(self) -> None:
        """Read the schemas of the samples' kinds from the CRDs of the cluster."""
        for number in self._chosen():
            sample = self._subject.samples[number]
            group, _, version = sample["apiVersion"].rpartition("/")
            for crd in self._sim.world.objects(CUSTOM_RESOURCE_DEFINITION):
                spec: JsonObject = crd["spec"]
                if (spec["group"], spec["names"]["kind"]) == (group, sample["kind"]):
                    self.observed.schemas.update(
                        (number, each["schema"]["openAPIV3Schema"])
                        for each in spec["versions"]
                        if each["name"] == version and "openAPIV3Schema" in (each.get("schema") or {})
                    )

    async def _create(self) -> None:
        for number in self._chosen():
            sample = self._subject.samples[number]
            await self._apply(sample, f"create {name_of(sample)}")

    async def _change(self) -> None:
        for number in self._chosen():
            if self._expected is None:
                await self._find_change(number)
            known = self.observed.changes if self._expected is None else self._expected.changes
            if number in known:
                text, changed = known[number]
                await self._apply(changed, f"change {name_of(changed)}: {text}")

    async def _find_change(self, number: int) -> None:
        """Choose the change of a sample: a later sample of the same object, or one that the server and the webhooks accept."""
        sample = self._subject.samples[number]
        if (declared := self._subject.declared_change(number)) is not None:
            changes = "; ".join(str(change) for change in changed_fields(sample, declared))
            self.observed.changes[number] = changes or "applied again", declared
            return
        kind = await self._kind(sample)
        if kind.builtin:
            return
        for text, changed in candidates(sample):
            try:
                await self._sim.client.apply(
                    placed(changed, kind), field_manager=_FIELD_MANAGER, kind=kind, dry_run=True
                )
            except ApiError:
                continue
            self.observed.changes[number] = text, changed
            return

    async def _delete(self) -> None:
        sim = self._sim
        if self._case.pauses is not None:
            await asyncio.sleep(self._case.pauses[1])
        for number in reversed(self._chosen()):
            sample = self._subject.samples[number]
            kind = await self._kind(sample)
            if (
                kind.namespaced
                and self._case.ending == "namespace"
                and not sample["metadata"].get("namespace")
            ):
                continue
            metadata = placed(sample, kind)["metadata"]
            sim.change(f"delete {name_of(sample)}")
            await self._retry_request(partial(_delete_object, sim, kind, metadata))
        if self._case.ending == "namespace":
            sim.change(f"delete Namespace {NAMESPACE}")
            await self._retry_request(lambda: sim.client.delete(core_v1.Namespace, NAMESPACE))

    async def _touch(self) -> None:
        """Change an annotation several times; raise PropertyFailed if each change leaves more tasks behind."""
        sim = self._sim
        tasks: list[int] = []
        for touch in range(TOUCHES):
            for number in self._chosen():
                sample = self._subject.samples[number]
                kind = await self._kind(sample)
                metadata = placed(sample, kind)["metadata"]
                patch = {"metadata": {"annotations": {_TOUCHED: str(touch)}}}
                await sim.client.patch(
                    kind, patch, name=metadata["name"], namespace=metadata.get("namespace", "")
                )
            await self._settle("after an annotation was changed", quiet=_START_QUIET)
            process = sim.replicas[0].process
            tasks.append(0 if process is None else len(sim.loop.tasks_of(process)))
        growth = [later - earlier for earlier, later in pairwise(tasks[1:])]
        if all(more > 0 for more in growth):
            raise PropertyFailed(
                HEALTHY,
                f"each of {TOUCHES} changes of an annotation left tasks behind that never end: {tasks} tasks after the changes",
            )

    async def _apply(self, sample: JsonObject, what: str) -> None:
        kind = await self._kind(sample)
        self._sim.change(what)
        document = placed(sample, kind)
        try:
            await self._retry_request(
                lambda: self._sim.client.apply(document, field_manager=_FIELD_MANAGER, kind=kind)
            )
        except ApiError as error:
            if self._expected is not None and not isinstance(error, NotFound):
                raise
            raise ProofError(f"the server refuses sample {name_of(sample)}: {error}") from error

    async def _kind(self, sample: JsonObject) -> Kind:
        gvk = GroupVersionKind.parse(sample["apiVersion"], sample["kind"])
        try:
            return await self._sim.client.resolve(gvk)
        except NotFound:
            raise ProofError(
                f"sample {name_of(sample)}: the operator installs no kind {sample['kind']} of {sample['apiVersion']}: "
                "correct the sample, or add the CustomResourceDefinition to the samples"
            ) from None

    async def _retry_request(self, request: Callable[[], Awaitable[object]]) -> None:
        """Send a request; repeat it while it fails with a server error, such as a webhook that cannot be reached."""
        until = self._sim.loop.time() + _RETRY_SECONDS
        while True:
            try:
                await request()
            except KubewrightError as error:
                refused = isinstance(error, ApiError) and error.status.code < 500
                if refused or self._sim.loop.time() > until:
                    raise
                await asyncio.sleep(1)
            else:
                return

    def _chosen(self) -> Sequence[int]:
        samples = self._subject.samples
        chosen = range(len(samples)) if self._case.samples is None else self._case.samples
        return [
            number
            for number in chosen
            if samples[number]["kind"] != "CustomResourceDefinition" and not self._subject.is_change(number)
        ]

    # Checks of a settled operator

    async def _settle(self, when: str, *, quiet: float | None = None, within: float = SETTLE_TIMEOUT) -> None:
        sim = self._sim
        try:
            await sim.settled(quiet=QUIET if quiet is None else quiet, within=within)
        except AssertionError as error:
            self._check_healthy()
            text = f"{when}: {str(error).partition(chr(10) + 'the last writes')[0]}"
            failed = next((entry for _, entry, _ in reversed(self.reconciles) if entry.error), None)
            if failed is None:
                last_writes = sim.world.work()[-1:]
                about = " ".join(about_write(write) for write in last_writes)
                raise PropertyFailed(SETTLES, text, f"unsettled {about}") from None
            # RBAC's escalation check refused it, for example a Role that grants more than the operator has.
            broken = WITHIN_RIGHTS if failed.error.startswith("Forbidden:") else SETTLES
            last = f"the last reconcile that failed, of {failed.kind.kind} {key_of(failed)}: {failed.error}"
            about = f"{failed.kind.kind} {about_error(failed.error)}"
            raise PropertyFailed(broken, f"{text}; {last}", about) from None

    async def _check_stays_idle(self) -> None:
        if self._expected is None:
            before = self._work_done()
            await self._settle("after it had settled", quiet=IDLE_CHECK_SECONDS)
            self._check_idle(before, f"within {IDLE_CHECK_SECONDS:g} s after it had settled")
        await self._restart()

    async def _restart(self) -> None:
        before = self._work_done()
        for replica in self._sim.replicas:
            replica.restart()
        await self._settle("after a restart", quiet=QUIET_WITHOUT_FAULTS)
        self._check_idle(before, "after it had settled and was restarted")

    def _work_done(self) -> tuple[int, int]:
        """Return the number of writes, and of changes of external systems, so far."""
        return len(self._sim.world.work()), len(self._sim.externals.changes)

    def _check_idle(self, before: tuple[int, int], when: str) -> None:
        """Raise PropertyFailed if the operator wrote anything since `_work_done` returned `before`."""
        if calls := self._sim.externals.changes[before[1] :]:
            # Of `jars-0 Dns: create honey`, the words `Dns: create`.
            about = " ".join(calls[0].split()[1:3])
            lines = "\n".join(calls[:SHOWN_LINES])
            raise PropertyFailed(SETTLES, f"the operator changed an external system {when}:\n{lines}", about)
        more = self._sim.world.work()[before[0] :]
        if not more:
            return
        lines = "\n".join(described(write) for write in more[:SHOWN_LINES])
        for write in more:
            if ready := self._claims_ready(write):
                raise PropertyFailed(
                    TRUTHFUL_STATUS,
                    f"{ready} was Ready=True, and the operator still wrote {when}:\n{lines}",
                    about_write(write),
                )
        raise PropertyFailed(SETTLES, f"the operator wrote {when}:\n{lines}", about_write(more[0]))

    def _claims_ready(self, write: Write) -> str:
        """Return the object that was Ready=True before this write: the written one or an owner; empty if neither was."""
        world = self._sim.world
        if write.before is not None and is_ready(write.before) is True:
            return f"{write.before['kind']} {write.key}"
        for owner in write.object["metadata"].get("ownerReferences") or ():
            for resource, key, obj in world.everything():
                if obj["metadata"]["uid"] == owner["uid"] and is_ready(obj) is True:
                    return f"{owner['kind']} {key} ({resource})"
        return ""

    async def _check_end(self) -> None:
        if self._expected is None:
            return
        expected = self._expected.outcome
        if expected == self._outcome():
            return
        await self._settle("after the last change and fault", quiet=FINAL_SETTLE_SECONDS)
        found = self._outcome()
        if expected == found:
            return
        different = differences(expected, found)
        lines = difference_lines(different, "without faults", self._this_run())
        raise PropertyFailed(
            SAME_FINAL_STATE,
            f"the final state differs from that of the run without faults; either of the two may be wrong:\n{lines}",
            different[0].about,
        )

    def _this_run(self) -> str:
        """Return the label of this run in messages, beside the run without faults."""
        if self._case.order is not None:
            return "in this order"
        faults = len(self._case.all_faults)
        return "with this fault" if faults == 1 else "with these faults" if faults else "in this run"

    def _outcome(self) -> dict[str, Any]:
        resources = {
            f"external {name}": sorted(found, key=msgspec.json.encode)
            for name, found in self._sim.externals.resources().items()
        }
        return {**outcome_of(self._sim.world), **resources}

    async def _check_left(self, before: Mapping[str, Any], resources: Mapping[str, Any]) -> None:
        if not self._left(before) and self._sim.externals.resources() == resources:
            return
        await self._settle("after everything was deleted", quiet=FINAL_SETTLE_SECONDS)
        if more := {
            name: found
            for name, found in self._sim.externals.resources().items()
            if found != resources.get(name)
        }:
            lines = [f"{name}: {shown(found)}" for name, found in more.items()]
            raise PropertyFailed(
                NOTHING_LEFT,
                "after everything was deleted, External.resources() of external systems still returns:\n"
                + "\n".join(lines[:SHOWN_LINES]),
                " ".join(sorted({f"external {name.partition(' ')[0]}" for name in more})),
            )
        left = self._left(before)
        if not left:
            return
        lines = [f"{name}{_why_left(obj)}" for name, obj in sorted(left.items())[:SHOWN_LINES]]
        about = sorted({f"{name.partition(' ')[0]}{_why_left(obj)}" for name, obj in left.items()})
        raise PropertyFailed(
            NOTHING_LEFT,
            "after everything was deleted, these objects still exist:\n" + "\n".join(lines),
            " ".join(about),
        )

    def _left(self, before: Mapping[str, Any]) -> dict[str, Any]:
        return {
            name: obj
            for name, obj in outcome_of(self._sim.world).items()
            if name not in before and name.partition(" ")[0] not in self._subject.keeps
        }

    def _check_healthy(self) -> None:
        if failures := self._sim.loop.failures:
            error = failures[0].get("exception")
            raise PropertyFailed(
                HEALTHY, f"a task failed and nothing awaited it: {failures[0].get('message')}: {error!r}"
            )


async def _delete_object(sim: Simulation, kind: Kind, metadata: JsonObject) -> None:
    try:
        await sim.client.delete(kind, metadata["name"], metadata.get("namespace", ""))
    except NotFound:
        return


def _why_left(obj: JsonObject) -> str:
    finalizers: list[str] = obj["metadata"].get("finalizers") or []
    return f" (finalizers: {', '.join(finalizers)})" if finalizers else ""
