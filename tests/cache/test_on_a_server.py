"""The cache against a server that speaks for itself: embedded, real or existing, as --server says."""

import asyncio
import dataclasses
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from acceptance_waits import served

from kubewright.api import KubewrightError, Meta, Model, Object, ObjectKey, Resource, kind_of
from kubewright.api.builtin import apiextensions_v1, rbac_v1
from kubewright.backoff import Backoff
from kubewright.cache import Cache, Selection, StoreChange
from kubewright.client import Client, Impersonation, load_config, requests
from kubewright.schema import crd
from kubewright.testing import Cluster, eventually
from kubewright.testing.controlplane import ControlPlane, find_binaries

DEFINITION = kind_of(apiextensions_v1.CustomResourceDefinition)


class GadgetSpec(Model):
    color: str = ""


class Gadget(Resource[GadgetSpec, Model], group="cache.example.com", version="v1"):
    """A kind for these tests alone."""


class Latecomer(Resource[GadgetSpec, Model], group="cache.example.com", version="v1"):
    """A kind that is not there at first."""


class Newcomer(Resource[GadgetSpec, Model], group="cache.example.com", version="v1"):
    """A kind whose CRD is watched."""


class Foreigner(Resource[GadgetSpec, Model], group="cache.example.com", version="v1", external=True):
    """A kind of another project."""


class Straggler(Resource[GadgetSpec, Model], group="cache.example.com", version="v1"):
    """A kind whose CRD may not be watched."""


async def install(client: Client, kind: type[Object] = Gadget) -> None:
    await client.apply(crd(kind), kind=DEFINITION, field_manager="tests")
    await served(client, kind_of(kind))


def selected(cluster: Cluster, **more: Any) -> Selection:
    return Selection(kind_of(Gadget), cluster.namespace, **more)


@asynccontextmanager
async def running(cache: Cache) -> AsyncIterator[None]:
    async with asyncio.TaskGroup() as tasks:
        task = tasks.create_task(cache.run())
        yield
        task.cancel()


def gadget(cluster: Cluster, name: str, color: str = "") -> Gadget:
    return Gadget(Meta(name, namespace=cluster.namespace), spec=GadgetSpec(color=color))


def key(cluster: Cluster, name: str) -> ObjectKey:
    return ObjectKey(cluster.namespace, name)


@pytest.mark.parametrize("streaming", [True, False])
async def test_an_informer_follows_changes_of_other_clients(cluster: Cluster, streaming: bool) -> None:
    client = cluster.client
    await install(client)
    for number in range(3):
        await client.create(gadget(cluster, f"g{number}", "red"))
    cache = Cache(client, streaming=streaming)
    informer = cache.informer(selected(cluster), Gadget)
    changes: list[StoreChange] = []
    informer.subscribe(changes.append)
    async with running(cache):
        await informer.wait_synced()
        assert [change.initial for change in changes] == [True] * 3
        raw = informer.get_raw(key(cluster, "g0"))
        assert raw is not None
        assert b"managedFields" not in raw.raw
        await client.patch(Gadget, {"spec": {"color": "blue"}}, name="g0", namespace=cluster.namespace)
        await client.delete(Gadget, "g1", cluster.namespace)
        await eventually(
            lambda: informer.get(key(cluster, "g1")) is None and informer.list()[0].spec.color == "blue"
        )
    assert [(change.key.name, change.initial) for change in changes[3:]] == [("g0", False), ("g1", False)]


async def test_an_own_write_is_readable_at_once_and_notified_once(cluster: Cluster) -> None:
    client = cluster.client
    await install(client)
    cache = Cache(client, field_managers=["tests"])
    informer = cache.informer(selected(cluster), Gadget)
    changes: list[StoreChange] = []
    informer.subscribe(changes.append)
    async with running(cache):
        await informer.wait_synced()
        for number in range(20):
            made = gadget(cluster, f"g{number}", "red")
            informer.record_write(await client.send(requests.create(made, field_manager="tests")))
            assert informer.get(key(cluster, f"g{number}")) is not None
        raw = informer.get_raw(key(cluster, "g0"))
        assert raw is not None
        assert b'"manager":"tests"' in raw.raw
        await client.create(gadget(cluster, "last"))
        await eventually(lambda: informer.get(key(cluster, "last")) is not None)
    assert len(changes) == 21


async def test_metadata_only_informers_store_no_spec(cluster: Cluster) -> None:
    client = cluster.client
    await install(client)
    await client.create(gadget(cluster, "g", "red"))
    cache = Cache(client)
    informer = cache.informer(selected(cluster, metadata_only=True), Gadget)
    async with running(cache):
        await informer.wait_synced()
        raw = informer.get_raw(key(cluster, "g"))
        assert raw is not None
        assert b"red" not in raw.raw
        assert not informer.covers(key(cluster, "g"))
        informer.record_write(await client.send(requests.create(gadget(cluster, "h", "red"))))
        written = informer.get_raw(key(cluster, "h"))
        assert written is not None
        assert b"red" not in written.raw


async def test_informers_store_selected_objects_only(cluster: Cluster) -> None:
    client = cluster.client
    await install(client)
    for name in ("in", "out"):
        made = gadget(cluster, name)
        made.metadata.labels["side"] = name
        await client.create(made)
    cache = Cache(client)
    informer = cache.informer(selected(cluster, labels="side=in"), Gadget)
    async with running(cache):
        await informer.wait_synced()
        assert informer.keys() == [key(cluster, "in")]
        for name, side in (("out", "in"), ("in", "out")):
            patch = {"metadata": {"labels": {"side": side}}}
            await client.patch(Gadget, patch, name=name, namespace=cluster.namespace)
        await eventually(lambda: informer.keys() == [key(cluster, "out")])


