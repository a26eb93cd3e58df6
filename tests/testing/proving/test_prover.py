"""Prove operators: correct ones pass every case, and a wrong one fails with a small case that explains itself."""

import gc
import logging
import random
import re
import uuid
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import Invalid
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.namespaces import NamespaceSelector
from kubewright.testing import Crash, Plan, Simulation, World, Write, prove
from kubewright.testing.proving import (
    PROPERTIES,
    ApplySpec,
    Case,
    DeleteChild,
    Effort,
    ProofError,
    PropertyFailed,
    Prover,
    SpecSequence,
    explore,
    random_case,
    single_crashes,
)
from kubewright.testing.proving.cases import from_json, smaller, to_json

DOCS = Path(__file__).parents[3] / "docs" / "how-to" / "proving.md"
SAMPLE = {
    "apiVersion": "proving.example.com/v1",
    "kind": "Jar",
    "metadata": {"name": "honey"},
    "spec": {"size": 1},
}


class JarSpec(kw.Model):
    size: int = 1


class JarStatus(kw.Model):
    size: int = 0
    conditions: list[kw.Condition] = []


class Jar(kw.Resource[JarSpec, JarStatus], group="proving.example.com", version="v1"):
    """Holds something."""


READY = kw.Condition(type="Ready", status="True", reason="Filled")


def label_of(jar: Jar) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(kw.Meta(jar.metadata.name), data={"size": str(jar.spec.size)})


async def touching_all(jar: Jar, ctx: kw.Context) -> None:
    """Write the status of all jars, also of those that another replica reconciles."""
    for each in await ctx.live.list(Jar):
        await ctx.patch_status(each, JarStatus(size=each.spec.size, conditions=[READY]))


async def correct(jar: Jar, ctx: kw.Context) -> None:
    await ctx.apply(label_of(jar))
    await ctx.patch_status(jar, JarStatus(size=jar.spec.size, conditions=[READY]))


def operator_of(reconcile: Any, **options: Any) -> Callable[[], kw.Operator]:
    options.setdefault("owns", [core_v1.ConfigMap])
    return lambda: kw.Operator(kw.Controller(Jar, reconcile, name="jars", **options), name="jars")


def prover_of(reconcile: Any, **options: Any) -> Prover:
    return Prover(operator_of(reconcile, **options), [SAMPLE])


def test_a_correct_operator_holds_all_properties_in_every_case() -> None:
    report = explore(prover_of(correct), Effort(seeds=4, pairs=4, only=frozenset({"faults"})))
    assert not report.violations, report.text()
    *systematic, pairs, seeds = report.stages
    assert all(stage.run == stage.planned for stage in systematic)
    assert (pairs.run, seeds.run) == (4, 4)
    assert report.stages[0].planned >= 10
    assert "held in" in report.text()
    assert "no violation found" in report.markdown()


def test_many_runs_do_not_stay_in_memory(caplog: pytest.LogCaptureFixture) -> None:
    # A record that pytest keeps would hold an error with its frames, and so the simulation.
    caplog.set_level(logging.CRITICAL, "kubewright")
    prover = Prover(operator_of(correct), [SAMPLE])
    gc.collect()
    for seed in range(24):
        prover.run(random_case(seed, webhooks=False))
    assert sum(type(each) is Simulation for each in gc.get_objects()) <= 11


def test_an_operator_that_follows_namespaces_by_label_is_proved_in_one_of_them() -> None:
    reconciled: list[str] = []

    async def reconcile(jar: Jar, ctx: kw.Context) -> None:
        reconciled.append(jar.metadata.name)
        await correct(jar, ctx)

    def operator() -> kw.Operator:
        controller = kw.Controller(Jar, reconcile, name="jars", owns=[core_v1.ConfigMap])
        selector = NamespaceSelector("team in (a,b),shared,!archived,level>3")
        return kw.Operator(controller, name="jars", namespaces=selector)

    for case in (Case(), Case(ending="namespace")):
        reconciled.clear()
        assert Prover(operator, [SAMPLE]).run(case).failure is None
        assert reconciled


