"""What declared webhooks are asked on an API server: operations, subresources, conditions, selectors, built-in kinds."""

import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import ApiError, Kind, kind_of
from kubewright.api.builtin import autoscaling_v1, core_v1, policy_v1
from kubewright.client import requests
from kubewright.testing import Cluster, eventually

JsonObject = dict[str, Any]


class GaugeSpec(kw.Model):
    size: int = 0


class GaugeStatus(kw.Model):
    ready: bool = False


class Gauge(kw.Resource[GaugeSpec, GaugeStatus], group="asked.example.com", version="v1"):
    """A kind of these tests alone: others change what the cluster knows of theirs."""


class FleetSpec(kw.Model):
    size: int = 0


class FleetStatus(kw.Model):
    size: int = 0


class Fleet(
    kw.Resource[FleetSpec, FleetStatus],
    group="asked.example.com",
    version="v1",
    scale=kw.Scale(spec=".spec.size", status=".status.size"),
):
    """A kind that can be scaled."""


@kw.admission.validating_webhook(Fleet, name="fleet")
async def small(fleet: Fleet) -> AsyncIterator[kw.admission.Problem]:
    if fleet.spec.size > 5:
        yield kw.admission.invalid("spec.size", fleet.spec.size, "too many")


@kw.admission.validating_webhook(autoscaling_v1.Scale, subresources=["scale"], of=Fleet, name="fleet-scale")
def scaled(scale: autoscaling_v1.Scale, old: autoscaling_v1.Scale | None) -> Iterator[kw.admission.Problem]:
    if scale.spec.replicas > 5:
        before = old.spec.replicas if old else None
        yield kw.admission.invalid("spec.replicas", scale.spec.replicas, f"too many, after {before}")


EXEC = Kind(group="", version="v1", kind="PodExecOptions", plural="pods", builtin=True)
OURS = "webhooks=asked"
LABELS = {"webhooks": "asked"}


@kw.admission.validating_webhook(core_v1.ConfigMap, on=["create", "update", "delete"], object_selector=OURS)
def received(
    found: core_v1.ConfigMap, old: core_v1.ConfigMap | None, request: kw.admission.AdmissionRequest
) -> Iterator[kw.admission.Problem]:
    if "report" in found.data:
        shown = f"{request.operation} {request.name} by {request.user.name}, dry run {request.dry_run}, "
        yield kw.admission.denied(shown + f"before {old.data.get('a') if old else None}")
    if request.operation == "delete" and "keep" in found.data:
        yield kw.admission.denied(f"{found.metadata.name} stays")
    if "warn" in found.data:
        yield kw.admission.warning("that is unusual")
        yield kw.admission.audit("unusual", "yes")


@kw.admission.validating_webhook(
    core_v1.ConfigMap,
    object_selector=OURS,
    match_conditions={
        "named": "object.metadata.name == 'conditional'",
        "new": "request.operation == 'CREATE'",
    },
)
def conditional(found: core_v1.ConfigMap) -> Iterator[kw.admission.Problem]:
    yield kw.admission.denied("the conditions hold")


@kw.admission.validating_webhook(core_v1.ConfigMap, object_selector=OURS, namespace_selector="nowhere=yes")
def elsewhere(found: core_v1.ConfigMap) -> Iterator[kw.admission.Problem]:
    yield kw.admission.denied("never asked")


@kw.admission.mutating_webhook(core_v1.ConfigMap, object_selector=OURS, reinvocation="IfNeeded")
def counted(found: core_v1.ConfigMap) -> None:
    if "count" in found.data:
        found.data["count"] += "1"


@kw.admission.mutating_webhook(core_v1.ConfigMap, object_selector=OURS, name="zz-later")
def later(found: core_v1.ConfigMap) -> None:
    if "count" in found.data:
        found.data.setdefault("later", "yes")


@kw.admission.validating_webhook(core_v1.ConfigMap, object_selector=OURS)
def broken(found: core_v1.ConfigMap) -> None:
    if "break" in found.data:
        raise ValueError("broken on purpose")


@kw.admission.validating_webhook(Gauge, subresources=["status"], on=["update"])
def honest(gauge: Gauge) -> Iterator[kw.admission.Problem]:
    if gauge.status.ready and not gauge.spec.size:
        yield kw.admission.invalid("status.ready", True, "there is nothing to be ready")


@kw.admission.validating_webhook(
    policy_v1.Eviction,
    of=core_v1.Pod,
    subresources=["eviction"],
    on=["create"],
    match_conditions={"held": "object.metadata.name == 'held'"},
)
def held(eviction: policy_v1.Eviction) -> Iterator[kw.admission.Problem]:
    yield kw.admission.denied(f"{eviction.metadata.name} stays")


@kw.admission.validating_webhook(
    EXEC,
    of=core_v1.Pod,
    subresources=["exec"],
    on=["connect"],
    match_conditions={"held": "request.name == 'held'"},
)
def no_shell(options: JsonObject) -> Iterator[kw.admission.Problem]:
    if "sh" in options.get("command", ()):
        yield kw.admission.denied(f"no shell in {options.get('container', 'any container')}")


@kw.controller(Gauge, name="asked")
async def nothing(gauge: Gauge, ctx: kw.Context) -> None:
    pass


@kw.controller(Fleet, name="fleets")
async def fleets(fleet: Fleet, ctx: kw.Context) -> None:
    pass


ALL = [received, conditional, elsewhere, counted, later, broken, honest, held, no_shell]


