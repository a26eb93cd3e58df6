"""`eventually`: polling until a condition is true, in real and in virtual time."""

import asyncio
from collections.abc import Callable

import pytest

from kubewright.api import ApiError, Meta, NotFound
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.testing import Cluster, embedded, eventually, virtual_time


def after(calls: int, result: object = True) -> Callable[[], object]:
    """Return a function that returns a result only after some calls."""
    left = iter(range(calls))
    return lambda: next(left, None) is None and result


@virtual_time
async def test_eventually_returns_the_first_result_that_is_true() -> None:
    assert await eventually(after(5, "done")) == "done"


@virtual_time
async def test_eventually_awaits_asynchronous_functions() -> None:
    done = after(5, "done")

    async def look() -> object:
        await asyncio.sleep(1)
        return done()

    assert await eventually(look) == "done"


@virtual_time
async def test_eventually_waits_while_an_item_or_an_attribute_of_none_is_missing() -> None:
    found: dict[str, Meta | None] = {}
    loop = asyncio.get_running_loop()
    loop.call_later(1, lambda: found.update(a=None))
    loop.call_later(2, lambda: found.update(a=Meta("x")))
    assert await eventually(lambda: found["a"].name) == "x"
    assert loop.time() >= 2


@virtual_time
async def test_eventually_raises_the_last_result_or_exception_on_timeout() -> None:
    with pytest.raises(AssertionError, match=r"after 30 s waiting until the lamp is on: it returned 0 last"):
        await eventually(lambda: 0, timeout=30, message="the lamp is on")
    found: dict[str, str] = {}
    with pytest.raises(AssertionError, match="<lambda> is true: it raised KeyError: 'a' last") as caught:
        await eventually(lambda: found["a"], timeout=30)
    assert isinstance(caught.value.__cause__, KeyError)


@virtual_time
async def test_eventually_raises_exceptions_that_are_not_ignored() -> None:
    def fail() -> None:
        raise TimeoutError("of its own")

    with pytest.raises(TimeoutError, match="of its own"):
        await eventually(fail)
    with pytest.raises(AssertionError, match="it raised TimeoutError: of its own last"):
        await eventually(fail, ignore=TimeoutError)


@virtual_time
async def test_eventually_polls_seldom_in_a_long_wait() -> None:
    calls: list[float] = []
    loop = asyncio.get_running_loop()

    def look() -> bool:
        calls.append(loop.time())
        return loop.time() > 3600

    await eventually(look, timeout=7200)
    assert len(calls) < 1000


@virtual_time
async def test_eventually_does_not_move_a_virtual_clock_without_an_interval() -> None:
    assert await eventually(after(1000), interval=0)
    assert asyncio.get_running_loop().time() == 0


async def test_eventually_ignores_not_found_by_default(cluster: Cluster) -> None:
    async def create() -> None:
        with pytest.raises(NotFound):
            await cluster.get(core_v1.ConfigMap, "late")
        await cluster.create(core_v1.ConfigMap(Meta("late")))

    async with asyncio.TaskGroup() as group:
        waiting = group.create_task(eventually(lambda: cluster.get(core_v1.ConfigMap, "late")))
        group.create_task(create())
    assert waiting.result().metadata.name == "late"


@virtual_time
async def test_an_embedded_server_without_controllers_creates_no_replica_sets() -> None:
    async with embedded(controllers=False) as cluster:
        labels = {"app": "web"}
        template = core_v1.PodTemplateSpec(
            metadata=Meta(labels=labels),
            spec=core_v1.PodSpec(containers=[core_v1.Container(name="main", image="web:1")]),
        )
        spec = apps_v1.DeploymentSpec(selector=meta_v1.LabelSelector(match_labels=labels), template=template)
        await cluster.create(apps_v1.Deployment(Meta("web"), spec=spec))
        await cluster.create(core_v1.Pod(Meta("web"), spec=template.spec))
        await asyncio.sleep(600)
        assert await cluster.client.list(apps_v1.ReplicaSet, namespace=cluster.namespace) == []
        with cluster.faults.add(fail=503), pytest.raises(ApiError):
            await cluster.get(core_v1.Pod, "web")
