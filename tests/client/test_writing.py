"""Verbs that write, on a real API server or the embedded one (--server)."""

import asyncio
from typing import Any

import pytest

from kubewright.api import Meta, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import (
    Client,
    Conflict,
    Invalid,
    InvalidRequest,
    NotFound,
)

from .objects import MAPS, config_map, deployment

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_an_object_is_created_read_and_deleted(client: Client, namespace: str) -> None:
    created = await client.create(config_map(namespace))
    assert created.metadata.uid
    assert created.metadata.resource_version
    read = await client.get(core_v1.ConfigMap, "a", namespace)
    assert read == created
    await client.delete(read)
    with pytest.raises(NotFound) as caught:
        await client.get(core_v1.ConfigMap, "a", namespace)
    assert not caught.value.kind_missing
    assert str(caught.value) == f'get configmaps {namespace}/a: configmaps "a" not found'


async def test_the_server_completes_a_generated_name(client: Client, namespace: str) -> None:
    created = await client.create(core_v1.ConfigMap(Meta(generate_name="gen-", namespace=namespace)))
    assert created.metadata.name.startswith("gen-")


@pytest.mark.parametrize("kind", ["merge", "strategic"])
async def test_a_merge_patch_changes_an_object(client: Client, namespace: str, kind: Any) -> None:
    created = await client.create(config_map(namespace))
    patched = await client.patch(created, {"data": {"y": "2"}}, type=kind)
    assert patched.data == {"x": "1", "y": "2"}


async def test_a_json_patch_changes_the_named_fields(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    operations = [{"op": "test", "path": "/data/x", "value": "1"}, {"op": "remove", "path": "/data/x"}]
    patched = await client.patch(MAPS, operations, name="a", namespace=namespace, type="json")
    assert not patched.get("data")
    with pytest.raises(Invalid):
        await client.patch(MAPS, operations, name="a", namespace=namespace, type="json")


async def test_a_stale_patch_conflicts(client: Client, namespace: str) -> None:
    created = await client.create(config_map(namespace))
    lock = {"metadata": {"resourceVersion": created.metadata.resource_version}}
    await client.patch(created, {**lock, "data": {"x": "2"}})
    with pytest.raises(Conflict) as caught:
        await client.patch(created, {**lock, "data": {"x": "3"}})
    assert list(caught.value.fields) == []


async def test_apply_creates_changes_and_removes_fields(client: Client, namespace: str) -> None:
    applied = await client.apply(config_map(namespace, a="1", b="2"), field_manager="me")
    assert applied.data == {"a": "1", "b": "2"}
    again = await client.apply(config_map(namespace, a="1", b="2"), field_manager="me")
    assert again.metadata.resource_version == applied.metadata.resource_version
    assert (await client.apply(config_map(namespace, a="3"), field_manager="me")).data == {"a": "3"}


async def test_apply_without_force_lists_each_conflicting_field(client: Client, namespace: str) -> None:
    await client.apply(config_map(namespace, a="1", b="1", c="1"), field_manager="first")
    with pytest.raises(Conflict, match="apply with force") as caught:
        await client.apply(config_map(namespace, a="2", b="2", c="1"), field_manager="second", force=False)
    assert [(conflict.field, conflict.manager) for conflict in caught.value.fields] == [
        (".data.a", "first"),
        (".data.b", "first"),
    ]
    assert (await client.apply(config_map(namespace, a="2", b="2"), field_manager="second")).data["a"] == "2"


async def test_an_object_that_was_read_can_be_applied(client: Client, namespace: str) -> None:
    read = await client.create(config_map(namespace))
    assert read.metadata.managed_fields
    read.data["y"] = "2"
    assert (await client.apply(read, field_manager="me")).data == {"x": "1", "y": "2"}


async def test_replace_needs_the_newest_version(client: Client, namespace: str) -> None:
    stale = await client.create(config_map(namespace))
    fresh = await client.get(core_v1.ConfigMap, "a", namespace)
    fresh.data = {"y": "1"}
    assert (await client.replace(fresh)).data == {"y": "1"}
    with pytest.raises(Conflict):
        await client.replace(stale)


async def test_update_changes_only_what_changed(client: Client, namespace: str) -> None:
    obj = await client.create(config_map(namespace))
    await client.patch(obj, {"data": {"theirs": "1"}})

    def change(current: core_v1.ConfigMap) -> None:
        current.data["mine"] = "1"

    updated = await client.update(obj, change)
    assert updated.data == {"x": "1", "theirs": "1", "mine": "1"}
    assert await client.update(obj, change) == updated


async def test_update_retries_on_conflict(client: Client, namespace: str) -> None:
    obj = await client.create(config_map(namespace, count="0"))

    def increment(current: core_v1.ConfigMap) -> None:
        current.data["count"] = str(int(current.data["count"]) + 1)

    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(client.update(obj, increment))
    assert (await client.get(core_v1.ConfigMap, "a", namespace)).data["count"] == "3"


async def test_update_does_not_touch_another_of_the_same_name(client: Client, namespace: str) -> None:
    old = await client.create(config_map(namespace))
    await client.delete(old)
    await client.create(config_map(namespace))
    with pytest.raises(InvalidRequest, match="another of the same name"):
        await client.update(old, lambda current: current.data.clear())


async def test_update_keeps_unknown_fields(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))

    def scale(current: apps_v1.Deployment) -> None:
        current.spec.replicas = 5

    typed = await client.get(apps_v1.Deployment, "web", namespace)
    before = await client.get(kind_of(apps_v1.Deployment), "web", namespace)
    await client.update(typed, scale)
    after = await client.get(kind_of(apps_v1.Deployment), "web", namespace)
    assert after["spec"]["replicas"] == 5
    assert after["spec"]["template"] == before["spec"]["template"]


async def test_delete_takes_preconditions(client: Client, namespace: str) -> None:
    obj = await client.create(config_map(namespace))
    with pytest.raises(Conflict):
        await client.delete(core_v1.ConfigMap, "a", namespace, uid="00000000-0000-0000-0000-000000000000")
    await client.patch(obj, {"data": {"x": "2"}})
    with pytest.raises(Conflict):
        await client.delete(obj, resource_version=obj.metadata.resource_version)
    await client.delete(obj, dry_run=True)
    await client.delete(obj)
    await client.create(config_map(namespace))
    with pytest.raises(Conflict):
        await client.delete(obj)


async def test_delete_may_wait_for_dependents(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))
    await client.delete(apps_v1.Deployment, "web", namespace, propagation="Foreground")
    dying = await client.get(apps_v1.Deployment, "web", namespace)
    assert dying.metadata.deletion_timestamp is not None
    assert dying.metadata.finalizers == ["foregroundDeletion"]


async def test_a_collection_is_deleted_by_selector(client: Client, namespace: str) -> None:
    for name in ("a", "b"):
        await client.create(config_map(namespace, name))
    await client.create(core_v1.ConfigMap(Meta("kept", namespace=namespace)))
    await client.delete_collection(core_v1.ConfigMap, namespace=namespace, labels="app=test")
    left = {item.metadata.name for item in await client.list(core_v1.ConfigMap, namespace=namespace)}
    assert left - {"kube-root-ca.crt"} == {"kept"}


async def test_a_dry_run_stores_nothing(client: Client, namespace: str) -> None:
    tried = await client.create(config_map(namespace), dry_run=True)
    assert tried.metadata.uid
    with pytest.raises(NotFound):
        await client.get(core_v1.ConfigMap, "a", namespace)
