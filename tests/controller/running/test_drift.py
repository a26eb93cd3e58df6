"""Fields that other managers change: corrected, counted, and with a brake where two managers fight."""

import logging
from typing import Any

import pytest

from kubewright.api import JsonObject, Meta, PartialMeta, kind_of
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, Options
from kubewright.controller.applying import Mismatch
from kubewright.controller.errors import ContestedField
from kubewright.controller.running.drift import FREE_CORRECTIONS, QUIET_SECONDS, DriftControl
from kubewright.controller.running.telemetry import FIELDS, Instruments, controller_log
from kubewright.manager import Manager
from kubewright.metrics import Registry
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxStatus, Paper
from .operators import events, running, settled


async def reconcile(box: Box, ctx: Context) -> None:
    await ctx.apply(Paper(Meta(box.metadata.name), text="ours", friend="box"))


def samples(manager: Manager, name: str) -> dict[str, float]:
    """Return the samples of a metric by their kind, or by nothing."""
    return {
        sample.labels.get("kind", ""): sample.value
        for family in manager.metrics.families()
        if family.name == name
        for sample in family.samples
    }


async def spoil(cluster: Cluster, patch: JsonObject) -> None:
    """Change the Paper as another field manager."""
    await cluster.client.patch(
        kind_of(Paper), patch, name="a", namespace=cluster.namespace, field_manager="rival"
    )