def test_crash_points_count_requests_from_the_start_of_the_operator() -> None:
    prover = prover_of(correct)
    points = prover.undisturbed().points
    assert [point.number for point in points[:4]] == [1, 2, 3, 4]
    assert points[2].request == "patch configmaps prove/honey"
    case = Case(faults=Plan((Crash(0, 3, "before"),), (0.0,)))
    failure = prover.run(case).failure
    assert failure is None
    text = prover.explain(_as_failure(case))
    assert "jars-0 crashes at `patch /api/v1/namespaces/prove/configmaps/honey`" in text


def _as_failure(case: Case) -> Any:
    from_prover = prover_of(unlucky).run(Case()).failure
    assert from_prover is not None
    return replace(from_prover, case=case)


class Careful:
    """Delete the label in the finalizer; it may be gone already."""

    async def reconcile(self, jar: Jar, ctx: kw.Context) -> None:
        await ctx.apply(label_of(jar), owned=False)

    async def finalize(self, jar: Jar, ctx: kw.Context) -> None:
        with suppress(kw.NotFound):
            await ctx.client.delete(core_v1.ConfigMap, jar.metadata.name, jar.metadata.namespace)


def test_crash_points_of_the_deletion_count_from_the_deletion_on() -> None:
    prover = prover_of(
        Careful(), finalizer="proving.example.com/jar", needs=[kw.needs(core_v1.ConfigMap, "delete")]
    )
    [deletion] = [point for point in prover.undisturbed().points if point.request.startswith("delete")]
    assert (deletion.number, deletion.late) == (1, True)
    case = next(case for case in single_crashes([deletion]))
    assert prover.run(case).failure is None
    assert "jars-0 crashes at `delete /api/v1/namespaces/prove/configmaps/honey`" in prover.explain(
        _as_failure(case)
    )


async def unlucky(jar: Jar, ctx: kw.Context) -> None:
    raise KeyError("nothing")


def test_an_exception_of_a_reconcile_is_found_with_its_line() -> None:
    with pytest.raises(
        PropertyFailed, match=r"Healthy: a reconcile failed with KeyError: 'nothing' at .*test_prover"
    ):
        prover_of(unlucky).check(Case())


def test_a_failing_run_without_faults_is_counted() -> None:
    report = explore(prover_of(unlucky), Effort(seeds=0, only=frozenset({"faults", "orders"})))
    assert report.violations
    assert report.reconciles == 1
    assert report.requests > 0
    assert report.virtual_seconds > 0
    assert report.not_run == (
        "faults and orders not explored: they are compared with the run without faults, which fails"
    )


def forgetful() -> kw.Operator:
    """Return an operator that remembers in memory which jars it labelled."""
    labelled: dict[str, int] = {}

    async def reconcile(jar: Jar, ctx: kw.Context) -> None:
        if labelled.get(jar.metadata.uid) != jar.spec.size:
            labelled[jar.metadata.uid] = jar.spec.size
            await ctx.create(
                core_v1.ConfigMap(kw.Meta(generate_name="label-"), data={"size": str(jar.spec.size)})
            )

    needs = [kw.needs(core_v1.ConfigMap, "create")]
    return operator_of(reconcile, needs=needs)()


def test_a_child_that_is_created_twice_after_a_crash_is_found_and_shrunk_to_one_crash() -> None:
    report = explore(
        Prover(forgetful, [SAMPLE, {**SAMPLE, "metadata": {"name": "jam"}}]),
        Effort(seeds=0, violations=1, only=frozenset({"faults"})),
    )
    assert report.violations
    assert report.violations[0].found.property.id in ("settles", "nothing-doubled", "same-final-state")
    assert len(report.violations[0].found.case.all_faults) <= 1
    assert len(report.violations[0].found.case.samples or (0,)) == 1


async def created_without_a_look(jar: Jar, ctx: kw.Context) -> None:
    """Create two children and note each in the status: a crash before that doubles the one or the other."""
    if jar.status.size == 0:
        await ctx.create(core_v1.ConfigMap(kw.Meta(generate_name="label-")))
        await ctx.patch_status(jar, JarStatus(size=1))
    if jar.status.size <= 1:
        await ctx.create(core_v1.Secret(kw.Meta(generate_name="key-")))
        await ctx.patch_status(jar, JarStatus(size=2))