async def test_a_missing_kind_is_reported_and_found_once_installed(cluster: Cluster) -> None:
    client = cluster.client
    cache = Cache(client)
    informer = cache.informer(Selection(kind_of(Latecomer)), Latecomer)
    try:
        async with running(cache):
            await eventually(lambda: bool(informer.problems))
            assert "latecomers.cache.example.com" in informer.problems[0]
            await install(client, Latecomer)
            await client.create(Latecomer(Meta("g", namespace=cluster.namespace)))
            await informer.wait_synced(90)
            assert informer.problems == []
            await eventually(lambda: informer.keys() == [key(cluster, "g")])
    finally:
        # The next run of this test on the same cluster must find it missing again.
        await client.delete(DEFINITION, "latecomers.cache.example.com")


async def test_a_kind_is_read_at_once_when_its_crd_is_established(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    # Only the watch of the CRD can end a pause of this length.
    monkeypatch.setattr("kubewright.cache.watcher.RETRY_REFUSED", Backoff(base=3600.0))
    client = cluster.client
    cache = Cache(client)
    informer = cache.informer(Selection(kind_of(Newcomer)), Newcomer)
    try:
        async with running(cache):
            await eventually(lambda: "Waiting for the CRD of newcomers.cache.example.com" in caplog.text)
            assert "`kubewright install`" in caplog.text
            assert "`kubewright run --install`" in caplog.text
            await client.apply(crd(Newcomer), kind=DEFINITION, field_manager="test")
            await informer.wait_synced(90)
    finally:
        await client.delete(DEFINITION, "newcomers.cache.example.com")


async def test_a_missing_kind_of_another_project_is_not_installed_by_this_operator(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    cache = Cache(cluster.client)
    cache.informer(Selection(kind_of(Foreigner)), Foreigner)
    async with running(cache):
        await eventually(lambda: "Waiting for the CRD of foreigners.cache.example.com" in caplog.text)
    assert "install the project that provides it, or apply its CRDs" in caplog.text
    assert "`kubewright install`" not in caplog.text


async def test_an_account_that_may_not_watch_crds_lists_the_kind_again(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="kubewright.cache")
    client = cluster.client
    user = f"joe-{cluster.namespace}"
    reading = {
        "metadata": {"name": user},
        "rules": [
            {"apiGroups": ["cache.example.com"], "resources": ["stragglers"], "verbs": ["list", "watch"]}
        ],
    }
    bound = {
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": user},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}],
    }
    await client.create(reading, kind=kind_of(rbac_v1.ClusterRole))
    await client.create(bound, kind=kind_of(rbac_v1.ClusterRoleBinding))
    config = dataclasses.replace(cluster.config, impersonate=Impersonation(user=user))
    try:
        async with Client(config) as reader:
            cache = Cache(reader)
            informer = cache.informer(Selection(kind_of(Straggler)), Straggler)
            async with running(cache):
                await eventually(
                    lambda: "No permission to watch the CRD stragglers.cache.example.com" in caplog.text
                )
                await client.apply(crd(Straggler), kind=DEFINITION, field_manager="test")
                await informer.wait_synced(90)
    finally:
        await client.delete(DEFINITION, "stragglers.cache.example.com")
        await client.delete(rbac_v1.ClusterRoleBinding, user)
        await client.delete(rbac_v1.ClusterRole, user)


async def test_a_missing_rule_is_reported_until_it_is_granted(cluster: Cluster) -> None:
    client = cluster.client
    await install(client)
    user = f"jane-{cluster.namespace}"
    janes = dataclasses.replace(cluster.config, impersonate=Impersonation(user=user))
    async with Client(janes) as reader:
        cache = Cache(reader)
        informer = cache.informer(selected(cluster), Gadget)
        async with running(cache):
            await eventually(lambda: bool(informer.problems))
            (problem,) = informer.problems
            assert 'resources: ["gadgets"], verbs: ["watch"]' in problem or '"list"' in problem
            rule = rbac_v1.PolicyRule(
                api_groups=["cache.example.com"], resources=["gadgets"], verbs=["get", "list", "watch"]
            )
            await client.create(rbac_v1.Role(Meta("gadgets", namespace=cluster.namespace), rules=[rule]))
            group = "rbac.authorization.k8s.io"
            await client.create(
                rbac_v1.RoleBinding(
                    Meta("gadgets", namespace=cluster.namespace),
                    role_ref=rbac_v1.RoleRef(api_group=group, kind="Role", name="gadgets"),
                    subjects=[rbac_v1.Subject(api_group=group, kind="User", name=user)],
                )
            )
            await informer.wait_synced(90)
            assert informer.problems == []


async def test_informers_catch_up_after_an_outage_of_the_server(server_name: str) -> None:
    if server_name != "real":
        pytest.skip("only processes can be taken away and brought back")
    binaries = await asyncio.to_thread(find_binaries)
    async with ControlPlane(binaries, controllers=False) as plane:
        config = await asyncio.to_thread(load_config, plane.kubeconfig)
        async with Client(config, field_manager="tests") as client:
            await install(client)
            before, after = (
                Gadget(Meta(name, namespace="default"), spec=GadgetSpec()) for name in ("before", "after")
            )
            await client.create(before)
            cache = Cache(client)
            informer = cache.informer(Selection(kind_of(Gadget)), Gadget)
            async with running(cache):
                await informer.wait_synced()
                await plane.stop_api_server()
                await plane.start_api_server()
                await eventually(lambda: client.create(after), ignore=KubewrightError)
                await client.delete(Gadget, "before", "default")
                await eventually(lambda: informer.keys() == [ObjectKey("default", "after")])
