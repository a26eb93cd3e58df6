"""Ready=True while a workload is still rolling out is a warning: an operator may mean something else by Ready."""

from collections.abc import Awaitable, Callable

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.testing.proving import Effort, Prover, Report, explore


class CafeSpec(kw.Model):
    replicas: int = 1


class CafeStatus(kw.Model):
    conditions: list[kw.Condition] = []


class Cafe(kw.Resource[CafeSpec, CafeStatus], group="proving.example.com", version="v1"):
    """Serves coffee."""


SAMPLE = {
    "apiVersion": "proving.example.com/v1",
    "kind": "Cafe",
    "metadata": {"name": "corner"},
    "spec": {"replicas": 2},
}


async def apply(cafe: Cafe, ctx: kw.Context) -> apps_v1.Deployment:
    labels = {"cafe": cafe.metadata.name}
    pod = core_v1.PodSpec(containers=[core_v1.Container(name="web", image="web")])
    return await ctx.apply(
        apps_v1.Deployment(
            kw.Meta(cafe.metadata.name),
            spec=apps_v1.DeploymentSpec(
                replicas=cafe.spec.replicas,
                selector=meta_v1.LabelSelector(match_labels=labels),
                template=core_v1.PodTemplateSpec(metadata=kw.Meta(labels=labels), spec=pod),
            ),
        )
    )


async def report_ready(cafe: Cafe, ctx: kw.Context, *, ready: bool) -> None:
    condition = kw.Condition(type="Ready", status="True" if ready else "False", reason="Rollout")
    await ctx.patch_status(cafe, CafeStatus(conditions=[condition]))


async def at_once(cafe: Cafe, ctx: kw.Context) -> None:
    await apply(cafe, ctx)
    await report_ready(cafe, ctx, ready=True)


async def when_rolled_out(cafe: Cafe, ctx: kw.Context) -> None:
    found = await apply(cafe, ctx)
    status = found.status
    seen = (status.observed_generation or 0) >= found.metadata.generation
    updated = (status.updated_replicas or 0) >= cafe.spec.replicas
    ready = (status.ready_replicas or 0) >= cafe.spec.replicas
    await report_ready(cafe, ctx, ready=seen and updated and ready)


def explored(reconcile: Callable[[Cafe, kw.Context], Awaitable[None]]) -> Report:
    controller = kw.Controller(Cafe, reconcile, name="cafes", owns=[apps_v1.Deployment])
    prover = Prover(lambda: kw.Operator(controller, name="cafes"), [SAMPLE])
    return explore(prover, Effort(sequences=1, only=frozenset({"specs"})))


def test_ready_while_a_deployment_rolls_out_is_a_warning_and_no_violation() -> None:
    report = explored(at_once)
    assert not report.violations, report.text()
    assert (
        "warning: Cafe was Ready=True while its Deployment was rolling out, in 3 runs: correct only if Ready is not "
        "meant to wait for it"
    ) in report.warnings()


def test_ready_after_the_rollout_of_a_deployment_is_no_warning() -> None:
    report = explored(when_rolled_out)
    assert not report.violations, report.text()
    assert not [line for line in report.warnings() if "rolling out" in line]
