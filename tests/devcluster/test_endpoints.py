"""The endpoints of Services, on the embedded and on the real control plane."""

from devcluster_workloads import deployment, is_rolled_out, pod, pods_of

from kubewright.api import Meta
from kubewright.api.builtin import apps_v1, core_v1, discovery_v1
from kubewright.devcluster import SCENARIO_ANNOTATION, PodScenario
from kubewright.testing import Cluster, eventually


def service(name: str, target: int | str | None = 8080) -> core_v1.Service:
    return core_v1.Service(
        Meta(name),
        spec=core_v1.ServiceSpec(
            selector={"app": name}, ports=[core_v1.ServicePort(name="http", port=80, target_port=target)]
        ),
    )


async def slices_of(cluster: Cluster, name: str) -> list[discovery_v1.EndpointSlice]:
    labels = f"kubernetes.io/service-name={name}"
    return list(
        await cluster.client.list(discovery_v1.EndpointSlice, namespace=cluster.namespace, labels=labels)
    )


async def test_ready_pods_are_endpoints_of_the_service(cluster: Cluster) -> None:
    await cluster.create(deployment("web", 2))
    await cluster.create(service("web"))
    await cluster.eventually(apps_v1.Deployment, "web", is_rolled_out)
    pods = await pods_of(cluster, "web")

    async def complete() -> bool:
        found = await slices_of(cluster, "web")
        return len(found) == 1 and sum(bool(item.conditions.ready) for item in found[0].endpoints) == 2

    await eventually(complete)
    (found,) = await slices_of(cluster, "web")
    assert found.metadata.name.startswith("web-")
    assert (
        found.metadata.labels["endpointslice.kubernetes.io/managed-by"] == "endpointslice-controller.k8s.io"
    )
    assert [(item.name, item.port, item.protocol) for item in found.ports] == [("http", 8080, "TCP")]
    endpoint = min(found.endpoints, key=lambda item: item.target_ref.name if item.target_ref else "")
    assert endpoint.addresses == [pods[0].status.pod_ip]
    assert endpoint.node_name == pods[0].spec.node_name
    assert endpoint.target_ref is not None
    assert (endpoint.target_ref.kind, endpoint.target_ref.uid) == ("Pod", pods[0].metadata.uid)
    old = await cluster.eventually(
        core_v1.Endpoints, "web", lambda item: item.subsets and len(item.subsets[0].addresses) == 2
    )
    assert [item.port for item in old.subsets[0].ports] == [8080]
    assert {item.ip for item in old.subsets[0].addresses} == {item.status.pod_ip for item in pods}
    await cluster.settled(discovery_v1.EndpointSlice, core_v1.Endpoints)
    assert found.metadata.generate_name == "web-"
    events = await cluster.client.list(core_v1.Event, namespace=cluster.namespace)
    assert {item.type for item in events} == {"Normal"}


async def test_a_pod_that_is_not_ready_is_listed_as_such(cluster: Cluster) -> None:
    lame = pod("web")
    lame.metadata.annotations[SCENARIO_ANNOTATION] = PodScenario.NEVER_READY
    await cluster.create(lame)
    await cluster.create(service("web"))
    old = await cluster.eventually(
        core_v1.Endpoints, "web", lambda item: item.subsets and item.subsets[0].not_ready_addresses
    )
    assert old.subsets[0].addresses == []

    async def unready() -> bool:
        found = await slices_of(cluster, "web")
        return [item.conditions.ready for one in found for item in one.endpoints] == [False]

    await eventually(unready)


async def test_a_named_port_is_resolved_in_the_pod(cluster: Cluster) -> None:
    named = pod("web")
    named.spec.containers[0].ports = [core_v1.ContainerPort(name="serve", container_port=9090)]
    await cluster.create(named)
    await cluster.create(service("web", "serve"))

    async def found() -> bool:
        ports = [port.port for one in await slices_of(cluster, "web") for port in one.ports]
        return ports == [9090]

    await eventually(found)