def test_faults_go_on_after_a_violation_and_each_distinct_one_is_reduced() -> None:
    needs = [kw.needs(core_v1.ConfigMap, "create"), kw.needs(core_v1.Secret, "create")]
    prover = prover_of(created_without_a_look, owns=[core_v1.ConfigMap, core_v1.Secret], needs=needs)
    report = explore(prover, Effort(seeds=0, pairs=0, violations=2, only=frozenset({"faults"})))
    found = [violation.found for violation in report.violations]
    assert [(each.property.id, each.about) for each in found] == [
        ("nothing-doubled", "configmaps of Jar"),
        ("nothing-doubled", "secrets of Jar"),
    ], report.text()
    assert all(len(each.case.all_faults) == 1 for each in found)
    assert all(violation.timeline for violation in report.violations)
    assert sum(violation.runs for violation in report.violations) == report.stages[0].failed
    assert (
        f"Violation 2 of 2, in {report.violations[1].runs} of {report.runs} runs, first in faults"
        in report.text()
    )
    assert (
        "jars: 2 distinct violations\n1. Nothing doubled: Jar prove/honey has 2 configmaps" in report.text()
    )


async def early(jar: Jar, ctx: kw.Context) -> None:
    await ctx.patch_status(jar, JarStatus(size=jar.spec.size, conditions=[READY]))
    await ctx.apply(label_of(jar))


def test_a_status_that_is_ready_before_the_work_is_untruthful() -> None:
    with pytest.raises(
        PropertyFailed, match=r"Truthful status: Jar prove/honey reported generation 1 as done"
    ) as failed:
        prover_of(early).check(Case())
    assert failed.value.property.id == "truthful-status"


async def left_behind(jar: Jar, ctx: kw.Context) -> None:
    await ctx.apply(label_of(jar), owned=False)


def test_a_child_without_an_owner_is_left_behind() -> None:
    with pytest.raises(PropertyFailed, match=r"Nothing left: .*\nconfigmaps prove/honey"):
        prover_of(left_behind).check(Case())
    kept = Prover(operator_of(left_behind), [SAMPLE], keeps=["configmaps"])
    kept.check(Case())


def test_a_second_sample_of_the_same_object_is_its_change() -> None:
    prover = Prover(operator_of(correct), [SAMPLE, {**SAMPLE, "spec": {"size": 7}}])
    report = explore(prover, Effort(seeds=0, pairs=0, minutes=0.0001))
    assert report.samples == ["Jar honey"]
    assert report.changes == ["Jar honey spec.size: 1 -> 7"]


def test_each_part_is_begun_if_the_time_is_over() -> None:
    report = explore(Prover(operator_of(correct), [SAMPLE]), Effort(minutes=0.00001))
    assert not report.violations, report.text()
    assert [stage.run for stage in report.stages] == [1, 1, 1], report.text()
    assert report.specs.applied > 0
    assert report.stopped == "the 1e-05 minutes were not enough for faults, orders, specs"


async def granting(jar: Jar, ctx: kw.Context) -> None:
    """Create a Role with a right that the operator does not have."""
    rule = rbac_v1.PolicyRule(verbs=["get"], resources=["secrets"], api_groups=[""])
    await ctx.apply(rbac_v1.Role(kw.Meta(jar.metadata.name), rules=[rule]))


def test_a_role_that_grants_more_than_the_operator_has_is_not_within_its_rights() -> None:
    controller = kw.Controller(Jar, granting, owns=[rbac_v1.Role], name="jars")
    with pytest.raises(PropertyFailed, match=r"Within its rights: .*attempting to grant RBAC permissions"):
        Prover(lambda: kw.Operator(controller), [SAMPLE]).check(Case())


def test_an_operator_declares_what_is_meant_to_stay() -> None:
    controller = kw.Controller(Jar, left_behind, owns=[core_v1.ConfigMap], name="jars")
    Prover(lambda: kw.Operator(controller, keeps=[core_v1.ConfigMap]), [SAMPLE]).check(Case())
    with pytest.raises(PropertyFailed, match=r"Nothing left: .*\nconfigmaps prove/honey"):
        Prover(lambda: kw.Operator(controller, keeps=[core_v1.Secret]), [SAMPLE]).check(Case())


