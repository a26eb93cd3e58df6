"""The faults of a plan are injected into an operator on any API server, through a proxy."""

import asyncio
import random
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from pathlib import Path
from typing import Any, Literal, NamedTuple

import pytest
import pytest_asyncio

import kubewright as kw
from kubewright.api import ApiError, ConfigError, ConnectionLost, Expired, Forbidden, WatchEvent
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.client import Client, ClusterConfig
from kubewright.http.server import BodyWriter, Handler, HttpServer, Request, Stream
from kubewright.testing import (
    PORTABLE,
    Cluster,
    Crash,
    CutWatches,
    DisturbedRun,
    DropBookmarks,
    FaultProxy,
    FaultTarget,
    HoldEvents,
    JumpClock,
    Lose,
    LoseResponse,
    Match,
    Pause,
    PauseLeader,
    Plan,
    PlannedFault,
    ProxyEndpoint,
    Refuse,
    RefuseRequest,
    SecondServer,
    Simulation,
    Slow,
    UnsupportedFault,
    draw_plan,
    eventually,
    simulate,
)

from .disturbed_jars import Jar, JarSpec, operator

CREATES = Match(verbs=("create",), resource="configmaps")


@pytest.fixture(autouse=True, scope="module")
def importable() -> Generator[None]:
    """Let the processes of operators import what is beside this file."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(Path(__file__).parent))
        yield


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def labels(module_cluster: Cluster) -> AsyncGenerator[DisturbedRun]:
    """Run the operator whose writes can be counted, for several tests: a process takes a while to start."""
    async with module_cluster.disturbed("disturbed_jars:doubling") as run:
        yield run


class Visitor(NamedTuple):
    """A client behind a proxy."""

    proxy: FaultProxy
    endpoint: ProxyEndpoint
    client: Client


@asynccontextmanager
async def visiting(cluster: Cluster) -> AsyncGenerator[Visitor, None]:
    """Open a client of an account with a token, behind a proxy."""
    role = rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="cluster-admin")
    subject = rbac_v1.Subject(kind="ServiceAccount", name="visitor", namespace=cluster.namespace)
    await cluster.create(core_v1.ServiceAccount(kw.Meta("visitor")))
    await cluster.create(rbac_v1.RoleBinding(kw.Meta("visitor"), role_ref=role, subjects=[subject]))
    token = await cluster.client.token_request("visitor", cluster.namespace)
    config = ClusterConfig(
        cluster.config.server, cluster.namespace, ca_data=cluster.config.ca_data, token=token.token
    )
    async with FaultProxy(config) as proxy:
        endpoint = await proxy.open_endpoint("visitor", user="visitor")
        async with Client(endpoint.config) as client:

            async def may_list() -> bool:
                await client.list(core_v1.ConfigMap, namespace=cluster.namespace)
                return True

            # A role is enforced a moment after it is bound.
            await eventually(may_list, ignore=Forbidden)
            yield Visitor(proxy, endpoint, client)


def config_map(cluster: Cluster, name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(kw.Meta(name, namespace=cluster.namespace))


Arrivals = AsyncGenerator[Sequence[WatchEvent], None]


async def open_watch(client: Client, cluster: Cluster, **options: Any) -> Arrivals:
    """Return a watch of Secrets that the server has accepted."""
    arrivals = client.watch_raw(core_v1.Secret, namespace=cluster.namespace, **options)
    assert await anext(arrivals) == ()
    return arrivals


async def until_event(arrivals: Arrivals, name: str) -> None:
    """Read events of a watch until one of an object arrives, or the watch ends."""
    async for events in arrivals:
        if any(event.object.key.name == name for event in events):
            return


async def test_requests_are_refused_with_a_status_and_counted(cluster: Cluster) -> None:
    async with visiting(cluster) as (proxy, endpoint, client):
        with proxy.faults.add(match=CREATES, fail=500, times=1) as refused:
            with pytest.raises(ApiError) as error:
                await client.create(config_map(cluster, "a"))
            assert error.value.status.reason == "InternalError"
            assert await cluster.find(core_v1.ConfigMap, "a") is None
            before = endpoint.requests
            await client.create(config_map(cluster, "a"))
        assert refused.hits == 1
        assert endpoint.requests == before + 1
        # The client sends the request again after the seconds of Retry-After.
        with proxy.faults.add(match=endpoint.match(verbs=("get",)), fail=429, retry_after=1, times=1) as busy:
            assert (await client.get(core_v1.ConfigMap, "a", cluster.namespace)).metadata.name == "a"
        assert busy.hits == 1
        with proxy.faults.add(match=Match(user="another"), fail=500):
            await client.get(core_v1.ConfigMap, "a", cluster.namespace)


@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_lost_write_is_applied_or_not(cluster: Cluster, when: Literal["before", "after"]) -> None:
    async with visiting(cluster) as (proxy, _, client):
        proxy.faults.add(match=CREATES, fail="reset", when=when, times=1)
        with pytest.raises(ConnectionLost):
            await client.create(config_map(cluster, "a"))
        assert (await cluster.find(core_v1.ConfigMap, "a") is not None) == (when == "after")


async def test_slow_requests_are_forwarded_after_the_delay(cluster: Cluster) -> None:
    async with visiting(cluster) as (proxy, _, client):
        with proxy.faults.add(match=CREATES, delay=0.05) as slow:
            await client.create(config_map(cluster, "a"))
        assert slow.hits == 1
        with proxy.faults.add(match=CREATES, delay=3600) as endless:
            creating = asyncio.create_task(client.create(config_map(cluster, "b")))
            await eventually(lambda: endless.hits)
            creating.cancel()
            await asyncio.wait([creating])
        assert await cluster.find(core_v1.ConfigMap, "b") is None


@pytest.mark.parametrize(("how", "expected"), [("end", None), ("reset", ConnectionLost), ("expire", Expired)])
async def test_watches_are_cut(
    cluster: Cluster, how: Literal["end", "reset", "expire"], expected: type[Exception] | None
) -> None:
    async with visiting(cluster) as (proxy, endpoint, client):
        async with aclosing(await open_watch(client, cluster)) as arrivals:
            await cluster.create(core_v1.Secret(kw.Meta("a")))
            await until_event(arrivals, "a")
            assert endpoint.missing_watches() == []
            assert proxy.faults.cut_watches(Match(resource="secrets"), how=how) == 1
            with nullcontext() if expected is None else pytest.raises(expected):
                await until_event(arrivals, "never created")
        await eventually(endpoint.missing_watches)


async def test_events_are_held_back_until_they_are_released(cluster: Cluster) -> None:
    async with (
        visiting(cluster) as (_, endpoint, client),
        aclosing(await open_watch(client, cluster)) as held,
    ):
        endpoint.holds_events = True
        arriving = asyncio.create_task(until_event(held, "a"))
        async with aclosing(await open_watch(cluster.client, cluster)) as direct:
            await cluster.create(core_v1.Secret(kw.Meta("a")))
            await until_event(direct, "a")
        assert not arriving.done()
        endpoint.release_events()
        await arriving


async def test_the_initial_state_of_a_watch_ends_although_bookmarks_are_dropped(cluster: Cluster) -> None:
    await cluster.create(core_v1.Secret(kw.Meta("a")))
    async with visiting(cluster) as (_, endpoint, client):
        endpoint.drops_bookmarks = True
        seen: list[WatchEvent] = []
        async with aclosing(await open_watch(client, cluster, initial_events=True)) as arrivals:
            async for events in arrivals:
                seen += events
                if seen[-1].type == "BOOKMARK":
                    break
        assert [event.type for event in seen] == ["ADDED", "BOOKMARK"]


class SlowWatch(Handler):
    """An API server that sends its events in odd pieces."""

    def handle(self, request: Request) -> Stream:
        assert request.headers["authorization"] == "Bearer secret"

        async def run(writer: BodyWriter) -> None:
            first = b'{"type":"ADDED","object":{"metadata":{"name":"a"}}}\n'
            mark = b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"5"}}}\n'
            second = first.replace(b'"a"', b'"b"')
            for piece in (first[:20], first[20:] + mark[:9], mark[9:], mark + second[:30], second[30:]):
                await writer.write(piece)

        return Stream(run)


@pytest.mark.parametrize("dropped", [True, False])
async def test_bookmarks_are_dropped_from_events_that_arrive_in_pieces(dropped: bool) -> None:
    async with HttpServer(SlowWatch(), "127.0.0.1", 0) as server:
        config = ClusterConfig(f"http://127.0.0.1:{server.port}", token="secret")
        async with FaultProxy(config) as proxy:
            endpoint = await proxy.open_endpoint("a")
            endpoint.drops_bookmarks = dropped
            async with Client(endpoint.config) as client:
                seen = [event.type async for event in client.watch(core_v1.Secret)]
    assert seen == (["ADDED", "ADDED"] if dropped else ["ADDED", "BOOKMARK", "BOOKMARK", "ADDED"])


def test_client_certificates_do_not_pass_a_proxy() -> None:
    with pytest.raises(ConfigError, match="use a token"):
        FaultProxy(ClusterConfig("https://127.0.0.1", client_cert_data=b"..."))


async def labels_of(cluster: Cluster, jar: str) -> int:
    """Wait until a Jar has a label, and return how many were created for it."""
    await cluster.eventually(Jar, jar, lambda found: found.status.label)
    found = await cluster.client.list(core_v1.ConfigMap, namespace=cluster.namespace)
    return sum(label.metadata.name.startswith(f"{jar}-") for label in found)


# A label that was created just before a crash is not known to the next process, which creates another one.
@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize(("when", "expected"), [("before", 1), ("after", 2)])
async def test_a_crash_at_a_request_loses_it_or_its_response(
    module_cluster: Cluster, labels: DisturbedRun, when: Literal["before", "after"], expected: int
) -> None:
    [replica] = labels.replicas
    await labels.settled(quiet=0.2)
    starts = replica.starts
    await Plan((Crash(0, 1, when),), (0.0,)).run(labels)
    await module_cluster.create(Jar(kw.Meta(f"plum{when}")))
    assert await labels_of(module_cluster, f"plum{when}") == expected
    assert (replica.starts, replica.exits) == (starts + 1, [])


@pytest.mark.asyncio(loop_scope="module")
async def test_single_requests_are_refused_and_lost(module_cluster: Cluster, labels: DisturbedRun) -> None:
    [replica] = labels.replicas
    await labels.settled(quiet=0.2)
    before = replica.endpoint.requests
    await Plan((RefuseRequest(0, 1, 500), LoseResponse(0, 2)), (0.0, 0.0)).run(labels)
    await module_cluster.create(Jar(kw.Meta("cherry")))
    assert await labels_of(module_cluster, "cherry") in (1, 2)
    await labels.settled(quiet=0.2)
    # A refused create, the same again, whose response is lost, and a third one, or an Event in between.
    assert replica.endpoint.requests >= before + 4


@pytest.mark.asyncio(loop_scope="module")
async def test_a_paused_operator_sends_no_request(module_cluster: Cluster, labels: DisturbedRun) -> None:
    cluster, [replica] = module_cluster, labels.replicas
    await labels.settled(quiet=0.2)
    replica.pause()
    before = replica.endpoint.requests
    async with aclosing(cluster.client.watch_raw(Jar, namespace=cluster.namespace)) as arrivals:
        assert await anext(arrivals) == ()
        await cluster.create(Jar(kw.Meta("pear")))
        await until_event(arrivals, "pear")
    assert replica.endpoint.requests == before
    assert await replica.busy_reason() == "labels-0 is paused"
    replica.resume()
    assert await labels_of(cluster, "pear") == 1


async def test_another_replica_leads_while_the_leader_is_paused(cluster: Cluster) -> None:
    async with cluster.disturbed("disturbed_jars:operator", replicas=2) as run:
        leader = await run.leader()
        assert leader is not None

        async def another_leads() -> bool:
            return await run.leader() not in (None, leader)

        leader.pause()
        await eventually(another_leads)
        await cluster.create(Jar(kw.Meta("plum"), spec=JarSpec(content="jam")))
        await cluster.eventually(Jar, "plum", lambda jar: jar.status.content == "jam")
        leader.resume()
        # It ends by itself, because it has lost its lease, and is started again.
        await eventually(lambda: leader.exits and leader.starts == 2)
        await run.settled(quiet=0.2)


EACH: Sequence[PlannedFault] = (
    Crash(0, 5, "after"),
    Pause(0, 0.3),
    PauseLeader(0.3),
    Refuse(500, (), 5, 0.5),
    Lose("after", ("patch",), 2, 0.5),
    Slow(0.2, (), 0.5),
    CutWatches("reset", 1),
    DropBookmarks(0.5),
    HoldEvents(0, 0.5),
)


@pytest.mark.parametrize(
    "plan", [Plan(tuple(EACH), (0.1,) * len(EACH)), draw_plan(random.Random(7), 4, draws=PORTABLE)]
)
async def test_the_end_is_that_of_a_run_without_faults(cluster: Cluster, plan: Plan) -> None:
    async with cluster.disturbed("disturbed_jars:operator", longest=0.5) as run:
        async with asyncio.TaskGroup() as group:
            group.create_task(plan.run(run))
            for number in range(3):
                await cluster.create(Jar(kw.Meta(f"jar-{number}"), spec=JarSpec(content="jam")))
            found = await cluster.get(Jar, "jar-0")
            await cluster.client.patch(found, {"spec": {"content": "honey"}})
        await run.settled(quiet=0.5)
        assert await contents(cluster) == {
            f"jar-{number}-{part}": "honey" if number == 0 else "jam"
            for number in range(3)
            for part in ("label", "lid")
        }
        for number in range(3):
            await cluster.client.delete(Jar, f"jar-{number}", cluster.namespace)

        async def nothing_left() -> bool:
            return await contents(cluster) == {}

        for number in range(3):
            await cluster.eventually_gone(Jar, f"jar-{number}")
        await eventually(nothing_left)
        assert run.replicas[0].starts == 2


async def contents(cluster: Cluster) -> dict[str, str]:
    """Return what the operator has created."""
    found = await cluster.client.list(core_v1.ConfigMap, namespace=cluster.namespace)
    return {item.metadata.name: item.data["content"] for item in found if "content" in item.data}


async def test_an_operator_that_does_not_start_is_reported_with_its_log(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The module is found by the test, and fails in the process."""
    failing = "import os, disturbed_jars\nif 'HERE' not in os.environ: raise OSError('no honey')\noperator = disturbed_jars.operator()\n"
    (tmp_path / "failing_jars.py").write_text(failing)
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setenv("HERE", "1")
    await asyncio.to_thread(__import__, "failing_jars")
    monkeypatch.delenv("HERE")
    with pytest.raises(RuntimeError, match=r"(?s)jars-0 did not start.*no honey"):
        async with cluster.disturbed("failing_jars:operator"):
            pass


@pytest.mark.parametrize(
    "fault", [SecondServer(0.5, 1.0), JumpClock(0, 60.0), CutWatches("expire", 1, compact=True)]
)
async def test_a_plan_with_a_fault_of_a_simulation_does_not_begin(fault: PlannedFault) -> None:
    unreachable: Any = None
    with pytest.raises(UnsupportedFault, match="only a simulation can inject this"):
        await Plan((Crash(0, 1, "before"), fault), (0.0, 0.0)).run(unreachable)


@pytest.mark.parametrize("seed", range(3))
def test_a_portable_plan_runs_in_a_simulation_too(seed: int) -> None:
    async def scenario(sim: Simulation) -> None:
        await sim.start(operator)
        target: FaultTarget = sim
        faults = asyncio.create_task(draw_plan(random.Random(seed), 4, draws=PORTABLE).run(target))
        await sim.cluster.create(Jar(kw.Meta("plum"), spec=JarSpec(content="jam")))
        await faults
        await sim.settled()
        assert await contents(sim.cluster) == {"plum-label": "jam", "plum-lid": "jam"}

    simulate(scenario, seed)