def config_map(name: str, **data: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(kw.Meta(name, labels=LABELS), data=data)


@pytest.fixture
async def served(cluster: Cluster) -> AsyncIterator[Cluster]:
    async with cluster.running(kw.Operator(nothing, webhooks=ALL)):
        # Configurations are learned one after the other: ask for what each brings.
        for attempt in (
            lambda: cluster.create(config_map("p", report="")),
            lambda: evict(cluster, "held", dry_run=True),
        ):
            await refused_in_time(attempt)

        async def defaulted() -> bool:
            return bool((await cluster.client.create(probe(cluster), dry_run=True)).data["count"])

        await eventually(defaulted)
        yield cluster


def probe(cluster: Cluster) -> core_v1.ConfigMap:
    """Return an object that is defaulted and that no webhook denies."""
    made = config_map("q", count="")
    made.metadata.namespace = cluster.namespace
    return made


async def refused_in_time(attempt: Callable[[], Awaitable[Any]]) -> None:
    async def refused() -> bool:
        try:
            await attempt()
        except (kw.NotFound, kw.AlreadyExists):
            return False
        except ApiError:
            return True
        return False

    await eventually(refused)


async def evict(cluster: Cluster, name: str, **options: Any) -> None:
    await cluster.client.evict(name, cluster.namespace, **options)


async def refusal(attempt: Awaitable[Any]) -> str:
    with pytest.raises(ApiError) as caught:
        await attempt
    return caught.value.status.message


async def test_creates_and_updates_have_the_user_and_the_old_object(served: Cluster) -> None:
    text = await refusal(served.create(config_map("a", report="")))
    assert "denied the request: create a by " in text
    assert text.endswith("dry run False, before None")
    await served.create(config_map("b", a="1"))
    change, target = {"data": {"a": "2", "report": ""}}, {"name": "b", "namespace": served.namespace}
    text = await refusal(served.client.patch(core_v1.ConfigMap, change, **target, dry_run=True))
    assert "update b" in text
    assert text.endswith("dry run True, before 1")


async def test_a_delete_is_validated_with_the_deleted_object(served: Cluster) -> None:
    await served.create(config_map("kept", keep=""))
    await served.create(config_map("gone"))
    assert "kept stays" in await refusal(served.client.delete(core_v1.ConfigMap, "kept", served.namespace))
    await served.client.delete(core_v1.ConfigMap, "gone", served.namespace)


async def test_warnings_reach_the_client_and_refuse_nothing(
    served: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    await served.create(config_map("odd", warn=""))
    assert "the API server warns: that is unusual" in caplog.text


async def test_match_conditions_and_selectors_choose_the_webhooks(served: Cluster) -> None:
    assert "the conditions hold" in await refusal(served.create(config_map("conditional")))
    await served.create(config_map("other"))
    await served.create(core_v1.ConfigMap(kw.Meta("plain"), data={"report": ""}))


async def test_a_webhook_with_reinvocation_sees_later_changes(served: Cluster) -> None:
    made = await served.create(config_map("twice", count=""))
    assert made.data == {"count": "11", "later": "yes"}


async def test_an_exception_denies_the_request_but_a_stopped_run_blocks_none(
    served: Cluster,
) -> None:
    assert "ValueError: broken on purpose" in await refusal(served.create(config_map("b", **{"break": ""})))


async def test_scaling_is_validated_only_by_webhooks_declared_for_it(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async def refuse(attempt: Callable[[], Awaitable[Any]], text: str) -> None:
        await refused_in_time(attempt)
        with pytest.raises(kw.errors.Invalid, match=text):
            await attempt()

    def large() -> Awaitable[Any]:
        return cluster.client.create(
            Fleet(kw.Meta("probe", namespace=cluster.namespace), spec=FleetSpec(size=9)), dry_run=True
        )

    def scale() -> Awaitable[Any]:
        return cluster.client.scale(Fleet, "f", cluster.namespace, replicas=9, dry_run=True)

    async with cluster.running(kw.Operator(fleets, webhooks=[small])):
        await refuse(large, "too many")
        await cluster.create(Fleet(kw.Meta("f"), spec=FleetSpec(size=2)))
        assert (await scale()).spec.replicas == 9
    assert "No webhook validates scaling of fleets.asked.example.com" in caplog.text
    caplog.clear()
    async with cluster.running(kw.Operator(fleets, webhooks=[small, scaled])):
        await refuse(scale, r"spec.replicas: Invalid value: 9: too many, after 2")
        await cluster.client.scale(Fleet, "f", cluster.namespace, replicas=3)
        assert (await cluster.get(Fleet, "f")).spec.size == 3
    assert "No webhook validates scaling" not in caplog.text


async def test_a_status_is_validated_if_the_subresource_is_declared(served: Cluster) -> None:
    await served.create(Gauge(kw.Meta("empty")))
    with pytest.raises(kw.errors.Invalid, match="nothing to be ready"):
        await served.client.apply(
            {
                "apiVersion": "asked.example.com/v1",
                "kind": "Gauge",
                "metadata": {"name": "empty", "namespace": served.namespace},
                "status": {"ready": True},
            },
            field_manager="status",
            subresource="status",
        )


async def test_evictions_and_execs_are_validated(served: Cluster) -> None:
    spec = core_v1.PodSpec(containers=[core_v1.Container(name="main", image="i")])
    for name in ("held", "free"):
        await served.create(core_v1.Pod(kw.Meta(name), spec=spec))
    assert "held stays" in await refusal(evict(served, "held"))
    await evict(served, "free")
    path = requests.object_path(kind_of(core_v1.Pod), "held", served.namespace, "exec")
    asked = requests.ApiRequest(method="POST", path=path, verb="create", query="command=sh&container=main")
    assert "no shell in main" in await refusal(served.client.raw(asked))
