"""Trouble of every kind on the embedded server: the operator gets over it by itself, and says what a person must do.

Time is virtual: minutes of an outage, silent streams and backoffs cost nothing.
"""

import asyncio
import dataclasses
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import pytest

from kubewright.api import ApiError, Conflict, ConnectionLost, Meta, kind_of
from kubewright.api.builtin import apiextensions_v1, rbac_v1
from kubewright.client import Impersonation
from kubewright.controller import Context, Controller, Operator, needs, rules_for
from kubewright.devserver import Match
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually
from kubewright.testing.virtual_time import virtual_time

from .kinds import Box, BoxStatus
from .operators import LONG, OPTIONS, ours, running, with_boxes

OPERATOR = "the-operator"
GROUP = "running.example.com"


async def ready_as_big(box: Box, ctx: Context) -> None:
    await ctx.patch_status(box, BoxStatus(ready=box.spec.size))


BOXES = Controller(Box, ready_as_big)


async def is_ready(cluster: Cluster, name: str, size: int) -> None:
    await cluster.eventually(Box, name, lambda box: box.status.ready == size, timeout=LONG)


@virtual_time
async def test_an_operator_recovers_from_many_429_responses() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES) as manager:
        with cluster.faults.add(match=ours(verbs=("patch",)), fail=429, retry_after=7, times=60) as storm:
            for number in range(5):
                await cluster.create(Box(Meta(f"b{number}")))
            for number in range(5):
                await is_ready(cluster, f"b{number}", 1)
        assert storm.hits == 60
        assert manager.readiness.failures() == {}


@virtual_time
async def test_watches_refused_with_429_are_opened_again() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES):
        with cluster.faults.add(match=ours(verbs=("watch",)), fail=429, retry_after=20, times=10) as storm:
            cluster.faults.cut_watches(ours(), how="reset")
            await cluster.create(Box(Meta("a")))
            await is_ready(cluster, "a", 1)
        assert storm.hits == 10