async def curious(jar: Jar, ctx: kw.Context) -> None:
    await ctx.client.list(core_v1.Secret, namespace="prove")


def test_a_request_without_a_rule_is_outside_its_rights() -> None:
    with pytest.raises(PropertyFailed, match=r"Within its rights: .*secrets"):
        prover_of(curious).check(Case())


async def restless(jar: Jar, ctx: kw.Context) -> None:
    await ctx.patch_status(jar, JarStatus(size=jar.status.size + 1))


def test_a_reconcile_that_triggers_itself_is_a_hot_loop() -> None:
    with pytest.raises(PropertyFailed, match=r"Healthy: .*a hot loop"):
        prover_of(restless).check(Case())


async def by_chance(jar: Jar, ctx: kw.Context) -> None:
    name = f"label-{uuid.uuid4().hex[:8]}"
    labels = await ctx.list(core_v1.ConfigMap, namespace=jar.metadata.namespace)
    if not any("size" in label.data for label in labels):
        await ctx.apply(core_v1.ConfigMap(kw.Meta(name), data={"size": "1"}))


def test_an_end_that_depends_on_the_run_is_found() -> None:
    report = explore(prover_of(by_chance), Effort(seeds=5, violations=1, only=frozenset({"faults"})))
    assert report.violations
    text = report.text()
    assert (
        "the final state differs from that of the run without faults; either of the two may be wrong:" in text
    )
    assert re.search(
        r"configmaps prove/label-\w+: without faults: (exists|does not exist); with this fault: (exists|does not exist)",
        text,
    )
    assert "faults ended with 1 distinct violation; there may be more (--violations)" in text


def small_jars(world: World, write: Write) -> None:
    for jar in world.objects(Jar):
        assert jar["spec"]["size"] < 2, "a jar is too large"


def test_an_invariant_of_the_author_is_checked_after_each_write() -> None:
    prover = Prover(operator_of(correct), [SAMPLE], invariants=[small_jars])
    with pytest.raises(
        PropertyFailed, match=r"Invariants: small_jars: a jar is too large, after test changed jars"
    ):
        prover.check(Case())


@prove.invariant
def labels_are_numbers(world: World, write: Write) -> None:
    """Hold for this module's operators."""
    for label in world.objects(core_v1.ConfigMap, "prove"):
        assert label["data"].get("size", "0").isdigit() or "ca.crt" in label["data"]


@prove(operator_of(correct), [SAMPLE], minutes=0.02)
def test_the_decorator_makes_a_test_of_an_operator() -> None:
    pass


def test_the_decorator_fails_with_the_timeline() -> None:
    @prove(operator_of(left_behind), [SAMPLE], seeds=0, only=["faults"])
    def wrong() -> None:
        pass

    with pytest.raises(pytest.fail.Exception, match=r"(?s)Nothing left does not hold.*you: create Jar honey"):
        wrong()


@pytest.mark.parametrize("seed", range(20))
def test_a_case_survives_json_and_shrinks_to_cases_that_do(seed: int) -> None:
    case = random_case(seed, webhooks=True)
    assert from_json(to_json(case)) == case
    for simpler in smaller(case, 2):
        assert from_json(to_json(simpler)) == simpler
        assert simpler != case


def test_each_property_is_explained_in_the_how_to() -> None:
    headings = {
        line.removeprefix("### ") for line in DOCS.read_text().splitlines() if line.startswith("### ")
    }
    assert headings >= {each.title for each in PROPERTIES}


def test_a_sample_that_the_crd_refuses_is_no_finding() -> None:
    with pytest.raises(ProofError, match=r"the server refuses sample Jar honey: .*spec.size"):
        Prover(operator_of(correct), [{**SAMPLE, "spec": {"size": "large"}}]).undisturbed()


def test_a_sample_of_an_unknown_kind_is_no_finding() -> None:
    with pytest.raises(ProofError, match=r"the operator installs no kind Bottle"):
        Prover(operator_of(correct), [{**SAMPLE, "kind": "Bottle"}]).undisturbed()


def test_an_operator_needs_samples() -> None:
    with pytest.raises(ProofError, match=r"no samples"):
        Prover(operator_of(correct), [])


