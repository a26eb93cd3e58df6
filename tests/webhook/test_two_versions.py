"""One kind in several versions on a real API server or the embedded one: what users of the kind see."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import CUSTOM_RESOURCE_DEFINITION, Kind, kind_of, parse
from kubewright.api.builtin import admissionregistration_v1
from kubewright.client import Client
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.testing import Cluster

from .kinds import (
    Widget,
    WidgetSpec,
    WidgetStatus,
    WidgetV1Alpha1,
    WidgetV1Beta1,
    colored,
    from_alpha,
    from_beta,
    sensible,
)
from .learning import asked

JsonObject = dict[str, Any]
NAME = "widgets.widgets.example.com"
VALIDATING = kind_of(admissionregistration_v1.ValidatingWebhookConfiguration)
CONFIGURATION = "widgets-validating-webhook-configuration"


@kw.controller(Widget, name="widgets")
async def readied(widget: Widget, ctx: kw.Context) -> None:
    await ctx.patch_status(widget, WidgetStatus(ready=True))


def operator() -> kw.Operator:
    return kw.Operator(readied, webhooks=[sensible, colored, from_alpha, from_beta])


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[Manager]:
    async with cluster.running(operator()) as manager:
        await asked(cluster)
        yield manager
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)


async def test_objects_created_in_the_old_version_are_readable_in_all(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(WidgetV1Alpha1(kw.Meta("w", labels={"a": "b"}), size=3, color="red"))
        new = await cluster.get(Widget, "w")
        middle = await cluster.get(WidgetV1Beta1, "w")
        old = await cluster.get(WidgetV1Alpha1, "w")
    assert (new.spec.size, new.spec.color, new.metadata.labels) == (3, "red", {"a": "b"})
    assert (middle.spec.width, middle.spec.color) == (3, "red")
    assert (old.size, old.color, old.metadata.uid) == (3, "red", new.metadata.uid)


async def test_objects_are_defaulted_in_the_version_of_the_webhook(cluster: Cluster) -> None:
    async with running(cluster):
        made = await cluster.create(WidgetV1Alpha1(kw.Meta("w"), size=3))
        assert made.color == "blue"
        await cluster.eventually(Widget, "w", lambda it: it.status.ready)


async def test_two_field_errors_are_refused_in_one_message(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(Widget(kw.Meta("w"), spec=WidgetSpec(size=3, color="red")))
        change = {"spec": {"size": 1, "color": "pink"}}
        with pytest.raises(kw.errors.Invalid) as caught:
            await cluster.client.patch(Widget, change, name="w", namespace=cluster.namespace)
    status = caught.value.status
    assert status.message == (
        'admission webhook "sensible.widgets.widgets.example.com" denied the request: '
        'Widget.widgets.example.com "w" is invalid: '
        "[spec.size: Invalid value: 1: may not shrink, "
        'spec.color: Unsupported value: "pink": supported values: "blue", "red"]'
    )
    assert [cause.field for cause in status.details.causes] == ["spec.size", "spec.color"]
    assert (status.code, status.reason) == (422, "Invalid")


async def test_lists_and_watches_are_served_in_each_version(cluster: Cluster) -> None:
    async with running(cluster):
        for number in range(1, 4):
            await cluster.create(WidgetV1Alpha1(kw.Meta(f"w{number}"), size=number, color="red"))
        for cls, size in ((WidgetV1Alpha1, "size"), (WidgetV1Beta1, "width"), (Widget, "size")):
            found = await cluster.client.list(kind_of(cls), namespace=cluster.namespace)
            assert sorted((item.get("spec") or item)[size] for item in found) == [1, 2, 3]
            events = await watched(cluster.client, kind_of(cls), cluster.namespace, 3)
            assert sorted((item.get("spec") or item)[size] for item in events) == [1, 2, 3]
            assert {item["apiVersion"] for item in events} == {kind_of(cls).api_version}


async def watched(client: Client, kind: Kind, namespace: str, count: int) -> list[JsonObject]:
    seen: list[JsonObject] = []
    async with asyncio.timeout(60), aclosing(client.watch(kind, namespace=namespace)) as events:
        async for event in events:
            if event.type == "ADDED":
                seen.append(parse(event.object.raw))
            if len(seen) == count:
                break
    return seen


async def test_two_managers_apply_in_two_versions(cluster: Cluster) -> None:
    async with running(cluster):
        metadata = {"name": "w", "namespace": cluster.namespace}
        alpha = {"apiVersion": "widgets.example.com/v1alpha1", "kind": "Widget", "metadata": metadata}
        stable = alpha | {"apiVersion": "widgets.example.com/v1"}
        await cluster.client.apply(alpha | {"size": 3}, field_manager="one")
        await cluster.client.apply(stable | {"spec": {"color": "green"}}, field_manager="two")
        with pytest.raises(kw.Conflict) as caught:
            await cluster.client.apply(stable | {"spec": {"size": 9}}, field_manager="two", force=False)
        assert [conflict.manager for conflict in caught.value.fields] == ["one"]
        found = await cluster.get(Widget, "w")
        assert (found.spec.size, found.spec.color) == (3, "green")
        owners = {entry.manager: entry.api_version for entry in found.metadata.managed_fields}
        assert owners["one"] == "widgets.example.com/v1alpha1"
        assert owners["two"] == "widgets.example.com/v1"


async def test_the_stored_version_may_change(cluster: Cluster) -> None:
    async with running(cluster):
        await cluster.create(WidgetV1Alpha1(kw.Meta("before"), size=1, color="red"))
        await store(cluster, "v1alpha1")
        await cluster.create(Widget(kw.Meta("after"), spec=WidgetSpec(size=2, color="red")))
        assert (await cluster.get(Widget, "before")).spec.size == 1
        assert (await cluster.get(WidgetV1Alpha1, "after")).size == 2
        definition = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, NAME)
        assert {"v1", "v1alpha1"} <= set(definition["status"]["storedVersions"])
        await store(cluster, "v1")
        assert (await cluster.get(WidgetV1Beta1, "after")).spec.width == 2


async def store(cluster: Cluster, version: str) -> None:
    live = await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, NAME)
    operations = [
        {"op": "replace", "path": f"/spec/versions/{index}/storage", "value": found["name"] == version}
        for index, found in enumerate(live["spec"]["versions"])
    ]
    await cluster.client.patch(CUSTOM_RESOURCE_DEFINITION, operations, name=NAME, type="json")
    await cluster.eventually(
        CUSTOM_RESOURCE_DEFINITION, NAME, lambda it: version in it["status"]["storedVersions"]
    )


async def test_objects_that_break_a_newer_rule_can_still_be_deleted(cluster: Cluster) -> None:
    await cluster.install(operator())
    old = kw.Meta("old", finalizers=["example.com/hold"])
    await cluster.create(Widget(old, spec=WidgetSpec(color="pink")))
    where = {"name": "old", "namespace": cluster.namespace}
    async with running(cluster):
        with pytest.raises(kw.errors.Invalid):
            await cluster.client.patch(Widget, {"metadata": {"labels": {"a": "b"}}}, **where)
        await cluster.client.delete(Widget, **where)
        with pytest.raises(kw.errors.Invalid):
            await cluster.client.patch(Widget, {"spec": {"size": 1}}, **where)
        await cluster.client.patch(Widget, {"metadata": {"finalizers": []}}, **where)
        with pytest.raises(kw.NotFound):
            await cluster.get(Widget, "old")


async def test_writes_are_not_validated_after_a_stop(cluster: Cluster) -> None:
    async with running(cluster):
        assert (await cluster.client.get(VALIDATING, CONFIGURATION))["webhooks"]
    with pytest.raises(kw.NotFound):
        await cluster.client.get(VALIDATING, CONFIGURATION)


async def test_no_write_loses_a_field_after_a_stop(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    async with cluster.running(operator()):
        await asked(cluster)
        await cluster.create(Widget(kw.Meta("w"), spec=WidgetSpec(size=3, color="red")))
    assert f"No webhook converts {NAME} now: requests in another version than v1 fail" in caplog.text
    label = {"metadata": {"labels": {"touched": "yes"}}}
    with pytest.raises(kw.ApiError, match=r"conversion webhook for .* failed"):
        await cluster.client.patch(WidgetV1Alpha1, label, name="w", namespace=cluster.namespace)
    kept = await cluster.client.patch(Widget, label, name="w", namespace=cluster.namespace)
    assert (kept.spec.size, kept.spec.color) == (3, "red")
    async with running(cluster):
        changed = await cluster.client.patch(WidgetV1Alpha1, label, name="w", namespace=cluster.namespace)
        assert (changed.size, changed.color) == (3, "red")


async def test_a_temporary_cluster_logs_no_warning_about_missing_conversion(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    webhooks = WebhookOptions(bind_address="127.0.0.1:0", ephemeral_cluster=True)
    chosen = ManagerOptions(metrics_bind_address="0", health_probe_bind_address="0", webhooks=webhooks)
    async with cluster.running(operator(), options=chosen):
        assert "url" in await converted_at(cluster)
    assert "service" in await converted_at(cluster)
    assert "No webhook converts" not in caplog.text


async def test_the_service_of_a_deployment_is_called_again_after_a_stop(cluster: Cluster) -> None:
    none = {"spec": {"conversion": {"strategy": "None", "webhook": None}}}
    await cluster.install(operator())
    await cluster.client.patch(CUSTOM_RESOURCE_DEFINITION, none, name=NAME)
    async with running(cluster) as manager:
        assert await converted_at(cluster) == {"url": f"https://127.0.0.1:{manager.webhook_port}/convert"}
    service = {
        "name": "widgets-webhook-service",
        "namespace": "widgets-system",
        "path": "/convert",
        "port": 443,
    }
    assert await converted_at(cluster) == {"service": service}


async def converted_at(cluster: Cluster) -> JsonObject:
    config = (await cluster.client.get(CUSTOM_RESOURCE_DEFINITION, NAME))["spec"]["conversion"]["webhook"][
        "clientConfig"
    ]
    return {name: value for name, value in config.items() if name != "caBundle"}
