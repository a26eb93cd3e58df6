"""Services: the addresses of the Pods behind each, as EndpointSlices and as Endpoints."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import Meta, ObjectKey
from kubewright.api.builtin import core_v1, discovery_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, on, owned, watch
from kubewright.devcluster.claims import family_of
from kubewright.devcluster.hashes import short_hash
from kubewright.devcluster.leaving import unless_leaving
from kubewright.devcluster.pacing import paced
from kubewright.devcluster.pods import is_ready

SLICES = "endpointslice-controller"
ENDPOINTS = "endpoint-controller"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"
SLICE_SIZE = 100

Port = tuple[str, str, int, str | None]
"""A port as an endpoint serves it: name, protocol, number, application protocol."""

selecting_services: Index[core_v1.Service] = Index(
    core_v1.Service, lambda item: [item.metadata.namespace] if item.spec.selector else []
)
"""Services by namespace, those left out that Pods cannot concern."""
slices_by_owner: Index[discovery_v1.EndpointSlice] = Index(discovery_v1.EndpointSlice, family_of)


def ports_of(service: core_v1.Service, pod: core_v1.Pod) -> tuple[Port, ...]:
    """Give the ports that a Pod serves for a Service; a name that the Pod does not know is left out."""
    found: list[Port] = []
    for port in service.spec.ports:
        number = _number(port, pod)
        if number is not None:
            found.append((port.name, port.protocol or "TCP", number, port.app_protocol))
    return tuple(found)


def _number(port: core_v1.ServicePort, pod: core_v1.Pod) -> int | None:
    target = port.target_port
    if isinstance(target, str) and target:
        return next(
            (
                item.container_port
                for container in pod.spec.containers
                for item in container.ports
                if item.name == target and (item.protocol or "TCP") == (port.protocol or "TCP")
            ),
            None,
        )
    return target or port.port


def serves(pod: core_v1.Pod) -> bool:
    """Tell whether a Pod has an address that a Service may name."""
    return bool(pod.status.pod_ip) and pod.status.phase not in ("Succeeded", "Failed")


def endpoint_of(service: core_v1.Service, pod: core_v1.Pod) -> discovery_v1.Endpoint:
    """Make the endpoint of a Pod."""
    leaving = pod.metadata.deletion_timestamp is not None
    ready = is_ready(pod)
    named = bool(pod.spec.hostname) and pod.spec.subdomain == service.metadata.name
    return discovery_v1.Endpoint(
        addresses=[pod.status.pod_ip],
        conditions=discovery_v1.EndpointConditions(
            ready=service.spec.publish_not_ready_addresses or (ready and not leaving),
            serving=ready,
            terminating=leaving,
        ),
        hostname=pod.spec.hostname if named else None,
        node_name=pod.spec.node_name,
        target_ref=_reference(pod),
    )


def _reference(pod: core_v1.Pod) -> core_v1.ObjectReference:
    meta = pod.metadata
    return core_v1.ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)


def slices_of(service: core_v1.Service, pods: Sequence[core_v1.Pod]) -> Iterator[discovery_v1.EndpointSlice]:
    """Spread the endpoints over slices: one kind of ports each, a hundred endpoints at most."""
    groups: defaultdict[tuple[Port, ...], list[core_v1.Pod]] = defaultdict(list)
    for pod in pods:
        groups[ports_of(service, pod)].append(pod)
    if not groups:
        groups[()] = []
    labels = {
        **service.metadata.labels,
        MANAGED_BY: "endpointslice-controller.k8s.io",
        SERVICE_NAME: service.metadata.name,
        **_headless(service),
    }
    for ports, members in sorted(groups.items()):
        for start in range(0, max(len(members), 1), SLICE_SIZE):
            suffix = short_hash([service.metadata.uid, ports, start])[:5]
            yield discovery_v1.EndpointSlice(
                Meta(
                    f"{service.metadata.name}-{suffix}",
                    namespace=service.metadata.namespace,
                    generate_name=f"{service.metadata.name}-",
                    labels=labels,
                ),
                address_type="IPv4",
                endpoints=[endpoint_of(service, pod) for pod in members[start : start + SLICE_SIZE]],
                ports=[
                    discovery_v1.EndpointPort(name=name, protocol=protocol, port=number, app_protocol=app)
                    for name, protocol, number, app in ports
                ],
            )


def _headless(service: core_v1.Service) -> dict[str, str]:
    return {HEADLESS: ""} if service.spec.cluster_ip == "None" else {}


def endpoints_for(service: core_v1.Service, pods: Sequence[core_v1.Pod]) -> core_v1.Endpoints:
    """Sum up the addresses the old way, by ports."""
    groups: defaultdict[tuple[Port, ...], tuple[list[core_v1.EndpointAddress], list[core_v1.EndpointAddress]]]
    groups = defaultdict(lambda: ([], []))
    for pod in pods:
        endpoint = endpoint_of(service, pod)
        if endpoint.conditions.terminating and not service.spec.publish_not_ready_addresses:
            continue
        ready, waiting = groups[ports_of(service, pod)]
        address = core_v1.EndpointAddress(
            ip=pod.status.pod_ip,
            hostname=endpoint.hostname or "",
            node_name=pod.spec.node_name,
            target_ref=_reference(pod),
        )
        (ready if endpoint.conditions.ready else waiting).append(address)
    return core_v1.Endpoints(
        Meta(
            service.metadata.name,
            namespace=service.metadata.namespace,
            labels={**service.metadata.labels, ENDPOINTS_MANAGED_BY: ENDPOINTS, **_headless(service)},
        ),
        subsets=[
            core_v1.EndpointSubset(
                addresses=ready,
                not_ready_addresses=waiting,
                ports=[
                    core_v1.EndpointPort(name=name, protocol=protocol, port=number, app_protocol=app)
                    for name, protocol, number, app in ports
                ],
            )
            for ports, (ready, waiting) in sorted(groups.items())
        ],
    )


@paced
@unless_leaving
async def reconcile(service: core_v1.Service, ctx: Context) -> Result | None:
    """Make slices and Endpoints say which Pods are behind a Service that selects any."""
    if not service.spec.selector or service.spec.type == "ExternalName":
        return None
    labels = ",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items()))
    found = await ctx.list(core_v1.Pod, namespace=service.metadata.namespace, labels=labels)
    pods = sorted(filter(serves, found), key=lambda pod: pod.metadata.name)
    wanted = {item.metadata.name: item for item in slices_of(service, pods)}
    for item in await ctx.list(slices_by_owner, service.metadata.uid):
        managed = item.metadata.labels.get(MANAGED_BY) == "endpointslice-controller.k8s.io"
        if managed and item.metadata.name not in wanted:
            await ctx.delete(item)
    for item in wanted.values():
        await ctx.apply(item)
    await ctx.apply(endpoints_for(service, pods), owned=False)
    return None


async def forget(endpoints: core_v1.Endpoints, ctx: Context) -> None:
    """Take away the Endpoints of a Service that is gone: they have no owner reference."""
    ours = endpoints.metadata.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS
    if ours and await ctx.find(core_v1.Service, endpoints.metadata.name) is None:
        await ctx.delete(endpoints)


def _moved(change: Change[core_v1.Pod]) -> bool:
    """Predicate: pass what changes the address, the readiness or the labels of a Pod."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return _seen(old) != _seen(new)


