"""Every verb, on a real API server or the embedded one (--server), typed and by kind."""

import asyncio
import logging
from contextlib import aclosing
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kubewright.api import GroupVersionKind, Kind, Meta, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import (
    AlreadyExists,
    BadRequest,
    Client,
    Conflict,
    Invalid,
    InvalidRequest,
    MethodNotAllowed,
    NotFound,
    RequestTooLarge,
    UnsupportedMediaType,
    requests,
)

pytestmark = pytest.mark.asyncio(loop_scope="session")

MAPS = kind_of(core_v1.ConfigMap)


def config_map(namespace: str, name: str = "a", **data: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(Meta(name, namespace=namespace, labels={"app": "test"}), data=data or {"x": "1"})


def deployment(namespace: str, name: str = "web", replicas: int = 1) -> dict[str, Any]:
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": name}},
            "template": {
                "metadata": {"labels": {"app": name}},
                "spec": {"containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }


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


async def test_a_kind_without_a_class_is_a_dictionary(client: Client, namespace: str) -> None:
    wire = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "d", "namespace": namespace},
        "data": {"k": "v"},
    }
    created = await client.create(wire)
    assert created["metadata"]["uid"]
    assert (await client.get(MAPS, "d", namespace))["data"] == {"k": "v"}
    listed = await client.list(MAPS, namespace=namespace, fields="metadata.name=d")
    assert [(item["apiVersion"], item["kind"]) for item in listed] == [("v1", "ConfigMap")]
    created["data"]["k"] = "w"
    assert (await client.replace(created, kind=MAPS))["data"] == {"k": "w"}
    applied = await client.apply({**wire, "data": {"k": "x"}}, field_manager="other")
    assert applied["data"] == {"k": "x"}
    await client.delete(MAPS, "d", namespace)


async def test_a_dictionary_without_its_kind_is_refused(client: Client) -> None:
    with pytest.raises(InvalidRequest, match="needs apiVersion and kind"):
        await client.create({"metadata": {"name": "x"}})


async def test_creating_twice_is_already_exists(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    with pytest.raises(AlreadyExists):
        await client.create(config_map(namespace))


async def test_the_server_completes_a_generated_name(client: Client, namespace: str) -> None:
    created = await client.create(core_v1.ConfigMap(Meta(generate_name="gen-", namespace=namespace)))
    assert created.metadata.name.startswith("gen-")


async def test_a_list_follows_its_pages(client: Client, namespace: str) -> None:
    for number in range(7):
        await client.create(config_map(namespace, f"m{number}"))
    whole = await client.list(core_v1.ConfigMap, namespace=namespace, labels="app=test", limit=3)
    assert [item.metadata.name for item in whole] == [f"m{number}" for number in range(7)]
    assert int(whole.resource_version) > 0
    pages = [
        page
        async for page in client.list_raw(core_v1.ConfigMap, namespace=namespace, labels="app=test", limit=3)
    ]
    assert [len(page.items) for page in pages] == [3, 3, 1]
    assert len({page.resource_version for page in pages}) == 1
    one = await client.list(core_v1.ConfigMap, namespace=namespace, fields="metadata.name=m3")
    assert [item.metadata.name for item in one] == ["m3"]
    assert len(await client.list(core_v1.ConfigMap, labels="app in (nobody)")) == 0


async def test_a_list_may_be_of_metadata_alone(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, x="canary"))
    listed = client.list_raw(MAPS, namespace=namespace, labels="app=test", metadata_only=True)
    items = [item async for page in listed for item in page.items]
    assert [item.meta.name for item in items] == ["a"]
    assert b"canary" not in items[0].raw


async def test_a_selector_that_is_none_is_a_bad_request(client: Client, namespace: str) -> None:
    with pytest.raises(BadRequest):
        await client.list(core_v1.ConfigMap, namespace=namespace, labels="a in (")


async def test_a_watch_shows_what_happens(client: Client, namespace: str) -> None:
    start = (await client.list(core_v1.ConfigMap, namespace=namespace)).resource_version
    created = await client.create(config_map(namespace))
    await client.patch(created, {"data": {"x": "2"}})
    await client.delete(core_v1.ConfigMap, "a", namespace)
    seen: list[str] = []
    events = client.watch(core_v1.ConfigMap, namespace=namespace, labels="app=test", resource_version=start)
    async with asyncio.timeout(10), aclosing(events):
        async for event in events:
            if event.type != "BOOKMARK":
                seen.append(event.type)
            if event.type == "DELETED":
                break
    assert seen == ["ADDED", "MODIFIED", "DELETED"]


async def test_a_watch_may_begin_with_the_present_state(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    seen: list[str] = []
    events = client.watch(core_v1.ConfigMap, namespace=namespace, labels="app=test", initial_events=True)
    async with asyncio.timeout(10), aclosing(events):
        async for event in events:
            seen.append(event.object.meta.name or event.type)
            if event.object.meta.annotations.get("k8s.io/initial-events-end") == "true":
                break
    assert seen == ["a", "BOOKMARK"]


async def test_a_watch_may_be_of_metadata_alone(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace, x="canary"))
    events = client.watch(MAPS, namespace=namespace, labels="app=test", metadata_only=True)
    async with asyncio.timeout(10), aclosing(events):
        event = await anext(events)
    assert event.object.meta.name == "a"
    assert b"canary" not in event.object.raw


async def test_a_watch_ends_at_its_time(client: Client, namespace: str) -> None:
    async with asyncio.timeout(10):
        assert [
            e
            async for e in client.watch(core_v1.Secret, namespace=namespace, timeout=1)
            if e.type != "BOOKMARK"
        ] == []


@pytest.mark.parametrize("kind", ["merge", "strategic"])
async def test_a_document_patches(client: Client, namespace: str, kind: Any) -> None:
    created = await client.create(config_map(namespace))
    patched = await client.patch(created, {"data": {"y": "2"}}, type=kind)
    assert patched.data == {"x": "1", "y": "2"}


async def test_operations_patch(client: Client, namespace: str) -> None:
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


async def test_apply_creates_changes_and_takes_away(client: Client, namespace: str) -> None:
    applied = await client.apply(config_map(namespace, a="1", b="2"), field_manager="me")
    assert applied.data == {"a": "1", "b": "2"}
    again = await client.apply(config_map(namespace, a="1", b="2"), field_manager="me")
    assert again.metadata.resource_version == applied.metadata.resource_version
    assert (await client.apply(config_map(namespace, a="3"), field_manager="me")).data == {"a": "3"}


async def test_apply_without_force_tells_the_conflicts_field_by_field(client: Client, namespace: str) -> None:
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


async def test_update_tries_again_when_another_writer_was_quicker(client: Client, namespace: str) -> None:
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


async def test_update_keeps_what_the_class_does_not_know(client: Client, namespace: str) -> None:
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


async def test_the_status_is_written_apart(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))
    live = await client.get(apps_v1.Deployment, "web", namespace)
    live.status.replicas = 1
    live.status.ready_replicas = 1
    written = await client.replace(live, subresource="status")
    assert written.status.ready_replicas == 1
    patched = await client.patch(live, {"status": {"readyReplicas": 0}}, subresource="status")
    assert patched.status.ready_replicas == 0
    wanted = apps_v1.Deployment(Meta("web", namespace=namespace), spec=live.spec)
    wanted.status.ready_replicas = 1
    applied = await client.apply(wanted, subresource="status", field_manager="kubelet")
    assert applied.status.ready_replicas == 1
    assert applied.spec.replicas == 1