class Relay:
    """A way to the server whose connections can be made to stand still without being closed."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._stalled: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.Task[None]] = set()

    def stall(self) -> int:
        """Let nothing more through the connections that are open now; returns how many they are."""
        self._stalled = set(self._open)
        return len(self._stalled)

    @asynccontextmanager
    async def running(self) -> AsyncIterator[int]:
        server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in self._open:
                task.cancel()
            await asyncio.gather(*self._open, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        upstream, up = await asyncio.open_connection("127.0.0.1", self._target)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(reader, up, task))
                group.create_task(self._pump(upstream, writer, task))
        finally:
            self._open.discard(task)
            for end in (up, writer):
                end.close()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, task: "asyncio.Task[None]"
    ) -> None:
        try:
            while data := await source.read(65536):
                if task not in self._stalled:
                    sink.write(data)
                    await sink.drain()
            sink.close()
        except ConnectionError:
            sink.close()


@virtual_time
async def test_a_stalled_watch_is_closed_and_opened_again() -> None:
    async with with_boxes() as cluster:
        relay = Relay(urlsplit(cluster.config.server).port or 443)
        async with relay.running() as port:
            cluster.config = dataclasses.replace(cluster.config, server=f"https://127.0.0.1:{port}")
            async with running(cluster, BOXES):
                box = await cluster.create(Box(Meta("a")))
                await is_ready(cluster, "a", 1)
                assert relay.stall() > 0
                began = asyncio.get_running_loop().time()
                await cluster.client.patch(box, {"spec": {"size": 2}})
                await is_ready(cluster, "a", 2)
                # Only a timeout can have detected it: the connection was never closed.
                assert asyncio.get_running_loop().time() - began > 60


@virtual_time
async def test_an_operator_starts_while_the_server_is_down() -> None:
    async with with_boxes() as cluster:
        await cluster.create(Box(Meta("a")))
        options = dataclasses.replace(OPTIONS, namespaces=(cluster.namespace,), cache_sync_timeout=600.0)
        manager = Manager(Operator(BOXES), cluster.config, options)
        async with asyncio.TaskGroup() as group:
            with cluster.faults.add(match=ours(), fail="reset") as down:
                work = group.create_task(manager.run())
                await asyncio.sleep(180)
                assert not manager.synced.is_set()
                assert manager.readiness.failures()
                assert down.hits > 3
            await is_ready(cluster, "a", 1)
            assert manager.readiness.failures() == {}
            work.cancel()


@virtual_time
@pytest.mark.parametrize("how", ["reset", 503])
async def test_an_operator_recovers_from_an_outage_of_minutes(how: Any) -> None:
    async with with_boxes() as cluster, running(cluster, BOXES) as manager:
        box = await cluster.create(Box(Meta("a")))
        await is_ready(cluster, "a", 1)
        with cluster.faults.add(match=ours(), fail=how) as down:
            cluster.faults.cut_watches(ours(), how="reset")
            await cluster.client.patch(box, {"spec": {"size": 2}})
            await cluster.create(Box(Meta("b")))
            await asyncio.sleep(600)
            assert 10 < down.hits < 600  # less than one request a second
        await is_ready(cluster, "a", 2)
        await is_ready(cluster, "b", 1)
        assert manager.readiness.failures() == {}


@pytest.mark.parametrize("outage", [5, 30, 120])
@pytest.mark.parametrize("expired", [False, True])
def test_changes_are_reconciled_within_10_s_after_an_outage(outage: float, expired: bool) -> None:
    @virtual_time
    async def check() -> None:
        async with with_boxes() as cluster, running(cluster, BOXES):
            box = await cluster.create(Box(Meta("a")))
            await is_ready(cluster, "a", 1)
            with cluster.faults.add(match=ours(), fail="reset"):
                cluster.faults.cut_watches(ours(), how="expire" if expired else "reset")
                await cluster.client.patch(box, {"spec": {"size": 2}})
                await asyncio.sleep(outage)
            returned = asyncio.get_running_loop().time()
            await is_ready(cluster, "a", 2)
            assert asyncio.get_running_loop().time() - returned <= 10

    check()


@virtual_time
async def test_one_long_retry_after_does_not_delay_a_watch() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES):
        box = await cluster.create(Box(Meta("a")))
        await is_ready(cluster, "a", 1)
        with cluster.faults.add(
            match=ours(verbs=("watch", "list")), fail=429, retry_after=3600, times=1
        ) as once:
            cluster.faults.cut_watches(ours(), how="reset")
            began = asyncio.get_running_loop().time()
            await cluster.client.patch(box, {"spec": {"size": 2}})
            await is_ready(cluster, "a", 2)
        assert once.hits == 1
        assert asyncio.get_running_loop().time() - began <= 15


@virtual_time
async def test_an_operator_whose_watches_are_refused_for_long_is_not_ready() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES) as manager:
        with cluster.faults.add(match=ours(verbs=("watch", "list")), fail=429, retry_after=3600):
            cluster.faults.cut_watches(ours(), how="reset")
            await asyncio.sleep(120)
            assert "the watch has failed for" in str(manager.readiness.failures())
        await asyncio.sleep(30)
        assert manager.readiness.failures() == {}


@virtual_time
async def test_an_expired_watch_is_relisted_and_drops_deleted_objects() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES) as manager:
        box = await cluster.create(Box(Meta("a")))
        await is_ready(cluster, "a", 1)
        with cluster.faults.add(match=ours(verbs=("watch", "list")), fail=503):
            cluster.faults.cut_watches(ours(), how="expire")
            await cluster.client.delete(box)
            await cluster.create(Box(Meta("b")))
            await asyncio.sleep(30)
        await is_ready(cluster, "b", 1)
        await eventually(lambda: manager.statistics().cached_objects == 1, timeout=LONG)


@virtual_time
async def test_a_deletion_with_a_conflict_is_retried() -> None:
    async def take_away(box: Box, ctx: Context) -> None:
        await ctx.delete(box)

    async with with_boxes() as cluster:
        cluster.faults.add(match=ours(verbs=("delete",)), fail=409, times=2)
        async with running(cluster, Controller(Box, take_away, needs=[needs(Box, "delete")])):
            await cluster.create(Box(Meta("a")))

            async def none_left() -> bool:
                return not await cluster.client.list(Box, namespace=cluster.namespace)

            await eventually(none_left, timeout=LONG)


@virtual_time
async def test_revoked_rights_are_reported_until_they_are_granted_again() -> None:
    async with with_boxes() as cluster:
        rules = [
            rbac_v1.PolicyRule(
                api_groups=list(rule.api_groups), resources=list(rule.resources), verbs=list(rule.verbs)
            )
            for rule in rules_for(Operator(BOXES))
        ]
        role = await cluster.client.create(rbac_v1.ClusterRole(Meta(OPERATOR), rules=rules))
        await cluster.client.create(
            rbac_v1.ClusterRoleBinding(
                Meta(OPERATOR),
                role_ref=rbac_v1.RoleRef(
                    api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=OPERATOR
                ),
                subjects=[rbac_v1.Subject(kind="User", name=OPERATOR, api_group="rbac.authorization.k8s.io")],
            )
        )
        cluster.config = dataclasses.replace(cluster.config, impersonate=Impersonation(user=OPERATOR))
        async with running(cluster, BOXES) as manager:
            box = await cluster.create(Box(Meta("a")))
            await is_ready(cluster, "a", 1)
            await cluster.client.patch(role, {"rules": []}, type="merge")
            await cluster.client.patch(box, {"spec": {"size": 2}})
            cluster.faults.cut_watches(ours())

            problem = await eventually(lambda: manager.readiness.failures().get("caches"), timeout=LONG)
            assert "missing rule" in problem
            assert 'resources: ["boxes"]' in problem
            await cluster.client.patch(
                role,
                {
                    "rules": [
                        {"apiGroups": rule.api_groups, "resources": rule.resources, "verbs": rule.verbs}
                        for rule in rules
                    ]
                },
                type="merge",
            )
            await is_ready(cluster, "a", 2)
            await cluster.create(Box(Meta("b")))
            await is_ready(cluster, "b", 1)
            assert manager.readiness.failures() == {}


@virtual_time
async def test_a_crd_that_is_deleted_and_created_again_is_watched_again() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES) as manager:
        await cluster.create(Box(Meta("old")))
        await is_ready(cluster, "old", 1)
        kind = kind_of(Box)
        await cluster.client.delete(apiextensions_v1.CustomResourceDefinition, f"{kind.plural}.{kind.group}")

        await eventually(
            lambda: "is its CRD installed?" in (manager.readiness.failures().get("caches") or ""),
            timeout=LONG,
        )
        assert manager.statistics().cached_objects == 0
        await install_again(cluster)
        await cluster.create(Box(Meta("new")))
        await is_ready(cluster, "new", 1)
        assert manager.readiness.failures() == {}


async def install_again(cluster: Cluster) -> None:
    async def installed() -> bool:
        await cluster.install(Box)
        return True

    # The old definition is still being deleted.
    await eventually(installed, ignore=ApiError, timeout=LONG)


@virtual_time
async def test_a_lost_response_does_not_create_a_second_child() -> None:
    async with with_boxes() as cluster, running(cluster, BOXES):
        with cluster.faults.add(match=ours(verbs=("patch",)), fail="reset", when="after", times=3) as lost:
            await cluster.create(Box(Meta("a")))
            await is_ready(cluster, "a", 1)
            await eventually(lambda: lost.hits >= 1, timeout=LONG)


@pytest.mark.parametrize("guard", ["none", "uid", "resourceVersion"])
def test_an_element_is_appended_once_when_the_answer_is_lost(guard: str) -> None:
    @virtual_time
    async def check() -> None:
        async with with_boxes() as cluster:
            box = await cluster.create(Box(Meta("a", finalizers=[f"{GROUP}/first"])))
            version = {
                "op": "replace",
                "path": "/metadata/resourceVersion",
                "value": box.metadata.resource_version,
            }
            same = {"op": "test", "path": "/metadata/uid", "value": box.metadata.uid}
            guards: dict[str, list[dict[str, Any]]] = {
                "none": [],
                "uid": [same],
                "resourceVersion": [version],
            }
            add = {"op": "add", "path": "/metadata/finalizers/-", "value": f"{GROUP}/second"}
            with (
                cluster.faults.add(
                    match=Match(verbs=("patch",)), fail="reset", when="after", times=1
                ) as lost,
                pytest.raises((ConnectionLost, Conflict)),
            ):
                await cluster.client.patch(box, [*guards[guard], add], type="json")
            assert lost.hits == 1
            found = await cluster.get(Box, "a")
            assert found.metadata.finalizers == [f"{GROUP}/first", f"{GROUP}/second"]

    check()


@pytest.mark.parametrize("how", ["client", "context"])
def test_a_change_is_made_once_when_the_answer_to_an_update_is_lost(how: str) -> None:
    def grow(box: Box) -> None:
        box.spec.size += 1

    @virtual_time
    async def check() -> None:
        errors: list[Exception] = []

        async def reconcile(box: Box, ctx: Context) -> None:
            if box.spec.size == 1 and not errors:
                try:
                    await (ctx.client.update if how == "client" else ctx.update)(box, grow)
                except Exception as error:
                    errors.append(error)
                    raise

        async with with_boxes() as cluster:
            await cluster.create(Box(Meta("a")))
            with cluster.faults.add(
                match=ours(verbs=("patch",)), fail="reset", when="after", times=1
            ) as lost:
                async with running(cluster, Controller(Box, reconcile, needs=[needs(Box, "get", "patch")])):
                    await eventually(lambda: bool(errors), timeout=LONG)
            assert lost.hits == 1
            assert "the response to an earlier attempt was lost" in str(errors[0])
            assert (await cluster.get(Box, "a")).spec.size == 2

    check()
