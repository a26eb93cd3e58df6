"""Namespaces by label: followed as they come and go, read whole or not at all, and left as they are."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest

from kubewright.api import DeclarationError, Meta, ObjectKey, Resource
from kubewright.api.builtin import core_v1, events_v1, rbac_v1
from kubewright.client import ClusterConfig
from kubewright.controller import Context, Controller, Operator, Result, watch
from kubewright.devserver import Match
from kubewright.election import ElectionOptions
from kubewright.manager import Manager
from kubewright.namespaces import NamespaceSelector
from kubewright.shards import Shards
from kubewright.testing import Cluster, RunningEnvironment, embedded, eventually, isolated

from .controller.running.conftest import cluster, known_types  # noqa: F401 (fixtures)
from .controller.running.kinds import Box, BoxSpec, BoxStatus
from .controller.running.operators import options, settled, started
from .test_shards import QUICK

LABEL = "followed.example.com/team"
FINALIZER = "running.example.com/box"


class Zone(Resource[BoxSpec, BoxStatus], group="running.example.com", version="v1", scope="Cluster"):
    """Lies outside namespaces and has children in them."""


class Tenants:
    """Namespaces of one test, selected by a label value that no other test uses."""

    def __init__(self, cluster: Cluster) -> None:  # noqa: F811 (a fixture)
        self.cluster = cluster
        self.selector = NamespaceSelector(f"{LABEL}={cluster.namespace}")
        self.created: list[str] = []

    async def create(self, name: str, *, followed: bool) -> str:
        """Create a namespace, and return its whole name."""
        full = f"{self.cluster.namespace}-{name}"
        labels = {LABEL: self.cluster.namespace} if followed else {}
        await self.cluster.client.create(core_v1.Namespace(Meta(full, labels=labels)))
        self.created.append(full)
        return full

    async def label(self, name: str, *, followed: bool) -> None:
        """Add the label to a namespace, or remove it."""
        value = self.cluster.namespace if followed else None
        await self.cluster.client.patch(
            core_v1.Namespace, {"metadata": {"labels": {LABEL: value}}}, name=name, type="merge"
        )

    async def box(self, namespace: str, name: str = "box", **more: Any) -> Box:
        """Create a Box."""
        return await self.cluster.client.create(Box(Meta(name, namespace=namespace, **more)))

    async def resize(self, namespace: str, size: int, name: str = "box") -> None:
        """Change a Box."""
        await self.cluster.client.patch(
            Box, {"spec": {"size": size}}, name=name, namespace=namespace, type="merge"
        )

    @asynccontextmanager
    async def running(self, *controllers: Controller[Any], **more: Any) -> AsyncIterator[Manager]:
        """Run controllers in the namespaces with the label."""
        operator = Operator(*controllers, namespaces=self.selector, **more)
        async with self.cluster.running(operator, options=options(), as_admin=True, install=False) as manager:
            yield manager


@pytest.fixture
async def tenants(cluster: Cluster) -> AsyncIterator[Tenants]:  # noqa: F811 (a fixture)
    """Provide namespaces on the server of the test, which serves the kind Box."""
    await cluster.install(Box, Zone)
    made = Tenants(cluster)
    yield made
    for name in made.created:
        await cluster.client.delete(core_v1.Namespace, name)


class Seen:
    """A reconciler that notes the sizes and deletions of boxes; `child` has it apply a ConfigMap."""

    def __init__(self, result: Result | None = None, *, child: bool = False) -> None:
        self.sizes: set[tuple[str, int]] = set()
        self.finalized: list[str] = []
        self._result = result
        self._child = child

    async def reconcile(self, box: Box, ctx: Context) -> Result | None:
        if self._child:
            await ctx.apply(core_v1.ConfigMap(Meta("box"), data={"size": str(box.spec.size)}))
        self.sizes.add((box.metadata.namespace, box.spec.size))
        return self._result

    async def finalize(self, box: Box, ctx: Context) -> None:
        self.finalized.append(box.metadata.namespace)


async def test_a_namespace_is_followed_from_when_it_gets_its_label_until_it_loses_it(
    tenants: Tenants,
) -> None:
    first, second = await tenants.create("a", followed=True), await tenants.create("b", followed=False)
    for name in (first, second):
        await tenants.box(name)
    seen = Seen(child=True)
    controller = Controller(Box, seen, owns=[core_v1.ConfigMap], finalizer=FINALIZER)
    async with tenants.running(controller) as manager:
        await eventually(lambda: (first, 1) in seen.sizes)
        assert (second, 1) not in seen.sizes
        await tenants.label(second, followed=True)
        await eventually(lambda: (second, 1) in seen.sizes)
        await tenants.label(first, followed=False)
        await eventually(lambda: manager.describe()["namespaces"]["followed"] == [second])
        await tenants.resize(first, 7)
        await tenants.resize(second, 7)
        await eventually(lambda: (second, 7) in seen.sizes)
        assert (first, 7) not in seen.sizes
        left = await tenants.cluster.client.get(Box, "box", first)
        assert left.metadata.finalizers, "the finalizer is left as it is"
        assert left.metadata.deletion_timestamp is None
        assert (await tenants.cluster.client.get(core_v1.ConfigMap, "box", first)).data == {"size": "1"}
        assert seen.finalized == []
        await tenants.label(first, followed=True)
        await eventually(lambda: (first, 7) in seen.sizes)
        for name in (first, second):
            await tenants.cluster.client.delete(Box, "box", name)
        await eventually(lambda: sorted(seen.finalized) == [first, second])


async def test_a_namespace_that_is_left_has_nothing_in_the_cache_and_in_the_queue(tenants: Tenants) -> None:
    first, second = await tenants.create("a", followed=True), await tenants.create("b", followed=True)
    for name in (first, second):
        await tenants.box(name)
    seen = Seen(Result(after=timedelta(hours=1)))

    async with tenants.running(Controller(Box, seen.reconcile, owns=[core_v1.ConfigMap])) as manager:
        queue = lambda: manager.statistics().controllers[0].queue  # noqa: E731 (a name for three uses)
        await eventually(lambda: queue().delayed == 2)
        await tenants.label(first, followed=False)
        await eventually(lambda: queue().delayed == 1)
        assert manager.cache is not None
        assert {feed.selection.namespace for feed in manager.cache.feeds} == {"", second}


async def test_a_reconcile_in_flight_ends_and_is_not_queued_again_when_its_namespace_is_left(
    tenants: Tenants,
) -> None:
    name = await tenants.create("a", followed=True)
    await tenants.box(name)
    entered, proceed, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reconcile(box: Box, ctx: Context) -> Result:
        entered.set()
        await proceed.wait()
        assert await ctx.find(Box, "box") is not None, "a read goes to the server"
        ended.set()
        return Result(after=timedelta(hours=1))

    async with tenants.running(Controller(Box, reconcile)) as manager:
        await entered.wait()
        await tenants.label(name, followed=False)
        await eventually(lambda: manager.describe()["namespaces"]["followed"] == [])
        proceed.set()
        await ended.wait()
        await eventually(lambda: manager.statistics().controllers[0].queue.in_flight == 0)
        queue = manager.statistics().controllers[0].queue
        assert (queue.ready, queue.delayed) == (0, 0)


async def test_objects_of_a_new_namespace_wait_until_all_of_its_informers_are_synced() -> None:
    found: list[int] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        found.append(len(await ctx.list(core_v1.ConfigMap)))

    async with embedded(controllers=False) as own:
        await own.install(Box)
        made = Tenants(own)
        name = await made.create("a", followed=False)
        await made.box(name)
        await own.client.create(core_v1.ConfigMap(Meta("one", namespace=name)))
        slow = own.faults.add(
            match=Match(agent="kubewright/", resource="configmaps", namespace=name), fail=503
        )
        async with made.running(Controller(Box, reconcile, owns=[core_v1.ConfigMap])) as manager:
            await made.label(name, followed=True)

            def boxes() -> list[int]:
                assert manager.cache is not None
                return [
                    len(feed.objects) for feed in manager.cache.feeds if feed.selection.kind.kind == "Box"
                ]

            await eventually(lambda: boxes() == [1])
            assert found == []
            assert manager.statistics().controllers[0].queue.ready == 0
            own.faults.remove(slow)
            await eventually(lambda: found != [])
    assert found == [1]


@pytest.mark.seeds(1, 2, 3)
async def test_reads_agree_with_the_server_while_namespaces_come_and_go(tenants: Tenants, seed: int) -> None:
    """Nothing else changes, so each read from the cache must find exactly what the server has."""
    chance = random.Random(seed)
    names = [await tenants.create(letter, followed=chance.random() < 0.5) for letter in "abc"]
    for name in names:
        for number in range(2):
            await tenants.box(name, f"box-{number}")
        await tenants.cluster.client.create(core_v1.ConfigMap(Meta("map", namespace=name)))
    wrong: list[str] = []
    reconciled: set[str] = set()

    async def reconcile(box: Box, ctx: Context) -> None:
        for name in names:
            for kind, key in ((Box, "box-0"), (core_v1.ConfigMap, "map")):
                if await ctx.find(kind, key, namespace=name) is None:
                    wrong.append(f"{kind.__name__} {name}/{key} is missing")
                if len(await ctx.list(kind, namespace=name)) < len(await ctx.live.list(kind, namespace=name)):
                    wrong.append(f"the list of {kind.__name__} in {name}")
        everywhere = await ctx.list(Box, all_namespaces=True)
        counts = {name: sum(one.metadata.namespace == name for one in everywhere) for name in names}
        if set(counts.values()) - {0, 2}:
            wrong.append(f"a part of a namespace: {counts}")
        reconciled.add(box.metadata.namespace)

    controller = Controller(Box, reconcile, owns=[core_v1.ConfigMap], concurrency=4)
    async with tenants.running(controller):
        for _ in range(12):
            await tenants.label(chance.choice(names), followed=chance.random() < 0.6)
        for name in names:
            await tenants.label(name, followed=True)
        reconciled.clear()
        for name in names:
            await tenants.resize(name, 3, "box-0")
        await eventually(lambda: reconciled == set(names))
    assert wrong == []


async def test_a_namespace_without_rights_is_reported_and_the_others_go_on(
    cluster: Cluster,  # noqa: F811 (a fixture)
    tenants: Tenants,
    caplog: pytest.LogCaptureFixture,
) -> None:
    allowed, closed = await tenants.create("a", followed=True), await tenants.create("b", followed=True)
    for name in (allowed, closed):
        await tenants.box(name)
    seen = Seen()
    operator = Operator(Controller(Box, seen.reconcile), name="boxes", namespaces=tenants.selector)
    client = cluster.client
    account = rbac_v1.Subject(kind="ServiceAccount", name="boxes", namespace=cluster.namespace)
    cluster_role = f"{cluster.namespace}-namespaces"

    async def bind(namespace: str) -> None:
        rule = rbac_v1.PolicyRule(
            api_groups=["running.example.com"], resources=["boxes"], verbs=["get", "list", "watch"]
        )
        await client.create(rbac_v1.Role(Meta("boxes", namespace=namespace), rules=[rule]))
        await client.create(
            rbac_v1.RoleBinding(
                Meta("boxes", namespace=namespace),
                role_ref=rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="boxes"),
                subjects=[account],
            )
        )

    rules = [
        rbac_v1.PolicyRule(api_groups=[""], resources=["namespaces"], verbs=["get", "list", "watch"]),
        rbac_v1.PolicyRule(api_groups=["events.k8s.io"], resources=["events"], verbs=["create", "patch"]),
    ]
    await client.create(rbac_v1.ClusterRole(Meta(cluster_role), rules=rules))
    await client.create(
        rbac_v1.ClusterRoleBinding(
            Meta(cluster_role),
            role_ref=rbac_v1.RoleRef(
                api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=cluster_role
            ),
            subjects=[account],
        )
    )
    await bind(allowed)
    await client.create(core_v1.ServiceAccount(Meta("boxes", namespace=cluster.namespace)))
    token = await client.token_request("boxes", cluster.namespace)
    given = cluster.config
    config = ClusterConfig(given.server, given.namespace, given.ca_data, given.insecure, token=token.token)
    manager = Manager(operator, config, options())
    try:
        async with started(manager):
            await eventually(lambda: (allowed, 1) in seen.sizes)
            await manager.ready.wait()
            assert list(manager.describe()["namespaces"]["refused"]) == [closed]
            assert "forbidden" in manager.describe()["namespaces"]["refused"][closed]
            assert manager.readiness.failures() == {}

            async def event() -> bool:
                found = await client.list(events_v1.Event, namespace="default")
                notes = [one.note or "" for one in found if one.regarding and one.regarding.name == closed]
                return len(notes) == 1 and "nothing in it is reconciled" in notes[0]

            await eventually(event)
            assert caplog.text.count(f"Namespace {closed}: It matches") == 1
            await bind(closed)
            await eventually(lambda: (closed, 1) in seen.sizes)
            assert manager.describe()["namespaces"]["refused"] == {}
    finally:
        await client.delete(rbac_v1.ClusterRoleBinding, cluster_role)
        await client.delete(rbac_v1.ClusterRole, cluster_role)


async def test_changes_of_watched_kinds_and_children_in_followed_namespaces_lead_to_a_reconcile(
    tenants: Tenants,
) -> None:
    name, other = await tenants.create("a", followed=True), await tenants.create("b", followed=False)
    for namespace in (name, other):
        await tenants.box(namespace)
    found: list[tuple[str, str]] = []

    async def reconcile(box: Box, ctx: Context) -> None:
        secret = await ctx.find(core_v1.Secret, "setting")
        value = "" if secret is None else secret.metadata.labels["value"]
        await ctx.apply(core_v1.ConfigMap(Meta("box"), data={"value": value}))
        found.append((box.metadata.namespace, value))

    secrets = watch(core_v1.Secret, map=lambda secret: [ObjectKey(secret.metadata.namespace, "box")])
    controller = Controller(Box, reconcile, owns=[core_v1.ConfigMap], watches=[secrets])
    client = tenants.cluster.client
    async with tenants.running(controller):
        for namespace in (name, other):
            await client.create(core_v1.Secret(Meta("setting", namespace=namespace, labels={"value": "1"})))
        await eventually(lambda: (name, "1") in found)
        await client.delete(core_v1.ConfigMap, "box", name)

        async def restored() -> bool:
            return [
                one.data
                for one in await client.list(core_v1.ConfigMap, namespace=name)
                if one.metadata.name == "box"
            ] == [{"value": "1"}]

        await eventually(restored)
        await tenants.label(other, followed=True)
        await eventually(lambda: (other, "1") in found)


async def test_a_cluster_scoped_kind_is_reconciled_whatever_the_labels_and_sees_its_children_in_followed_namespaces(
    tenants: Tenants,
) -> None:
    name = await tenants.create("a", followed=True)
    zone = f"{tenants.cluster.namespace}-zone"
    sizes: list[int] = []

    async def reconcile(found: Zone, ctx: Context) -> None:
        if found.metadata.name != zone:
            return
        await ctx.apply(core_v1.ConfigMap(Meta("child", namespace=name)))
        sizes.append(found.spec.size)

    client = tenants.cluster.client
    await client.create(Zone(Meta(zone)))
    try:
        async with tenants.running(Controller(Zone, reconcile, owns=[core_v1.ConfigMap])) as manager:
            await eventually(lambda: sizes != [])
            await client.delete(core_v1.ConfigMap, "child", name)

            async def restored() -> bool:
                listed = await client.list(core_v1.ConfigMap, namespace=name)
                return any(one.metadata.name == "child" for one in listed)

            await eventually(restored)
            await settled(manager)
            before = len(sizes)
            await tenants.label(name, followed=False)
            await eventually(lambda: len(sizes) > before)
            assert manager.describe()["namespaces"]["followed"] == []
            await client.patch(Zone, {"spec": {"size": 5}}, name=zone, type="merge")
            await eventually(lambda: 5 in sizes)
    finally:
        await client.delete(Zone, zone)


async def test_finalizers_run_in_a_namespace_that_is_being_deleted(environment: RunningEnvironment) -> None:
    seen = Seen()
    async with isolated(environment.name, environment.kubeconfig) as own:
        await own.install(Box)
        made = Tenants(own)
        name = await made.create("a", followed=True)
        await made.box(name)
        async with made.running(Controller(Box, seen, finalizer=FINALIZER)) as manager:
            await eventually(lambda: (name, 1) in seen.sizes)
            await own.client.delete(core_v1.Namespace, name)
            await eventually(lambda: seen.finalized == [name], timeout=100)
            await eventually(lambda: manager.describe()["namespaces"]["followed"] == [], timeout=100)


async def test_replicas_share_followed_namespaces_by_shards_of_namespaces(tenants: Tenants) -> None:
    names = [await tenants.create(letter, followed=True) for letter in "abcdef"]
    for name in names:
        await tenants.box(name)
    worked: dict[str, set[str]] = {"first": set(), "second": set()}
    wrong: list[str] = []

    def replica(identity: str) -> Manager:
        async def reconcile(box: Box, ctx: Context) -> None:
            await ctx.apply(core_v1.ConfigMap(Meta("box"), data={"size": str(box.spec.size)}))
            if len(await ctx.list(Box, all_namespaces=True)) < len(names):
                wrong.append("a list is answered from one shard")
            worked[identity].add(box.metadata.namespace)

        operator = Operator(
            Controller(Box, reconcile, owns=[core_v1.ConfigMap]),
            shards=Shards(8, by="namespace"),
            namespaces=tenants.selector,
        )
        chosen = options(election=ElectionOptions(times=QUICK, identity=identity))
        return Manager(operator, tenants.cluster.config, chosen)

    first, second = replica("first"), replica("second")
    async with AsyncExitStack() as stack:
        async with started(first):
            await stack.enter_async_context(started(second))
            await eventually(lambda: worked["first"] | worked["second"] == set(names))
            late = await tenants.create("late", followed=True)
            await tenants.box(late)
            await eventually(lambda: late in worked["first"] | worked["second"])
            await tenants.label(late, followed=False)
            await eventually(
                lambda: (
                    late not in first.describe()["namespaces"]["followed"]
                    and late not in second.describe()["namespaces"]["followed"]
                )
            )
        worked["second"].clear()
        for name in names:
            await tenants.resize(name, 4)
        await eventually(lambda: worked["second"] == set(names))
        assert late not in worked["second"]
    assert wrong == []


def test_shards_by_uid_are_refused_with_namespaces_by_label() -> None:
    with pytest.raises(DeclarationError, match=r'use Shards\(8, by="namespace"\)'):
        Operator(Controller(Box, Seen().reconcile), shards=8, namespaces=NamespaceSelector("team=a"))


@pytest.mark.parametrize(
    ("labels", "problem"),
    [("team in (", "unexpected|expected|found"), ("", "matches all namespaces"), ("-x=1", "must consist")],
)
def test_an_invalid_namespace_selector_is_refused(labels: str, problem: str) -> None:
    with pytest.raises(DeclarationError, match=problem):
        NamespaceSelector(labels)


def test_namespaces_by_name_are_refused_where_a_selector_is_expected() -> None:
    names: Any = ["team-a"]
    with pytest.raises(DeclarationError, match="kubewright run -n"):
        Operator(Controller(Box, Seen().reconcile), namespaces=names)


async def test_a_selector_without_namespaces_is_one_warning_and_the_operator_is_ready(
    tenants: Tenants, caplog: pytest.LogCaptureFixture
) -> None:
    seen = Seen()
    async with tenants.running(Controller(Box, seen.reconcile)):
        pass
    warnings = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert warnings == [f"No namespace matches {tenants.selector} now: nothing is reconciled until one does"]


async def test_namespaces_by_name_replace_the_selector_of_the_operator(tenants: Tenants) -> None:
    followed, named = await tenants.create("a", followed=True), await tenants.create("b", followed=False)
    for name in (followed, named):
        await tenants.box(name)
    seen = Seen()
    operator = Operator(Controller(Box, seen.reconcile), namespaces=tenants.selector)
    async with started(Manager(operator, tenants.cluster.config, options(namespaces=(named,)))):
        await eventually(lambda: seen.sizes == {(named, 1)})