async def test_a_service_without_pods_has_an_empty_slice(cluster: Cluster) -> None:
    await cluster.create(service("empty"))

    async def there() -> bool:
        return len(await slices_of(cluster, "empty")) == 1

    await eventually(there)
    (found,) = await slices_of(cluster, "empty")
    assert found.endpoints == []
    await cluster.eventually(core_v1.Endpoints, "empty")


async def test_the_endpoints_of_a_deleted_service_are_deleted(cluster: Cluster) -> None:
    made = await cluster.create(service("web"))
    await cluster.eventually(core_v1.Endpoints, "web")
    await cluster.client.delete(made)
    await cluster.eventually_gone(core_v1.Endpoints, "web")

    async def gone() -> bool:
        return not await slices_of(cluster, "web")

    await eventually(gone)


def external(name: str, *addresses: str) -> core_v1.Endpoints:
    subset = core_v1.EndpointSubset(
        addresses=[core_v1.EndpointAddress(ip=address) for address in addresses],
        not_ready_addresses=[core_v1.EndpointAddress(ip="192.0.2.99", hostname="slow")],
        ports=[core_v1.EndpointPort(name="web", port=8080, protocol="TCP")],
    )
    metadata = Meta(name, labels={"team": "blue"}, annotations={"example.com/note": "mine"})
    return core_v1.Endpoints(metadata, subsets=[subset])


async def mirrored(cluster: Cluster, name: str) -> list[discovery_v1.EndpointSlice]:
    labels = f"kubernetes.io/service-name={name}"
    return list(
        await cluster.client.list(discovery_v1.EndpointSlice, namespace=cluster.namespace, labels=labels)
    )


async def test_endpoints_of_a_service_without_a_selector_are_mirrored(cluster: Cluster) -> None:
    bare = service("outside")
    bare.spec.selector = {}
    await cluster.create(bare)
    made = await cluster.create(external("outside", "192.0.2.1", "192.0.2.2", "2001:db8::1"))

    async def both_families() -> bool:
        return len(await mirrored(cluster, "outside")) == 2

    await eventually(both_families)
    found = {item.address_type: item for item in await mirrored(cluster, "outside")}
    four, six = found["IPv4"], found["IPv6"]
    assert four.metadata.labels == {
        "team": "blue",
        "kubernetes.io/service-name": "outside",
        "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
    }
    assert four.metadata.annotations == {"example.com/note": "mine"}
    (owner,) = four.metadata.owner_references
    assert (owner.kind, owner.uid, owner.controller) == ("Endpoints", made.metadata.uid, True)
    states = {item.addresses[0]: (item.conditions.ready, item.hostname) for item in four.endpoints}
    assert states == {
        "192.0.2.1": (True, None),
        "192.0.2.2": (True, None),
        "192.0.2.99": (False, "slow"),
    }
    assert [(item.name, item.port, item.protocol) for item in four.ports] == [("web", 8080, "TCP")]
    assert [item.addresses for item in six.endpoints] == [["2001:db8::1"]]
    subsets = [{"addresses": [{"ip": "192.0.2.7"}], "ports": [{"name": "web", "port": 8080}]}]
    await cluster.client.patch(made, {"subsets": subsets})

    async def changed() -> bool:
        now = await mirrored(cluster, "outside")
        return [item.addresses for one in now for item in one.endpoints] == [["192.0.2.7"]]

    await eventually(changed)
    await cluster.client.delete(made)

    async def gone() -> bool:
        return not await mirrored(cluster, "outside")

    await eventually(gone)


async def test_endpoints_that_say_so_are_not_mirrored(cluster: Cluster) -> None:
    for name in ("skipped", "marker"):
        bare = service(name)
        bare.spec.selector = {}
        await cluster.create(bare)
    skipped = external("skipped", "192.0.2.1")
    skipped.metadata.labels["endpointslice.kubernetes.io/skip-mirror"] = "true"
    made = await cluster.create(skipped)
    await cluster.create(external("marker", "192.0.2.2"))

    async def marked() -> bool:
        return bool(await mirrored(cluster, "marker"))

    await eventually(marked)
    assert await mirrored(cluster, "skipped") == []
    await cluster.client.patch(
        made, {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": None}}}
    )

    async def mirrored_now() -> bool:
        return bool(await mirrored(cluster, "skipped"))

    await eventually(mirrored_now)
