"""The cache against a server that speaks for itself: embedded, or real with --server real."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import Meta, Model, ObjectKey, Resource, kind_of
from kubewright.api.builtin import rbac_v1
from kubewright.cache import Cache, Change, Selection
from kubewright.client import Client, ClusterConfig, config_from_kubeconfig, load_config, requests
from kubewright.devserver import Server
from kubewright.schema import crd
from kubewright.testing.controlplane import ControlPlane, find_binaries


class GadgetSpec(Model):
    color: str = ""


class Gadget(Resource[GadgetSpec, Model], group="cache.example.com", version="v1"):
    """A kind for these tests alone."""


class Cluster:
    """A server, its administrator, and whom else it knows."""

    def __init__(self, server: Server | ControlPlane) -> None:
        self.server = server

    async def config(self) -> ClusterConfig:
        if isinstance(self.server, Server):
            return config_from_kubeconfig(self.server.kubeconfig())
        return await asyncio.to_thread(load_config, self.server.kubeconfig)

    async def config_of(self, user: str) -> ClusterConfig:
        if isinstance(self.server, Server):
            document = self.server.kubeconfig()
            document["users"][0]["user"] = {"token": self.server.add_user(user)}
            return config_from_kubeconfig(document)
        path: Path = await self.server.add_user(user)
        return await asyncio.to_thread(load_config, path)


@pytest.fixture
def start_cluster(server_name: str) -> Callable[[], Any]:
    if server_name == "existing":
        pytest.skip("these tests install a definition and roles: not on somebody's cluster")

    binaries = find_binaries() if server_name == "real" else None

    @asynccontextmanager
    async def start() -> AsyncIterator[tuple[Cluster, Client]]:
        async with AsyncExitStack() as stack:
            server = Server() if server_name == "embedded" else ControlPlane(binaries, controllers=False)
            cluster = Cluster(await stack.enter_async_context(server))
            yield (
                cluster,
                await stack.enter_async_context(Client(await cluster.config(), field_manager="tests")),
            )

    return start


async def install(client: Client) -> None:
    await client.create(crd(Gadget))
    await eventually(lambda: client.list(Gadget))


async def eventually(attempt: Callable[[], Any]) -> Any:
    """Return what the attempt returns once it is true and raises no more."""
    async with asyncio.timeout(30):
        while True:
            try:
                found = await attempt()
                if found is not False:
                    return found
            except Exception:
                pass
            await asyncio.sleep(0.02)


@asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(cache.run())
        yield
        task.cancel()


def gadget(name: str, color: str = "") -> Gadget:
    return Gadget(Meta(name, namespace="default"), spec=GadgetSpec(color=color))


def key(name: str) -> ObjectKey:
    return ObjectKey("default", name)


@pytest.mark.parametrize("streaming", [True, False])
async def test_follows_what_others_do(start_cluster: Any, streaming: bool) -> None:
    async with start_cluster() as (_, client):
        await install(client)
        for number in range(3):
            await client.create(gadget(f"g{number}", "red"))
        cache = Cache(client, streaming=streaming)
        informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
        changes: list[Change] = []
        informer.subscribe(changes.append)
        async with running(cache):
            await informer.wait_synced()
            assert [change.initial for change in changes] == [True] * 3
            raw = informer.get_raw(key("g0"))
            assert raw is not None
            assert b"managedFields" not in raw.raw
            await client.patch(Gadget, {"spec": {"color": "blue"}}, name="g0", namespace="default")
            await client.delete(Gadget, "g1", "default")

            async def caught_up() -> bool:
                return informer.get(key("g1")) is None and informer.list()[0].spec.color == "blue"

            await eventually(caught_up)
        assert [(change.key.name, change.initial) for change in changes[3:]] == [("g0", False), ("g1", False)]


async def test_an_own_write_is_read_at_once_and_told_once(start_cluster: Any) -> None:
    async with start_cluster() as (_, client):
        await install(client)
        cache = Cache(client, field_managers=["tests"])
        informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
        changes: list[Change] = []
        informer.subscribe(changes.append)
        async with running(cache):
            await informer.wait_synced()
            for number in range(20):
                answer = await client.send(
                    requests.create(gadget(f"g{number}", "red"), field_manager="tests")
                )
                informer.record_write(answer)
                assert informer.get(key(f"g{number}")) is not None
            raw = informer.get_raw(key("g0"))
            assert raw is not None
            assert b'"manager":"tests"' in raw.raw
            await client.create(gadget("last"))

            async def seen() -> bool:
                return informer.get(key("last")) is not None

            await eventually(seen)
        assert len(changes) == 21


async def test_only_metadata_comes_where_only_that_is_wanted(start_cluster: Any) -> None:
    async with start_cluster() as (_, client):
        await install(client)
        await client.create(gadget("g", "red"))
        cache = Cache(client)
        informer = cache.informer(Selection(kind_of(Gadget), metadata_only=True), Gadget)
        async with running(cache):
            await informer.wait_synced()
            raw = informer.get_raw(key("g"))
            assert raw is not None
            assert b"red" not in raw.raw
            assert not informer.covers(key("g"))
            informer.record_write(await client.send(requests.create(gadget("h", "red"))))
            written = informer.get_raw(key("h"))
            assert written is not None
            assert b"red" not in written.raw


async def test_only_what_is_selected_comes_and_stays(start_cluster: Any) -> None:
    async with start_cluster() as (_, client):
        await install(client)
        for name in ("in", "out"):
            made = gadget(name)
            made.metadata.labels["side"] = name
            await client.create(made)
        cache = Cache(client)
        informer = cache.informer(Selection(kind_of(Gadget), "default", "side=in"), Gadget)
        async with running(cache):
            await informer.wait_synced()
            assert informer.keys() == [key("in")]
            for name, side in (("out", "in"), ("in", "out")):
                await client.patch(
                    Gadget, {"metadata": {"labels": {"side": side}}}, name=name, namespace="default"
                )

            async def changed_sides() -> bool:
                return informer.keys() == [key("out")]

            await eventually(changed_sides)


async def test_a_kind_that_is_missing_at_first_is_named_and_found_later(start_cluster: Any) -> None:
    async with start_cluster() as (_, client):
        cache = Cache(client)
        informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
        async with running(cache):

            async def reported() -> bool:
                return bool(informer.problems)

            await eventually(reported)
            assert "gadgets.cache.example.com" in informer.problems[0]
            await install(client)
            await client.create(gadget("g"))
            await informer.wait_synced(30)
            assert informer.problems == []

            async def found() -> bool:
                return informer.keys() == [key("g")]

            await eventually(found)


async def test_a_missing_rule_is_named_and_its_return_noticed(start_cluster: Any) -> None:
    async with start_cluster() as (cluster, client):
        await install(client)
        async with Client(await cluster.config_of("jane")) as janes:
            cache = Cache(janes)
            informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
            async with running(cache):

                async def reported() -> bool:
                    return bool(informer.problems)

                await eventually(reported)
                (problem,) = informer.problems
                assert 'resources: ["gadgets"], verbs: ["watch"]' in problem or '"list"' in problem
                await client.create(
                    rbac_v1.ClusterRole(
                        Meta("gadgets"),
                        rules=[
                            rbac_v1.PolicyRule(
                                api_groups=["cache.example.com"],
                                resources=["gadgets"],
                                verbs=["get", "list", "watch"],
                            )
                        ],
                    )
                )
                await client.create(
                    rbac_v1.ClusterRoleBinding(
                        Meta("gadgets"),
                        role_ref=rbac_v1.RoleRef(
                            api_group="rbac.authorization.k8s.io", kind="ClusterRole", name="gadgets"
                        ),
                        subjects=[
                            rbac_v1.Subject(api_group="rbac.authorization.k8s.io", kind="User", name="jane")
                        ],
                    )
                )
                await informer.wait_synced(30)
                assert informer.problems == []


async def test_what_happened_while_the_server_was_away_is_learned(
    start_cluster: Any, server_name: str
) -> None:
    if server_name != "real":
        pytest.skip("only processes can be taken away and brought back")
    async with start_cluster() as (cluster, client):
        await install(client)
        await client.create(gadget("before"))
        cache = Cache(client)
        informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
        async with running(cache):
            await informer.wait_synced()
            await cluster.server.stop_api_server()
            await cluster.server.start_api_server()
            await eventually(lambda: client.create(gadget("after")))
            await client.delete(Gadget, "before", "default")

            async def caught_up() -> bool:
                return informer.keys() == [key("after")]

            await eventually(caught_up)
