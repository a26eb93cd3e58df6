"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object


class AttachedVolume(Model, builtin=True):
    device_path: str
    name: str


class ConfigMapNodeConfigSource(Model, builtin=True):
    kubelet_config_key: str
    name: str
    namespace: str
    resource_version: str = ""
    uid: str = ""


class ContainerImage(Model, builtin=True):
    names: list[str] = []
    size_bytes: int = 0


class DaemonEndpoint(Model, builtin=True, wire_names={"port": "Port"}):
    port: int


class NodeConfigSource(Model, builtin=True):
    config_map: ConfigMapNodeConfigSource | None = None


class NodePodPreemptionPolicy(Model, builtin=True, lists={"disable_resize_preemption": ()}):
    disable_resize_preemption: list[str] = []


class Taint(Model, builtin=True):
    effect: str
    key: str
    time_added: datetime | None = None
    value: str = ""


class NodeSpec(
    Model,
    builtin=True,
    wire_names={
        "external_id": "externalID",
        "pod_cidr": "podCIDR",
        "pod_cidrs": "podCIDRs",
        "provider_id": "providerID",
    },
    lists={"pod_cidrs": ()},
):
    config_source: NodeConfigSource | None = None
    external_id: str = ""
    pod_cidr: str = ""
    pod_cidrs: list[str] = []
    pod_preemption_policy: NodePodPreemptionPolicy | None = None
    provider_id: str = ""
    taints: list[Taint] = []
    unschedulable: bool = False


class NodeAddress(Model, builtin=True):
    address: str
    type: str


class NodeCondition(Model, builtin=True):
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class NodeConfigStatus(Model, builtin=True):
    active: NodeConfigSource | None = None
    assigned: NodeConfigSource | None = None
    error: str = ""
    last_known_good: NodeConfigSource | None = None


class NodeDaemonEndpoints(Model, builtin=True):
    kubelet_endpoint: DaemonEndpoint = _field(default_factory=lambda: zero(DaemonEndpoint))


class NodeFeatures(Model, builtin=True):
    supplemental_groups_policy: bool | None = None


class NodeRuntimeHandlerFeatures(Model, builtin=True):
    recursive_read_only_mounts: bool | None = None
    user_namespaces: bool | None = None


class NodeRuntimeHandler(Model, builtin=True):
    features: NodeRuntimeHandlerFeatures | None = None
    name: str = ""


class NodeSwapStatus(Model, builtin=True):
    capacity: int | None = None


class NodeSystemInfo(
    Model,
    builtin=True,
    wire_names={"boot_id": "bootID", "machine_id": "machineID", "system_uuid": "systemUUID"},
):
    architecture: str
    boot_id: str
    container_runtime_version: str
    kernel_version: str
    kube_proxy_version: str
    kubelet_version: str
    machine_id: str
    operating_system: str
    os_image: str
    running_in_user_namespace: bool | None = None
    swap: NodeSwapStatus | None = None
    system_uuid: str


class NodeStatus(Model, builtin=True, lists={"addresses": ("type",), "conditions": ("type",)}):
    addresses: list[NodeAddress] = []
    allocatable: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: list[NodeCondition] = []
    config: NodeConfigStatus | None = None
    daemon_endpoints: NodeDaemonEndpoints = _field(default_factory=NodeDaemonEndpoints)
    declared_features: list[str] = []
    features: NodeFeatures | None = None
    images: list[ContainerImage] = []
    node_info: NodeSystemInfo = _field(default_factory=lambda: zero(NodeSystemInfo))
    phase: str = ""
    runtime_handlers: list[NodeRuntimeHandler] = []
    volumes_attached: list[AttachedVolume] = []
    volumes_in_use: list[str] = []


class Node(
    Object,
    group="",
    version="v1",
    plural="nodes",
    scope="Cluster",
    short_names=["no"],
    status=True,
    builtin=True,
):
    spec: NodeSpec = _field(default_factory=NodeSpec)
    status: NodeStatus = _field(default_factory=NodeStatus)


__all__ = [
    "AttachedVolume",
    "ConfigMapNodeConfigSource",
    "ContainerImage",
    "DaemonEndpoint",
    "Node",
    "NodeAddress",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodePodPreemptionPolicy",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
    "Taint",
]
