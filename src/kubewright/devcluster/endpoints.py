"""The EndpointSlice and Endpoints controllers: the addresses behind each Service.

For a Service with a selector they are those of its Pods. Endpoints that users write for a Service without a selector are
mirrored to EndpointSlices.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kubewright.api import Meta, ObjectKey
from kubewright.api.builtin import core_v1, discovery_v1
from kubewright.controller import Change, Context, Controller, Index, Options, Result, needs, on, owned, watch
from kubewright.devcluster.batching import batched
from kubewright.devcluster.namespaces import ignore_terminating_namespace
from kubewright.devcluster.statuses import FIELD_MANAGER
from kubewright.devcluster.workloads import controller_keys, is_pod_finished, is_ready, short_hash

SLICES = "endpointslice-controller"
ENDPOINTS = "endpoint-controller"
MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
ENDPOINTS_MANAGED_BY = "endpoints.kubernetes.io/managed-by"
SERVICE_NAME = "kubernetes.io/service-name"
HEADLESS = "service.kubernetes.io/headless"
SLICE_SIZE = 100
SLICES_MANAGER = "endpointslice-controller.k8s.io"
MIRROR = "endpointslice-mirroring-controller"
MIRROR_MANAGER = "endpointslicemirroring-controller.k8s.io"
MIRRORED_SIZE = 1000
"""Maximum number of addresses of a subset that are mirrored."""
SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
LEADER = "control-plane.alpha.kubernetes.io/leader"
_UNMIRRORED_ANNOTATIONS = (
    "endpoints.kubernetes.io/last-change-trigger-time",
    "kubectl.kubernetes.io/last-applied-configuration",
)

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
        MANAGED_BY: SLICES_MANAGER,
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
        managed = item.metadata.labels.get(MANAGED_BY) == SLICES_MANAGER
        if managed and item.metadata.name not in desired:
            await ctx.delete(item)
    for item in desired.values():
        await ctx.apply(item)
    await ctx.apply(endpoints_for(service, pods), owned=False)
    return None


def is_mirrored(endpoints: core_v1.Endpoints, service: core_v1.Service | None) -> bool:
    """Return True if Endpoints are mirrored: those of a Service without a selector, unless they say otherwise."""
    meta = endpoints.metadata
    skipped = meta.labels.get(SKIP_MIRROR) == "true" or LEADER in meta.annotations
    return not skipped and service is not None and not service.spec.selector


def mirrored_slices(endpoints: core_v1.Endpoints) -> Iterator[discovery_v1.EndpointSlice]:
    """Build the EndpointSlices of Endpoints: one for each set of ports and type of address."""
    meta = endpoints.metadata
    groups: defaultdict[tuple[str, tuple[Port, ...]], list[discovery_v1.Endpoint]] = defaultdict(list)
    for ports, ready, address in _repacked(endpoints):
        family = "IPv6" if ":" in address.ip else "IPv4"
        endpoint = discovery_v1.Endpoint(
            addresses=[address.ip],
            conditions=discovery_v1.EndpointConditions(ready=ready),
            hostname=address.hostname or None,
            node_name=address.node_name,
            target_ref=address.target_ref,
        )
        groups[family, ports].append(endpoint)
    for (family, ports), members in sorted(groups.items(), key=lambda group: str(group[0])):
        yield discovery_v1.EndpointSlice(
            Meta(
                f"{meta.name}-{short_hash([meta.uid, family, ports])[:5]}",
                namespace=meta.namespace,
                generate_name=f"{meta.name}-",
                labels={**meta.labels, SERVICE_NAME: meta.name, MANAGED_BY: MIRROR_MANAGER},
                annotations={
                    key: value
                    for key, value in meta.annotations.items()
                    if key not in _UNMIRRORED_ANNOTATIONS
                },
            ),
            address_type=family,
            endpoints=members[:MIRRORED_SIZE],
            ports=[
                discovery_v1.EndpointPort(name=name, protocol=protocol, port=number, app_protocol=app)
                for name, protocol, number, app in ports
            ],
        )


def _repacked(
    endpoints: core_v1.Endpoints,
) -> Iterator[tuple[tuple[Port, ...], bool, core_v1.EndpointAddress]]:
    """Yield each address once for each readiness, with all ports that the subsets give it."""
    found: dict[tuple[str, bool], tuple[core_v1.EndpointAddress, dict[Port, None]]] = {}
    for subset in endpoints.subsets:
        ports = {
            (item.name, item.protocol or "TCP", item.port, item.app_protocol): None for item in subset.ports
        }
        for ready, addresses in ((True, subset.addresses), (False, subset.not_ready_addresses)):
            for address in addresses:
                _, known = found.setdefault((str(address), ready), (address, {}))
                known.update(ports)
    for (_, ready), (address, ports) in found.items():
        yield tuple(sorted(ports, key=str)), ready, address


@ignore_terminating_namespace
async def mirror_or_delete(endpoints: core_v1.Endpoints, ctx: Context) -> Result | None:
    """Mirror Endpoints to EndpointSlices, or delete those whose Service, which has no owner reference, is gone."""
    service = await ctx.find(core_v1.Service, endpoints.metadata.name)
    if service is None and endpoints.metadata.labels.get(ENDPOINTS_MANAGED_BY) == ENDPOINTS:
        await ctx.delete(endpoints)
        return None
    desired: dict[str, discovery_v1.EndpointSlice] = {}
    if is_mirrored(endpoints, service):
        desired = {item.metadata.name: item for item in mirrored_slices(endpoints)}
        skipped = sum(
            max(len(item.addresses) + len(item.not_ready_addresses) - MIRRORED_SIZE, 0)
            for item in endpoints.subsets
        )
        if skipped:
            ctx.warn(
                "TooManyAddressesToMirror",
                f"A max of {MIRRORED_SIZE} addresses can be mirrored to EndpointSlices per Endpoints subset. "
                f"{skipped} addresses were skipped",
            )
    for item in await ctx.list(slices_by_owner, endpoints.metadata.uid):
        if item.metadata.labels.get(MANAGED_BY) == MIRROR_MANAGER and item.metadata.name not in desired:
            await ctx.delete(item)
    for item in desired.values():
        await ctx.apply(item)
    return None


def _selector_changed(change: Change[core_v1.Service]) -> bool:
    old, new = change.old, change.new
    return old is None or new is None or bool(old.spec.selector) != bool(new.spec.selector)


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
    """Declare the EndpointSlice controller, and the controller that mirrors or deletes Endpoints."""
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
        options=Options(reporter=SLICES, field_manager=FIELD_MANAGER),
    )
    mirror = Controller(
        core_v1.Endpoints,
        mirror_or_delete,
        name=ENDPOINTS,
        owns=[owned(discovery_v1.EndpointSlice)],
        watches=[watch(core_v1.Service, map=_same_key, when=_selector_changed)],
        needs=[needs(core_v1.Endpoints, "delete"), needs(discovery_v1.EndpointSlice, "delete")],
        options=Options(reporter=MIRROR, field_manager=FIELD_MANAGER),
    )
    return slices, mirror
