"""COM 3, 4, 6 and 8: what every sample operator keeps to."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from acceptance_samples import Sample
from acceptance_waits import created
from http_wire import connected

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, ApiError, from_wire, kind_of
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.schema import crd
from kubewright.testing import Cluster, eventually

JsonObject = dict[str, Any]


def requests(manager: Manager, matches: Callable[[dict[str, str]], bool]) -> int:
    """Count the requests that an operator has sent, by the labels of its own metric."""
    return int(
        sum(
            found.value
            for family in manager.metrics.families()
            if family.name.startswith("rest_client_requests")
            for found in family.samples
            if matches(found.labels)
        )
    )


def is_write(labels: dict[str, str]) -> bool:
    return labels["method"] not in ("GET", "HEAD")


def registrations(sample: Sample) -> int:
    """Count the writes that bring a run's webhooks to the cluster: one for each configuration and converted kind."""
    webhooks = sample.operator().webhooks
    return bool(webhooks.mutating) + bool(webhooks.validating) + len(webhooks.converted)


def is_forbidden(labels: dict[str, str]) -> bool:
    return labels["code"] == "403"


async def apply_samples(sample: Sample, cluster: Cluster) -> list[str]:
    names: list[str] = []
    for document in sample.documents():
        document["metadata"]["namespace"] = cluster.namespace
        await created(cluster.client, document)
        names.append(document["metadata"]["name"])
    return names


async def bring_to_rest(sample: Sample, cluster: Cluster) -> None:
    for name in await apply_samples(sample, cluster):
        await cluster.eventually(sample.kind, name, sample.settled)
    await cluster.settled(sample.kind, *sample.children, quiet=1.5)


async def versions(sample: Sample, cluster: Cluster) -> dict[str, str]:
    return {
        f"{kind.__name__}/{found.metadata.name}": found.metadata.resource_version
        for kind in (sample.kind, *sample.children)
        for found in await cluster.client.list(kind, namespace=cluster.namespace)
    }


async def test_an_operator_writes_nothing_after_a_restart(sample: Sample, cluster: Cluster) -> None:
    async with cluster.running(sample.operator()) as manager:
        await bring_to_rest(sample, cluster)
        assert requests(manager, is_forbidden) == 0
    before = await versions(sample, cluster)
    for _ in range(2):
        async with cluster.running(sample.operator()) as manager:
            await wait_reconciled(manager, at_least=len(sample.documents()))
            assert requests(manager, is_write) == registrations(sample)
            assert requests(manager, is_forbidden) == 0
        assert await versions(sample, cluster) == before


async def test_an_operator_sends_no_requests_at_rest(sample: Sample, cluster: Cluster) -> None:
    async with cluster.running(sample.operator()) as manager:
        await bring_to_rest(sample, cluster)
        before = requests(manager, lambda labels: True)
        await cluster.settled(sample.kind, quiet=2.0)
        assert requests(manager, lambda labels: True) == before


async def test_serves_probes_and_metrics(sample: Sample, cluster: Cluster) -> None:
    free = "127.0.0.1:0"
    anywhere = ManagerOptions(
        metrics_bind_address=free, health_probe_bind_address=free, webhooks=WebhookOptions(bind_address=free)
    )
    async with cluster.running(sample.operator(), options=anywhere) as manager:
        await apply_samples(sample, cluster)
        await wait_reconciled(manager, at_least=1)
        async with connected(manager.probe_port) as wire:
            for page in ("healthz", "readyz"):
                assert (await wire.ask("GET", f"/{page}")).text == "ok"
        async with connected(manager.metrics_port) as wire:
            text = (await wire.ask("GET", "/metrics")).text
    controller = sample.operator().controllers[0].name
    assert f'controller_runtime_reconcile_total{{controller="{controller}",result="success"}}' in text
    assert f'workqueue_depth{{controller="{controller}"' in text


def test_the_default_addresses_are_those_of_controller_runtime() -> None:
    defaults = ManagerOptions()
    assert (defaults.metrics_bind_address, defaults.health_probe_bind_address) == (":8080", ":8081")


async def test_one_malformed_object_does_not_stop_the_others(sample: Sample, cluster: Cluster) -> None:
    good, *_ = sample.documents()
    good["metadata"]["namespace"] = cluster.namespace
    bad = copy.deepcopy(good) | sample.malformed
    bad["metadata"]["name"] = "malformed"
    await cluster.install(sample.operator())
    try:
        await store_malformed(sample, cluster, bad)
        async with cluster.running(sample.operator()):
            await created(cluster.client, good)
            await cluster.eventually(sample.kind, good["metadata"]["name"], sample.settled)
            for child in sample.children[:1]:
                await wait_any(cluster, child)
    finally:
        await cluster.install(sample.operator())
    assert any("malformed" in line for line in cluster.log)
    await cluster.client.delete(kind_of(sample.kind), "malformed", cluster.namespace)


async def store_malformed(sample: Sample, cluster: Cluster, bad: JsonObject) -> None:
    """Put an object into the store that the real definition would refuse, through a laxer one."""
    definition = crd(*sample.operator().kinds)
    for version in definition["spec"]["versions"]:
        version["schema"] = {
            "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        }
        # Columns and subresources stay: only what objects may hold is laxer.
    await cluster.client.apply(
        definition, field_manager="kubewright-testing", kind=CUSTOM_RESOURCE_DEFINITION
    )
    kind = kind_of(sample.kind)
    await eventually(lambda: cluster.client.create(bad, kind=kind), ignore=ApiError)
    await cluster.install(sample.operator())
    with pytest.raises(Exception):  # noqa: B017, PT011 (whatever it says: it is no object of the kind)
        from_wire(sample.kind, await cluster.client.get(kind, "malformed", cluster.namespace))


async def wait_any(cluster: Cluster, kind: type[Any]) -> None:
    await eventually(lambda: cluster.client.list(kind, namespace=cluster.namespace))


async def wait_reconciled(manager: Manager, *, at_least: int) -> None:
    """Wait until the operator has looked at that many objects, and has nothing left to look at."""

    def reconciles() -> int:
        return sum(sum(found.outcomes.values()) for found in manager.statistics().controllers)

    await eventually(lambda: reconciles() >= at_least)
