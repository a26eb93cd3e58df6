"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.builtin.core_v1.basic import ObjectReference
from kubewright.api.conditions import Condition
from kubewright.api.model import Model
from kubewright.api.resource import Object


class ClientIPConfig(Model, builtin=True):
    timeout_seconds: int | None = None


class EndpointAddress(Model, builtin=True):
    hostname: str = ""
    ip: str
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointPort(Model, builtin=True):
    app_protocol: str | None = None
    name: str = ""
    port: int
    protocol: str = ""


class EndpointSubset(Model, builtin=True):
    addresses: list[EndpointAddress] = []
    not_ready_addresses: list[EndpointAddress] = []
    ports: list[EndpointPort] = []


class Endpoints(
    Object, group="", version="v1", plural="endpoints", short_names=["ep"], status=False, builtin=True
):
    subsets: list[EndpointSubset] = []


class PortStatus(Model, builtin=True):
    error: str | None = None
    port: int
    protocol: str


class LoadBalancerIngress(Model, builtin=True):
    hostname: str = ""
    ip: str = ""
    ip_mode: str | None = None
    ports: list[PortStatus] = []


class LoadBalancerStatus(Model, builtin=True):
    ingress: list[LoadBalancerIngress] = []


class ServicePort(Model, builtin=True):
    app_protocol: str | None = None
    name: str = ""
    node_port: int = 0
    port: int
    protocol: str = ""
    target_port: int | str | None = None


class SessionAffinityConfig(Model, builtin=True, wire_names={"client_ip": "clientIP"}):
    client_ip: ClientIPConfig | None = None


class ServiceSpec(
    Model,
    builtin=True,
    wire_names={
        "cluster_ip": "clusterIP",
        "cluster_ips": "clusterIPs",
        "external_ips": "externalIPs",
        "load_balancer_ip": "loadBalancerIP",
    },
    lists={"ports": ("port", "protocol")},
):
    allocate_load_balancer_node_ports: bool | None = None
    cluster_ip: str = ""
    cluster_ips: list[str] = []
    external_ips: list[str] = []
    external_name: str = ""
    external_traffic_policy: str = ""
    health_check_node_port: int = 0
    internal_traffic_policy: str | None = None
    ip_families: list[str] = []
    ip_family_policy: str | None = None
    load_balancer_class: str | None = None
    load_balancer_ip: str = ""
    load_balancer_source_ranges: list[str] = []
    ports: list[ServicePort] = []
    publish_not_ready_addresses: bool = False
    selector: dict[str, str] = {}
    session_affinity: str = ""
    session_affinity_config: SessionAffinityConfig | None = None
    traffic_distribution: str | None = None
    type: str = ""


class ServiceStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[Condition] = []
    load_balancer: LoadBalancerStatus = _field(default_factory=LoadBalancerStatus)


class Service(
    Object,
    group="",
    version="v1",
    plural="services",
    short_names=["svc"],
    categories=["all"],
    status=True,
    builtin=True,
):
    spec: ServiceSpec = _field(default_factory=ServiceSpec)
    status: ServiceStatus = _field(default_factory=ServiceStatus)


__all__ = [
    "ClientIPConfig",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "PortStatus",
    "Service",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
]
