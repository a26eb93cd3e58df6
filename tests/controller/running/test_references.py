"""References: a change of a named object reconciles the objects that name it, and the reconcile reads it."""

from typing import Any

import pytest

from kubewright.api import InvalidRequest, JsonObject, Kind, Meta, Model, NotFound, Object, Resource
from kubewright.api.builtin import core_v1
from kubewright.controller import Context, Controller, UndeclaredAccess, reference
from kubewright.hashing import content_hash
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually

from .operators import running, settled


class User(Model):
    secret: str | None = None


class DoorSpec(Model):
    key_secret: str | None = None
    key_namespace: str = ""
    badges: list[str] = []
    users: list[User] = []


class DoorStatus(Model):
    seen: list[str] = []
    digest: str = ""


class Door(Resource[DoorSpec, DoorStatus], group="references.example.com", version="v1"):
    """Names Secrets."""


class Gate(Resource[DoorSpec, DoorStatus], group="references.example.com", version="v1", scope="Cluster"):
    """Lies outside namespaces and names Secrets in them."""


KEY = reference(core_v1.Secret, "spec.keySecret")
BADGES = reference(core_v1.ConfigMap, "spec.badges")
USERS = reference(core_v1.Secret, "spec.users[*].secret")


def secret(name: str, **data: str) -> core_v1.Secret:
    return core_v1.Secret(Meta(name), string_data=data)


async def test_a_named_object_is_read_typed_and_its_changes_reconcile_the_objects_that_name_it(
    cluster: Cluster,
) -> None:
    runs: list[str] = []

    async def reconcile(door: Door, ctx: Context) -> None:
        runs.append(door.metadata.name)
        found: core_v1.Secret | None = await ctx.find(KEY)
        seen = [] if found is None else [f"{found.metadata.name}={found.data['code'].decode()}"]
        await ctx.patch_status(door, DoorStatus(seen=seen, digest=content_hash(found)))

    await cluster.install(Door)
    async with running(cluster, Controller(Door, reconcile, watches=[KEY])) as manager:
        await cluster.create(Door(Meta("front"), spec=DoorSpec(key_secret="a")))
        await cluster.create(Door(Meta("back"), spec=DoorSpec(key_secret="b")))
        await cluster.create(Door(Meta("open"), spec=DoorSpec()))
        first = await cluster.eventually(Door, "front", lambda it: it.status.digest)
        assert first.status.seen == []
        await settled(manager)
        runs.clear()

        made = await cluster.create(secret("a", code="1"))
        there = await cluster.eventually(Door, "front", lambda it: it.status.seen == ["a=1"])
        assert there.status.digest != first.status.digest
        await cluster.client.patch(made, {"stringData": {"code": "2"}})
        await cluster.eventually(Door, "front", lambda it: it.status.seen == ["a=2"])
        await cluster.client.delete(made)
        gone = await cluster.eventually(Door, "front", lambda it: it.status.seen == [])
        assert gone.status.digest == first.status.digest
        await settled(manager)
        assert set(runs) == {"front"}

        # The object names another one now: the index follows.
        await cluster.create(secret("c", code="3"))
        await cluster.client.patch(gone, {"spec": {"keySecret": "c"}})
        await cluster.eventually(Door, "front", lambda it: it.status.seen == ["c=3"])


async def test_lists_of_names_and_paths_through_lists_are_read_in_their_order(cluster: Cluster) -> None:
    async def reconcile(door: Door, ctx: Context) -> None:
        badges = await ctx.list(BADGES)
        users = await ctx.live.list(USERS)
        seen = [found.metadata.name for found in (*badges, *users)]
        await ctx.patch_status(door, DoorStatus(seen=seen))

    await cluster.install(Door)
    spec = DoorSpec(badges=["y", "missing", "x"], users=[User(secret="u"), User(), User(secret="late")])
    async with running(cluster, Controller(Door, reconcile, watches=[BADGES, USERS])):
        for name in ("x", "y"):
            await cluster.create(core_v1.ConfigMap(Meta(name)))
        await cluster.create(secret("u"))
        await cluster.create(Door(Meta("front"), spec=spec))
        await cluster.eventually(Door, "front", lambda it: it.status.seen == ["y", "x", "u"])
        await cluster.create(secret("late"))
        await cluster.eventually(Door, "front", lambda it: it.status.seen == ["y", "x", "u", "late"])


async def test_a_field_may_name_the_namespace_of_the_named_object(cluster: Cluster) -> None:
    key = reference(core_v1.Secret, "spec.keySecret", namespace_path="spec.keyNamespace")

    async def reconcile(gate: Gate, ctx: Context) -> None:
        found = await ctx.find(key)
        await ctx.patch_status(gate, DoorStatus(seen=[str(found.key)] if found else []))

    await cluster.install(Gate)
    async with running(cluster, Controller(Gate, reconcile, watches=[key])):
        name = cluster.namespace
        spec = DoorSpec(key_secret="a", key_namespace=cluster.namespace)
        await cluster.create(Gate(Meta(name), spec=spec))
        await cluster.create(secret("a"))
        await cluster.eventually(Gate, name, lambda it: it.status.seen == [f"{cluster.namespace}/a"])


async def test_references_of_and_to_kinds_without_a_class_are_json(cluster: Cluster) -> None:
    doors = Kind(group="references.example.com", version="v1", kind="Door", plural="doors", status=True)
    secrets = Kind(group="", version="v1", kind="Secret", plural="secrets")
    key = reference(secrets, "spec.keySecret")

    async def reconcile(door: JsonObject, ctx: Context) -> None:
        found = await ctx.get(key)
        await ctx.patch_status(door, {"seen": [found["metadata"]["name"]]})

    await cluster.install(Door)
    async with running(cluster, Controller(doors, reconcile, watches=[key])):
        await cluster.create(Door(Meta("front"), spec=DoorSpec(key_secret="a")))
        await cluster.create(secret("a"))
        await cluster.eventually(Door, "front", lambda it: it.status.seen == ["a"])


@pytest.mark.parametrize(
    ("field", "error", "message"),
    [
        (KEY, NotFound, "names no Secret: spec.keySecret is empty"),
        (BADGES, InvalidRequest, "may name several objects: read them with ctx.list(...)"),
        (
            USERS,
            UndeclaredAccess,
            "does not declare reference(Secret, 'spec.users[*].secret'): add it to its watches=",
        ),
        (core_v1.Secret, InvalidRequest, "get secrets: pass the name of the object"),
    ],
)
async def test_an_impossible_read_of_a_reference_is_explained(
    cluster: Cluster, field: Any, error: type[Exception], message: str
) -> None:
    caught: list[Exception] = []

    async def reconcile(door: Object, ctx: Context) -> None:
        try:
            await ctx.get(field)
        except Exception as refusal:
            caught.append(refusal)

    await cluster.install(Door)
    async with running(cluster, Controller(Door, reconcile, watches=[KEY, BADGES])) as manager:
        await cluster.create(Door(Meta("front"), spec=DoorSpec()))
        await _reconciled(manager, cluster, caught)
    assert isinstance(caught[0], error)
    assert message in str(caught[0])
    if isinstance(caught[0], NotFound):
        assert not caught[0].kind_missing


async def _reconciled(manager: Manager, cluster: Cluster, caught: list[Exception]) -> None:
    await eventually(lambda: bool(caught))
    await settled(manager)