def _seen(pod: core_v1.Pod) -> tuple[Mapping[str, str], str, str, bool, bool]:
    leaving = pod.metadata.deletion_timestamp is not None
    return pod.metadata.labels, pod.status.pod_ip, pod.status.phase, is_ready(pod), leaving


def _namesake(service: core_v1.Service) -> list[ObjectKey]:
    return [service.key]


def controllers() -> tuple[Controller[core_v1.Service], Controller[core_v1.Endpoints]]:
    """Declare both controllers."""
    making = Controller(
        core_v1.Service,
        reconcile,
        name=SLICES,
        owns=[owned(discovery_v1.EndpointSlice)],
        watches=[
            watch(core_v1.Pod, via=selecting_services, key=lambda pod: pod.metadata.namespace, when=_moved),
            watch(core_v1.Endpoints, map=lambda item: [item.key], when=on("update", "delete")),
        ],
        needs=[
            needs(discovery_v1.EndpointSlice, "delete"),
            needs(core_v1.Endpoints, "get", "create", "patch"),
        ],
        concurrency=4,
        options=Options(reporter=SLICES),
    )
    forgetting = Controller(
        core_v1.Endpoints,
        forget,
        name=ENDPOINTS,
        watches=[watch(core_v1.Service, map=_namesake, when=on("delete"))],
        needs=[needs(core_v1.Endpoints, "delete")],
        options=Options(reporter=ENDPOINTS),
    )
    return making, forgetting