async def test_scale_is_read_and_set(client: Client, namespace: str) -> None:
    await client.create(deployment(namespace))
    assert (await client.get_scale(apps_v1.Deployment, "web", namespace)).spec.replicas == 1
    scaled = await client.scale(apps_v1.Deployment, "web", namespace, replicas=0)
    assert scaled.spec.replicas == 0
    assert scaled.status.selector == "app=web"
    assert (await client.get(apps_v1.Deployment, "web", namespace)).spec.replicas == 0


async def test_a_pod_is_evicted(client: Client, namespace: str) -> None:
    try:
        await client.create(core_v1.ServiceAccount(Meta("default", namespace=namespace)))
    except AlreadyExists:
        pass  # a controller was quicker
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {"containers": [{"name": "main", "image": "busybox"}]},
    }
    await client.create(pod)
    await client.evict("web", namespace, dry_run=True)
    await client.evict("web", namespace, grace_period_seconds=0)
    with pytest.raises(NotFound):
        await client.get(core_v1.Pod, "web", namespace)


async def test_logs_of_a_pod_that_runs_nowhere_are_refused(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound):
        async for _ in client.pod_logs("none", namespace, tail_lines=5):
            pass


async def test_a_token_is_made_for_a_service_account(client: Client, namespace: str) -> None:
    await client.create(core_v1.ServiceAccount(Meta("bot", namespace=namespace)))
    made = await client.token_request("bot", namespace, lifetime=timedelta(minutes=10))
    assert made.token.count(".") == 2
    assert made.token not in repr(made)
    assert timedelta(minutes=8) < made.expires - datetime.now(UTC) < timedelta(minutes=12)


async def test_a_dry_run_leaves_nothing(client: Client, namespace: str) -> None:
    tried = await client.create(config_map(namespace), dry_run=True)
    assert tried.metadata.uid
    with pytest.raises(NotFound):
        await client.get(core_v1.ConfigMap, "a", namespace)


