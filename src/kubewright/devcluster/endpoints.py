"""The EndpointSlice and Endpoints controllers: the addresses of the Pods behind each Service."""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import Meta, ObjectKey
from kubewright.api.builtin import core_v1, discovery_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, on, owned, watch
from kubewright.devcluster.batching import batched
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.workloads import controller_keys, is_pod_finished, is_ready, short_hash

SLICES = "endpointslice-controller"
ENDPOINTS = "endpoint-controller"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"
SLICE_SIZE = 100

Port = tuple[str, str, int, str | None]
"""A port of an endpoint: name, protocol, number, application protocol."""

selecting_services: Index[core_v1.Service] = Index(
    core_v1.Service, lambda item: [item.metadata.namespace] if item.spec.selector else []
)
"""Services with a selector, by namespace."""
slices_by_owner: Index[discovery_v1.EndpointSlice] = Index(discovery_v1.EndpointSlice, controller_keys)


def ports_of(service: core_v1.Service, pod: core_v1.Pod) -> tuple[Port, ...]:
    """Return the ports of a Service on a Pod, without named ports that the Pod does not have."""
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


def has_endpoint(pod: core_v1.Pod) -> bool:
    """Return True if a Service can list the Pod as an endpoint."""
    return bool(pod.status.pod_ip) and not is_pod_finished(pod)


def endpoint_of(service: core_v1.Service, pod: core_v1.Pod) -> discovery_v1.Endpoint:
    """Build the endpoint of a Pod."""
    terminating = pod.metadata.deletion_timestamp is not None
    ready = is_ready(pod)
    named = bool(pod.spec.hostname) and pod.spec.subdomain == service.metadata.name
    return discovery_v1.Endpoint(
        addresses=[pod.status.pod_ip],
        conditions=discovery_v1.EndpointConditions(
            ready=service.spec.publish_not_ready_addresses or (ready and not terminating),
            serving=ready,
            terminating=terminating,
        ),
        hostname=pod.spec.hostname if named else None,
        node_name=pod.spec.node_name,
        target_ref=_reference(pod),
    )


def _reference(pod: core_v1.Pod) -> core_v1.ObjectReference:
    meta = pod.metadata
    return core_v1.ObjectReference(kind="Pod", namespace=meta.namespace, name=meta.name, uid=meta.uid)


def slices_of(service: core_v1.Service, pods: Sequence[core_v1.Pod]) -> Iterator[discovery_v1.EndpointSlice]:
    """Build the EndpointSlices: one per set of ports, with at most 100 endpoints each."""
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
    """Build the Endpoints object, with one subset per set of ports."""
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


@batched
@ignore_terminating_namespace
async def reconcile(service: core_v1.Service, ctx: Context) -> Result | None:
    """Update the EndpointSlices and the Endpoints of a Service with a selector."""
    if not service.spec.selector or service.spec.type == "ExternalName":
        return None
    labels = ",".join(f"{key}={value}" for key, value in sorted(service.spec.selector.items()))
    found = await ctx.list(core_v1.Pod, namespace=service.metadata.namespace, labels=labels)
    pods = sorted(filter(has_endpoint, found), key=lambda pod: pod.metadata.name)
    desired = {item.metadata.name: item for item in slices_of(service, pods)}
    for item in await ctx.list(slices_by_owner, service.metadata.uid):
        managed = item.metadata.labels.get(MANAGED_BY) == "endpointslice-controller.k8s.io"
        if managed and item.metadata.name not in desired:
            await ctx.delete(item)
    for item in desired.values():
        await ctx.apply(item)
    await ctx.apply(endpoints_for(service, pods), owned=False)
    return None


async def delete_orphaned_endpoints(endpoints: core_v1.Endpoints, ctx: Context) -> None:
    """Delete the Endpoints of a deleted Service, which have no owner reference."""
    ours = endpoints.metadata.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS
    if ours and await ctx.find(core_v1.Service, endpoints.metadata.name) is None:
        await ctx.delete(endpoints)


def _endpoint_changed(change: Change[core_v1.Pod]) -> bool:
    """Return True if the address, the readiness or the labels of a Pod changed."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return _endpoint_state(old) != _endpoint_state(new)


def _endpoint_state(pod: core_v1.Pod) -> tuple[Mapping[str, str], str, str, bool, bool]:
    terminating = pod.metadata.deletion_timestamp is not None
    return pod.metadata.labels, pod.status.pod_ip, pod.status.phase, is_ready(pod), terminating


def _same_key(service: core_v1.Service) -> list[ObjectKey]:
    return [service.key]


def controllers() -> tuple[Controller[core_v1.Service], Controller[core_v1.Endpoints]]:
    """Declare the EndpointSlice controller and the controller that deletes orphaned Endpoints."""
    slices = Controller(
        core_v1.Service,
        reconcile,
        name=SLICES,
        owns=[owned(discovery_v1.EndpointSlice)],
        watches=[
            watch(
                core_v1.Pod,
                via=selecting_services,
                key=lambda pod: pod.metadata.namespace,
                when=_endpoint_changed,
            ),
            watch(core_v1.Endpoints, map=lambda item: [item.key], when=on("update", "delete")),
        ],
        needs=[
            needs(discovery_v1.EndpointSlice, "delete"),
            needs(core_v1.Endpoints, "get", "create", "patch"),
        ],
        concurrency=4,
        options=Options(reporter=SLICES),
    )
    cleanup = Controller(
        core_v1.Endpoints,
        delete_orphaned_endpoints,
        name=ENDPOINTS,
        watches=[watch(core_v1.Service, map=_same_key, when=on("delete"))],
        needs=[needs(core_v1.Endpoints, "delete")],
        options=Options(reporter=ENDPOINTS),
    )
    return slices, cleanup