def test_random_cases_are_drawn_from_their_seed_alone() -> None:
    before = [random_case(seed, webhooks=False) for seed in range(5)]
    random.seed(3)
    assert [random_case(seed, webhooks=False) for seed in range(5)] == before
    assert len(set(before)) == 5


def sharded(reconcile: Any) -> Prover:
    """Return a prover of an operator with shards, and of enough samples for both of its replicas."""
    samples = [{**SAMPLE, "metadata": {"name": name}} for name in ("honey", "jam", "mustard")]
    return Prover(
        lambda: kw.Operator(kw.Controller(Jar, reconcile, owns=[core_v1.ConfigMap]), shards=4), samples
    )


def test_an_operator_with_shards_is_proved_with_two_replicas() -> None:
    prover = sharded(correct)
    observed, failure = prover.begin()
    assert failure is None
    # Leases are renewed all the time; each request of them is one crash point.
    requests = [(point.request, point.late) for point in observed.points if " leases" in point.request]
    assert len(requests) == len(set(requests)) > 0
    crashes = [case for case in single_crashes(observed.points) if case.faults.faults]
    for case in crashes[:: len(crashes) // 2]:
        result = prover.run(case)
        assert result.failure is None
        assert result.case.replicas == 2


def test_a_write_for_an_object_of_a_shard_of_another_replica_is_found() -> None:
    _, failure = sharded(touching_all).begin()
    assert failure is not None
    assert failure.property.id == "within-rights"
    assert "writes jars.proving.example.com" in failure.message


def test_orders_of_an_operator_with_shards_are_reported_to_run_with_one_replica() -> None:
    prover = Prover(
        lambda: kw.Operator(kw.Controller(Jar, correct, owns=[core_v1.ConfigMap]), shards=2), [SAMPLE]
    )
    report = explore(prover, Effort(schedules=1, only=frozenset({"orders"})))
    assert (
        "schedules ran with one replica, which holds all shards; the other parts ran with two replicas"
        in report.coverage()
    )


def test_a_restart_is_not_shown_as_a_crash() -> None:
    prover = prover_of(correct)
    text = prover.explain(_as_failure(Case()))
    assert "jars-0 is restarted after it settled" in text
    assert "crashes" not in text


async def never_done(jar: Jar, ctx: kw.Context) -> None:
    await ctx.live.get(core_v1.ConfigMap, "missing", jar.metadata.namespace)


def test_retries_without_end_are_folded_in_the_timeline() -> None:
    prover = prover_of(never_done, needs=[kw.needs(core_v1.ConfigMap, "get")])
    _, failure = prover.begin()
    assert failure is not None
    assert failure.property.id == "settles"
    text = prover.explain(failure)
    lines = text.splitlines()
    assert len(lines) < 20, text
    assert text.count("the reconcile fails: NotFound") == 2
    assert re.search(r"\.\.\. the 2 lines above \d+ more times until [\d.]+ s \(\d+m\d\ds\) \.\.\.", text), (
        text
    )


def test_a_child_need_not_be_restored_while_the_status_reports_a_refused_spec() -> None:
    async def reporting(jar: Jar, ctx: kw.Context) -> None:
        label = label_of(jar)
        label.metadata.labels = {"size": str(jar.spec.size)}  # -1 is not a valid label value
        try:
            await ctx.apply(label)
        except Invalid as error:
            refused = kw.Condition(type="Ready", status="False", reason="Refused", message=str(error))
            await ctx.patch_status(jar, JarStatus(conditions=[refused]))
            raise
        await ctx.patch_status(jar, JarStatus(size=jar.spec.size, conditions=[READY]))

    valid, refused = ApplySpec('{"spec":{"size":1}}'), ApplySpec('{"spec":{"size":-1}}')
    deleted_twice = SpecSequence(0, (valid, refused, DeleteChild(0), valid, DeleteChild(0)))
    prover_of(reporting).check(Case(sequence=deleted_twice))

    async def forgetting(jar: Jar, ctx: kw.Context) -> None:
        if jar.status.size != jar.spec.size:
            await reporting(jar, ctx)

    with pytest.raises(PropertyFailed, match="after a child was deleted by hand, it was not restored"):
        prover_of(forgetting).check(Case(sequence=deleted_twice))