async def test_an_unknown_field_is_warned_of_or_refused(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    strange = deployment(namespace)
    strange["spec"]["bogus"] = 1
    with pytest.raises(BadRequest, match=r'unknown field "spec\.bogus"'):
        await client.create(strange, field_validation="Strict")
    with caplog.at_level(logging.WARNING, logger="kubewright.client"):
        await client.create(strange, field_validation="Warn")
    assert 'unknown field "spec.bogus"' in caplog.text


async def test_an_invalid_object_tells_its_fields(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(core_v1.ConfigMap(Meta("Not A Name", namespace=namespace)))
    assert [cause.field for cause in caught.value.status.details.causes] == ["metadata.name"]


async def test_what_is_not_served_is_told_from_what_is_not_there(client: Client, namespace: str) -> None:
    with pytest.raises(NotFound, match="is its CRD installed") as caught:
        await client.list(
            Kind(group="nobody.example.com", version="v1", kind="No", plural="nos"), namespace=namespace
        )
    assert caught.value.kind_missing
    with pytest.raises(NotFound) as caught:
        await client.list(Kind(group="apps", version="v1", kind="No", plural="nos"), namespace=namespace)
    assert caught.value.kind_missing
    with pytest.raises(NotFound):
        await client.resolve(GroupVersionKind("apps", "v1", "Nothing"))


async def test_a_verb_that_a_kind_lacks_is_not_allowed(client: Client) -> None:
    with pytest.raises(MethodNotAllowed):
        await client.delete_collection(core_v1.Namespace)


async def test_an_object_of_five_megabytes_is_too_large(client: Client, namespace: str) -> None:
    with pytest.raises(RequestTooLarge, match="3 MiB"):
        await client.create(config_map(namespace, x="y" * 5_000_000))
    await client.create(config_map(namespace))


async def test_a_strategic_patch_of_a_custom_resource_is_not_supported(
    client: Client, namespace: str
) -> None:
    group = f"{namespace}.example.com"
    crd = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"foos.{group}"},
        "spec": {
            "group": group,
            "scope": "Namespaced",
            "names": {
                "plural": "foos",
                "singular": "foo",
                "kind": "Foo",
                "listKind": "FooList",
                "shortNames": ["fo"],
            },
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "subresources": {"status": {}},
                    "schema": {
                        "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                    },
                }
            ],
        },
    }
    await client.create(crd)
    try:
        async with asyncio.timeout(20):
            while True:
                try:
                    kind = await client.resolve(GroupVersionKind(group, "v1", "Foo"))
                    made = await client.create(
                        {"metadata": {"name": "a", "namespace": namespace}, "spec": {"x": 1}}, kind=kind
                    )
                    break
                except NotFound:
                    await asyncio.sleep(0.1)
        assert made["kind"] == "Foo"
        assert (kind.plural, kind.namespaced, kind.status, tuple(kind.short_names)) == (
            "foos",
            True,
            True,
            ("fo",),
        )
        with pytest.raises(UnsupportedMediaType):
            await client.patch(kind, {"spec": {"x": 2}}, name="a", namespace=namespace, type="strategic")
        assert [item["metadata"]["name"] for item in await client.list(kind, namespace=namespace)] == ["a"]
    finally:
        await client.delete(
            Kind(group="apiextensions.k8s.io", version="v1", kind="CustomResourceDefinition",
                 plural="customresourcedefinitions", namespaced=False),
            f"foos.{group}",
        )  # fmt: skip


async def test_the_server_tells_its_version(client: Client) -> None:
    version = await client.server_version()
    assert version.number >= (1, 31)
    assert version.git_version.startswith("v1.")


async def test_discovery_finds_what_is_served(client: Client) -> None:
    resources = await client.api_resources()
    pods = next(resource for resource in resources if resource.kind.resource == "pods")
    assert pods.kind.short_names == ("po",)
    assert {"get", "list", "watch", "create", "patch", "delete"} <= set(pods.verbs)
    assert {"status", "log", "eviction"} <= set(pods.subresources)
    deployments = await client.resolve(GroupVersionKind("apps", "v1", "Deployment"))
    assert (deployments.plural, deployments.namespaced, deployments.status) == ("deployments", True, True)
    assert [resource.kind for resource in await client.api_resources()] == [
        resource.kind for resource in resources
    ]


async def test_any_request_can_be_sent_raw(client: Client) -> None:
    answer = await client.raw(requests.get_path("/openapi/v3", accept="text/plain, */*"))
    assert answer.status == 200
    assert b"apis/apps/v1" in answer.body
    found = await client.send(requests.get(kind_of(core_v1.Namespace), "default"))
    assert found.meta.name == "default"