async def test_a_correction_is_counted_by_kind_and_logged_with_field_value_and_manager(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kubewright.controller")
    await cluster.install(Box, Paper)
    async with running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager:
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
        await spoil(cluster, {"text": "theirs"})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
        await settled(manager)
        assert samples(manager, "kubewright_drift_corrections_total") == {"Paper": 1}
        assert samples(manager, "kubewright_contested_fields_total") == {"": 0}
    [line] = [record for record in caplog.records if record.getMessage() == "Correcting drift"]
    fields = getattr(line, FIELDS)
    assert (fields["kind"], fields["field"], fields["value"], fields["manager"]) == (
        "Paper",
        "text",
        "theirs",
        "rival",
    )
    assert not await events(cluster, "DriftCorrected")


async def test_the_manager_is_named_even_if_it_took_all_our_fields(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "kubewright.controller")
    await cluster.install(Box, Paper)

    async def adopting(box: Box, ctx: Context) -> None:
        # Without owner references the child is an existing object that the box does not control.
        await ctx.apply(Paper(Meta(box.metadata.name), text="ours", friend="box"), adopt=True)

    async with running(cluster, Controller(Box, adopting, owns=[Paper])) as manager:
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
        await spoil(cluster, {"text": "theirs", "friend": "theirs", "metadata": {"ownerReferences": None}})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
        await settled(manager)
    lines = [record for record in caplog.records if record.getMessage() == "Correcting drift"]
    assert {getattr(line, FIELDS)["manager"] for line in lines} == {"rival"}


async def test_drift_is_an_event_if_the_controller_enables_it(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    boxes = Controller(Box, reconcile, owns=[Paper], options=Options(drift="event"))
    async with running(cluster, boxes):
        await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
        await spoil(cluster, {"text": "theirs"})

        async def reported() -> Any:
            return await events(cluster, "DriftCorrected")

        [event] = await eventually(reported)
    assert event.note == "text was changed by rival and is applied again by box"
    assert event.regarding.kind == "Paper"


async def test_a_change_of_the_desired_object_is_not_drift(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def by_size(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("a"), number=box.spec.size))

    async with running(cluster, Controller(Box, by_size, owns=[Paper])) as manager:
        box = await cluster.create(Box(Meta("a")))
        await cluster.eventually(Paper, "a", lambda paper: paper.number == 1)
        await cluster.client.patch(box, {"spec": {"size": 2}})
        await cluster.eventually(Paper, "a", lambda paper: paper.number == 2)
        await settled(manager)
        assert samples(manager, "kubewright_drift_corrections_total") == {}


async def test_a_fight_is_reported_once_with_both_managers_and_the_last_state_is_still_applied(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    await cluster.install(Box, Paper)
    async with running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager:
        await cluster.create(Box(Meta("a")))
        for count in range(FREE_CORRECTIONS + 2):
            await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
            await spoil(cluster, {"text": f"theirs {count}"})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")

        async def reported() -> Any:
            return await events(cluster, "FieldConflict")

        [event] = await eventually(reported)
        assert samples(manager, "kubewright_contested_fields_total") == {"": 1}
        assert manager.statistics().controllers[0].outcomes["error"] == 0
    assert event.type == "Warning"
    assert event.note.startswith("Field managers box and rival change text in turns")
    lines = [record for record in caplog.records if record.levelno >= logging.WARNING]
    conflicts = [record for record in lines if record.name == "kubewright.controller"]
    assert [getattr(record, FIELDS)["field"] for record in conflicts] == ["text"]
    assert "box and rival" in conflicts[0].getMessage()


async def test_a_reconciler_that_catches_the_drift_error_is_called_again_after_the_backoff(
    cluster: Cluster,
) -> None:
    await cluster.install(Box, Paper)
    caught: list[float] = []

    async def tolerant(box: Box, ctx: Context) -> None:
        try:
            await reconcile(box, ctx)
        except ContestedField as error:
            caught.append(error.after)

    async with running(cluster, Controller(Box, tolerant, owns=[Paper])):
        await cluster.create(Box(Meta("a")))
        for _ in range(FREE_CORRECTIONS + 1):
            await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
            await spoil(cluster, {"text": "theirs"})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "ours")
    assert caught


async def test_two_controllers_that_fight_over_a_status_are_slowed_down(cluster: Cluster) -> None:
    await cluster.install(Box)

    def claiming(note: str) -> Controller[Box]:
        async def claim(box: Box, ctx: Context) -> None:
            await ctx.patch_status(box, BoxStatus(note=note))

        return Controller(Box, claim, name=note)

    async with running(cluster, claiming("one"), claiming("two")) as manager:
        await cluster.create(Box(Meta("a")))

        async def reported() -> bool:
            return samples(manager, "kubewright_contested_fields_total") != {"": 0} and bool(
                await events(cluster, "FieldConflict")
            )

        await eventually(reported)
    [note, *_] = sorted(event.note for event in await events(cluster, "FieldConflict"))
    assert "one" in note
    assert "two" in note
    assert "status.note" in note


class Recorder:
    """Stand in for what all controllers share, as far as reports go."""

    def __init__(self) -> None:
        self.events: list[str] = []

    def publish_event(self, kind: object, about: object, type: str, reason: str, note: str) -> None:  # noqa: A002 (the field's name)
        self.events.append(reason)


def test_a_fight_is_slowed_down_and_forgotten_after_a_quiet_time() -> None:
    now, recorder = [0.0], Recorder()
    dependencies: Any = recorder
    kind, meta = kind_of(core_v1.ConfigMap), PartialMeta(name="a", namespace="ns", uid="u")
    control = DriftControl(
        "ours",
        dependencies,
        Instruments(Registry(), "box"),
        controller_log("box", kind),
        lambda: now[0],
        events=False,
    )
    drift = Mismatch(("data", "a"), "data.a", "theirs")

    def corrections(seconds: float) -> int:
        """Correct whenever that may be, ten times a second."""
        count, end = 0, now[0] + seconds
        while now[0] < end:
            if not control.remaining(meta, drift.text):
                control.correct(kind, meta, drift, ["rival"])
                count += 1
            now[0] += 0.1
        return count

    assert corrections(60) in (8, 9)
    assert corrections(3600) <= 16
    assert recorder.events == ["FieldConflict"]
    now[0] += QUIET_SECONDS + 300
    assert control.remaining(meta, drift.text) == 0
    control.correct(kind, meta, drift, ["rival"])
    assert control.remaining(meta, drift.text) == 0
    assert control.remaining(meta, "data.b") == 0
