"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.codec import zero
from kubewright.api.conditions import Condition
from kubewright.api.fields import Scale
from kubewright.api.meta import Meta
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object
from kubewright.api.times import MicroTime


class AWSElasticBlockStoreVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str


class NodeSelectorRequirement(Model, builtin=True):
    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(Model, builtin=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Model, builtin=True):
    node_selector_terms: list[NodeSelectorTerm]


class PreferredSchedulingTerm(Model, builtin=True):
    preference: NodeSelectorTerm
    weight: int


class NodeAffinity(Model, builtin=True):
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class PodAffinityTerm(Model, builtin=True):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []
    namespace_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str


class WeightedPodAffinityTerm(Model, builtin=True):
    pod_affinity_term: PodAffinityTerm
    weight: int


class PodAffinity(Model, builtin=True):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []


class PodAntiAffinity(Model, builtin=True):
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []


class Affinity(Model, builtin=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAntiAffinity | None = None


class AppArmorProfile(Model, builtin=True):
    localhost_profile: str | None = None
    type: str


class AttachedVolume(Model, builtin=True):
    device_path: str
    name: str


class AzureDiskVolumeSource(Model, builtin=True, wire_names={"disk_uri": "diskURI"}):
    caching_mode: str | None = None
    disk_name: str
    disk_uri: str
    fs_type: str | None = None
    kind: str | None = None
    read_only: bool | None = None


class AzureFilePersistentVolumeSource(Model, builtin=True):
    read_only: bool = False
    secret_name: str
    secret_namespace: str | None = None
    share_name: str


class AzureFileVolumeSource(Model, builtin=True):
    read_only: bool = False
    secret_name: str
    share_name: str


class ObjectReference(Model, builtin=True):
    api_version: str = ""
    field_path: str = ""
    kind: str = ""
    name: str = ""
    namespace: str = ""
    resource_version: str = ""
    uid: str = ""


class Binding(Object, group="", version="v1", plural="bindings", status=False, builtin=True):
    target: ObjectReference


class SecretReference(Model, builtin=True):
    name: str = ""
    namespace: str = ""


class CSIPersistentVolumeSource(Model, builtin=True):
    controller_expand_secret_ref: SecretReference | None = None
    controller_publish_secret_ref: SecretReference | None = None
    driver: str
    fs_type: str = ""
    node_expand_secret_ref: SecretReference | None = None
    node_publish_secret_ref: SecretReference | None = None
    node_stage_secret_ref: SecretReference | None = None
    read_only: bool = False
    volume_attributes: dict[str, str] = {}
    volume_handle: str


class LocalObjectReference(Model, builtin=True):
    name: str = ""


class CSIVolumeSource(Model, builtin=True):
    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] = {}


class Capabilities(Model, builtin=True):
    add: list[str] = []
    drop: list[str] = []


class CephFSPersistentVolumeSource(Model, builtin=True):
    monitors: list[str]
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    user: str = ""


class CephFSVolumeSource(Model, builtin=True):
    monitors: list[str]
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class CinderPersistentVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    volume_id: str


class CinderVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_id: str


class ClientIPConfig(Model, builtin=True):
    timeout_seconds: int | None = None


class ClusterTrustBundleProjection(Model, builtin=True):
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str
    signer_name: str | None = None


class ComponentCondition(Model, builtin=True):
    error: str = ""
    message: str = ""
    status: str
    type: str


class ComponentStatus(
    Object,
    group="",
    version="v1",
    plural="componentstatuses",
    scope="Cluster",
    short_names=["cs"],
    status=False,
    builtin=True,
    lists={"conditions": ("type",)},
):
    conditions: list[ComponentCondition] = []


class ConfigMap(
    Object, group="", version="v1", plural="configmaps", short_names=["cm"], status=False, builtin=True
):
    binary_data: dict[str, bytes] = {}
    data: dict[str, str] = {}
    immutable: bool | None = None


class ConfigMapEnvSource(Model, builtin=True):
    name: str = ""
    optional: bool | None = None


class ConfigMapKeySelector(Model, builtin=True):
    key: str
    name: str = ""
    optional: bool | None = None


class ConfigMapNodeConfigSource(Model, builtin=True):
    kubelet_config_key: str
    name: str
    namespace: str
    resource_version: str = ""
    uid: str = ""


class KeyToPath(Model, builtin=True):
    key: str
    mode: int | None = None
    path: str


class ConfigMapProjection(Model, builtin=True):
    items: list[KeyToPath] = []
    name: str = ""
    optional: bool | None = None


class ConfigMapVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    items: list[KeyToPath] = []
    name: str = ""
    optional: bool | None = None


class ContainerPort(Model, builtin=True, wire_names={"host_ip": "hostIP"}):
    container_port: int
    host_ip: str = ""
    host_port: int = 0
    name: str = ""
    protocol: str = ""


class ContainerResizePolicy(Model, builtin=True):
    resource_name: str
    restart_policy: str


class ContainerRestartRuleOnExitCodes(Model, builtin=True, lists={"values": ()}):
    operator: str
    values: list[int] = []


class ContainerRestartRule(Model, builtin=True):
    action: str
    exit_codes: ContainerRestartRuleOnExitCodes | None = None


class SecretEnvSource(Model, builtin=True):
    name: str = ""
    optional: bool | None = None


class EnvFromSource(Model, builtin=True):
    config_map_ref: ConfigMapEnvSource | None = None
    prefix: str = ""
    secret_ref: SecretEnvSource | None = None


class FileKeySelector(Model, builtin=True):
    key: str
    optional: bool | None = None
    path: str
    volume_name: str


class ObjectFieldSelector(Model, builtin=True):
    api_version: str = ""
    field_path: str


class ResourceFieldSelector(Model, builtin=True):
    container_name: str = ""
    divisor: Quantity | None = None
    resource: str


class SecretKeySelector(Model, builtin=True):
    key: str
    name: str = ""
    optional: bool | None = None


class EnvVarSource(Model, builtin=True):
    config_map_key_ref: ConfigMapKeySelector | None = None
    field_ref: ObjectFieldSelector | None = None
    file_key_ref: FileKeySelector | None = None
    resource_field_ref: ResourceFieldSelector | None = None
    secret_key_ref: SecretKeySelector | None = None


class EnvVar(Model, builtin=True):
    name: str
    value: str = ""
    value_from: EnvVarSource | None = None


class ExecAction(Model, builtin=True):
    command: list[str] = []


class HTTPHeader(Model, builtin=True):
    name: str
    value: str


class HTTPGetAction(Model, builtin=True):
    host: str = ""
    http_headers: list[HTTPHeader] = []
    path: str = ""
    port: int | str
    scheme: str = ""


class SleepAction(Model, builtin=True):
    seconds: int


class TCPSocketAction(Model, builtin=True):
    host: str = ""
    port: int | str


class LifecycleHandler(Model, builtin=True):
    exec: ExecAction | None = None
    http_get: HTTPGetAction | None = None
    sleep: SleepAction | None = None
    tcp_socket: TCPSocketAction | None = None


class Lifecycle(Model, builtin=True):
    post_start: LifecycleHandler | None = None
    pre_stop: LifecycleHandler | None = None
    stop_signal: str | None = None


class GRPCAction(Model, builtin=True):
    port: int
    service: str | None = None


class Probe(Model, builtin=True):
    exec: ExecAction | None = None
    failure_threshold: int = 0
    grpc: GRPCAction | None = None
    http_get: HTTPGetAction | None = None
    initial_delay_seconds: int = 0
    period_seconds: int = 0
    success_threshold: int = 0
    tcp_socket: TCPSocketAction | None = None
    termination_grace_period_seconds: int | None = None
    timeout_seconds: int = 0


class ResourceClaim(Model, builtin=True):
    name: str
    request: str = ""


class ResourceRequirements(Model, builtin=True, lists={"claims": ("name",)}):
    claims: list[ResourceClaim] = []
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class SELinuxOptions(Model, builtin=True):
    level: str = ""
    role: str = ""
    type: str = ""
    user: str = ""


class SeccompProfile(Model, builtin=True):
    localhost_profile: str | None = None
    type: str


class WindowsSecurityContextOptions(Model, builtin=True):
    gmsa_credential_spec: str | None = None
    gmsa_credential_spec_name: str | None = None
    host_process: bool | None = None
    run_as_user_name: str | None = None


class SecurityContext(Model, builtin=True):
    allow_privilege_escalation: bool | None = None
    app_armor_profile: AppArmorProfile | None = None
    capabilities: Capabilities | None = None
    privileged: bool | None = None
    proc_mount: str | None = None
    read_only_root_filesystem: bool | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    windows_options: WindowsSecurityContextOptions | None = None


class VolumeDevice(Model, builtin=True):
    device_path: str
    name: str


class VolumeMount(Model, builtin=True):
    mount_path: str
    mount_propagation: str | None = None
    name: str
    read_only: bool = False
    recursive_read_only: str | None = None
    sub_path: str = ""
    sub_path_expr: str = ""


class Container(
    Model,
    builtin=True,
    lists={
        "env": ("name",),
        "ports": ("containerPort", "protocol"),
        "volume_devices": ("devicePath",),
        "volume_mounts": ("mountPath",),
    },
):
    args: list[str] = []
    command: list[str] = []
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = []
    resources: ResourceRequirements = _field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool = False
    volume_devices: list[VolumeDevice] = []
    volume_mounts: list[VolumeMount] = []
    working_dir: str = ""


class ContainerExtendedResourceRequest(Model, builtin=True):
    container_name: str
    request_name: str
    resource_name: str


class ContainerImage(Model, builtin=True):
    names: list[str] = []
    size_bytes: int = 0


class ContainerStateRunning(Model, builtin=True):
    started_at: datetime | None = None


class ContainerStateTerminated(Model, builtin=True, wire_names={"container_id": "containerID"}):
    container_id: str = ""
    exit_code: int
    finished_at: datetime | None = None
    message: str = ""
    reason: str = ""
    signal: int = 0
    started_at: datetime | None = None


class ContainerStateWaiting(Model, builtin=True):
    message: str = ""
    reason: str = ""


class ContainerState(Model, builtin=True):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class LinuxContainerUser(Model, builtin=True):
    gid: int
    supplemental_groups: list[int] = []
    uid: int


class ContainerUser(Model, builtin=True):
    linux: LinuxContainerUser | None = None


class ResourceHealth(Model, builtin=True, wire_names={"resource_id": "resourceID"}):
    health: str = ""
    message: str | None = None
    resource_id: str


class ResourceStatus(Model, builtin=True, lists={"resources": ("resourceID",)}):
    name: str
    resources: list[ResourceHealth] = []


class ImageVolumeStatus(Model, builtin=True):
    image_ref: str


class VolumeStatus(Model, builtin=True):
    image: ImageVolumeStatus | None = None


class VolumeMountStatus(Model, builtin=True):
    mount_path: str
    name: str
    read_only: bool = False
    recursive_read_only: str | None = None
    volume_status: VolumeStatus | None = None


class ContainerStatus(
    Model,
    builtin=True,
    wire_names={"container_id": "containerID", "image_id": "imageID"},
    lists={"allocated_resources_status": ("name",), "volume_mounts": ("mountPath",)},
):
    allocated_resources: dict[str, Quantity] = {}
    allocated_resources_status: list[ResourceStatus] = []
    container_id: str = ""
    image: str
    image_id: str
    last_state: ContainerState = _field(default_factory=ContainerState)
    name: str
    ready: bool
    resources: ResourceRequirements | None = None
    restart_count: int
    started: bool | None = None
    state: ContainerState = _field(default_factory=ContainerState)
    stop_signal: str | None = None
    user: ContainerUser | None = None
    volume_mounts: list[VolumeMountStatus] = []


class DaemonEndpoint(Model, builtin=True, wire_names={"port": "Port"}):
    port: int


class DownwardAPIVolumeFile(Model, builtin=True):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str
    resource_field_ref: ResourceFieldSelector | None = None


class DownwardAPIProjection(Model, builtin=True):
    items: list[DownwardAPIVolumeFile] = []


class DownwardAPIVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    items: list[DownwardAPIVolumeFile] = []


class EmptyDirVolumeSource(Model, builtin=True):
    medium: str = ""
    size_limit: Quantity | None = None


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


class EphemeralContainer(
    Model,
    builtin=True,
    lists={
        "env": ("name",),
        "ports": ("containerPort", "protocol"),
        "volume_devices": ("devicePath",),
        "volume_mounts": ("mountPath",),
    },
):
    args: list[str] = []
    command: list[str] = []
    env: list[EnvVar] = []
    env_from: list[EnvFromSource] = []
    image: str = ""
    image_pull_policy: str = ""
    lifecycle: Lifecycle | None = None
    liveness_probe: Probe | None = None
    name: str
    ports: list[ContainerPort] = []
    readiness_probe: Probe | None = None
    resize_policy: list[ContainerResizePolicy] = []
    resources: ResourceRequirements = _field(default_factory=ResourceRequirements)
    restart_policy: str | None = None
    restart_policy_rules: list[ContainerRestartRule] = []
    security_context: SecurityContext | None = None
    startup_probe: Probe | None = None
    stdin: bool = False
    stdin_once: bool = False
    target_container_name: str = ""
    termination_message_path: str = ""
    termination_message_policy: str = ""
    tty: bool = False
    volume_devices: list[VolumeDevice] = []
    volume_mounts: list[VolumeMount] = []
    working_dir: str = ""


class TypedLocalObjectReference(Model, builtin=True):
    api_group: str | None = None
    kind: str
    name: str


class TypedObjectReference(Model, builtin=True):
    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None


class VolumeResourceRequirements(Model, builtin=True):
    limits: dict[str, Quantity] = {}
    requests: dict[str, Quantity] = {}


class PersistentVolumeClaimSpec(Model, builtin=True):
    access_modes: list[str] = []
    data_source: TypedLocalObjectReference | None = None
    data_source_ref: TypedObjectReference | None = None
    resources: VolumeResourceRequirements = _field(default_factory=VolumeResourceRequirements)
    selector: LabelSelector | None = None
    storage_class_name: str | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    volume_name: str = ""


class PersistentVolumeClaimTemplate(Model, builtin=True):
    metadata: Meta = _field(default_factory=Meta)
    spec: PersistentVolumeClaimSpec


class EphemeralVolumeSource(Model, builtin=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class EventSeries(Model, builtin=True):
    count: int = 0
    last_observed_time: MicroTime | None = None


class EventSource(Model, builtin=True):
    component: str = ""
    host: str = ""


class Event(Object, group="", version="v1", plural="events", short_names=["ev"], status=False, builtin=True):
    action: str = ""
    count: int = 0
    event_time: MicroTime | None = None
    first_timestamp: datetime | None = None
    involved_object: ObjectReference
    last_timestamp: datetime | None = None
    message: str = ""
    reason: str = ""
    related: ObjectReference | None = None
    reporting_component: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    source: EventSource = _field(default_factory=EventSource)
    type: str = ""


class FCVolumeSource(Model, builtin=True, wire_names={"target_wwns": "targetWWNs"}):
    fs_type: str = ""
    lun: int | None = None
    read_only: bool = False
    target_wwns: list[str] = []
    wwids: list[str] = []


class FlexPersistentVolumeSource(Model, builtin=True):
    driver: str
    fs_type: str = ""
    options: dict[str, str] = {}
    read_only: bool = False
    secret_ref: SecretReference | None = None


class FlexVolumeSource(Model, builtin=True):
    driver: str
    fs_type: str = ""
    options: dict[str, str] = {}
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class FlockerVolumeSource(Model, builtin=True, wire_names={"dataset_uuid": "datasetUUID"}):
    dataset_name: str = ""
    dataset_uuid: str = ""


class GCEPersistentDiskVolumeSource(Model, builtin=True):
    fs_type: str = ""
    partition: int = 0
    pd_name: str
    read_only: bool = False


class GitRepoVolumeSource(Model, builtin=True):
    directory: str = ""
    repository: str
    revision: str = ""


class GlusterfsPersistentVolumeSource(Model, builtin=True):
    endpoints: str
    endpoints_namespace: str | None = None
    path: str
    read_only: bool = False


class GlusterfsVolumeSource(Model, builtin=True):
    endpoints: str
    path: str
    read_only: bool = False


class HostAlias(Model, builtin=True):
    hostnames: list[str] = []
    ip: str


class HostIP(Model, builtin=True):
    ip: str


class HostPathVolumeSource(Model, builtin=True):
    path: str
    type: str | None = None


class ISCSIPersistentVolumeSource(Model, builtin=True):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str | None = None
    iqn: str
    iscsi_interface: str = ""
    lun: int
    portals: list[str] = []
    read_only: bool = False
    secret_ref: SecretReference | None = None
    target_portal: str


class ISCSIVolumeSource(Model, builtin=True):
    chap_auth_discovery: bool = False
    chap_auth_session: bool = False
    fs_type: str = ""
    initiator_name: str | None = None
    iqn: str
    iscsi_interface: str = ""
    lun: int
    portals: list[str] = []
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    target_portal: str


class ImageVolumeSource(Model, builtin=True):
    pull_policy: str = ""
    reference: str = ""


class LimitRangeItem(Model, builtin=True):
    default: dict[str, Quantity] = {}
    default_request: dict[str, Quantity] = {}
    max: dict[str, Quantity] = {}
    max_limit_request_ratio: dict[str, Quantity] = {}
    min: dict[str, Quantity] = {}
    type: str


class LimitRangeSpec(Model, builtin=True):
    limits: list[LimitRangeItem]


class LimitRange(
    Object, group="", version="v1", plural="limitranges", short_names=["limits"], status=False, builtin=True
):
    spec: LimitRangeSpec


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


class LocalVolumeSource(Model, builtin=True):
    fs_type: str | None = None
    path: str


class ModifyVolumeStatus(Model, builtin=True):
    status: str
    target_volume_attributes_class_name: str = ""


class NFSVolumeSource(Model, builtin=True):
    path: str
    read_only: bool = False
    server: str


class NamespaceSpec(Model, builtin=True):
    finalizers: list[str] = []


class NamespaceCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class NamespaceStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[NamespaceCondition] = []
    phase: str = ""


class Namespace(
    Object,
    group="",
    version="v1",
    plural="namespaces",
    scope="Cluster",
    short_names=["ns"],
    status=True,
    builtin=True,
):
    spec: NamespaceSpec = _field(default_factory=NamespaceSpec)
    status: NamespaceStatus = _field(default_factory=NamespaceStatus)


class NodeConfigSource(Model, builtin=True):
    config_map: ConfigMapNodeConfigSource | None = None


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


class NodeAllocatableResourceClaimStatus(Model, builtin=True, lists={"containers": ()}):
    containers: list[str] = []
    resource_claim_name: str
    resources: dict[str, Quantity]


class PhotonPersistentDiskVolumeSource(Model, builtin=True, wire_names={"pd_id": "pdID"}):
    fs_type: str = ""
    pd_id: str


class PortworxVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    read_only: bool = False
    volume_id: str


class QuobyteVolumeSource(Model, builtin=True):
    group: str = ""
    read_only: bool = False
    registry: str
    tenant: str = ""
    user: str = ""
    volume: str


class RBDPersistentVolumeSource(Model, builtin=True):
    fs_type: str = ""
    image: str
    keyring: str = ""
    monitors: list[str]
    pool: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    user: str = ""


class ScaleIOPersistentVolumeSource(Model, builtin=True):
    fs_type: str = ""
    gateway: str
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: SecretReference
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str
    volume_name: str = ""


class StorageOSPersistentVolumeSource(Model, builtin=True):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: ObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class VolumeNodeAffinity(Model, builtin=True):
    required: NodeSelector | None = None


class VsphereVirtualDiskVolumeSource(
    Model, builtin=True, wire_names={"storage_policy_id": "storagePolicyID"}
):
    fs_type: str = ""
    storage_policy_id: str = ""
    storage_policy_name: str = ""
    volume_path: str


class PersistentVolumeSpec(Model, builtin=True, wire_names={"scale_io": "scaleIO"}):
    access_modes: list[str] = []
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFilePersistentVolumeSource | None = None
    capacity: dict[str, Quantity] = {}
    cephfs: CephFSPersistentVolumeSource | None = None
    cinder: CinderPersistentVolumeSource | None = None
    claim_ref: ObjectReference | None = None
    csi: CSIPersistentVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexPersistentVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    glusterfs: GlusterfsPersistentVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    iscsi: ISCSIPersistentVolumeSource | None = None
    local: LocalVolumeSource | None = None
    mount_options: list[str] = []
    nfs: NFSVolumeSource | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDPersistentVolumeSource | None = None
    scale_io: ScaleIOPersistentVolumeSource | None = None
    storage_class_name: str = ""
    storageos: StorageOSPersistentVolumeSource | None = None
    volume_attributes_class_name: str | None = None
    volume_mode: str | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PersistentVolumeStatus(Model, builtin=True):
    last_phase_transition_time: datetime | None = None
    message: str = ""
    phase: str = ""
    reason: str = ""


class PersistentVolume(
    Object,
    group="",
    version="v1",
    plural="persistentvolumes",
    scope="Cluster",
    short_names=["pv"],
    status=True,
    builtin=True,
):
    spec: PersistentVolumeSpec = _field(default_factory=PersistentVolumeSpec)
    status: PersistentVolumeStatus = _field(default_factory=PersistentVolumeStatus)


class PersistentVolumeClaimCondition(Model, builtin=True):
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class PersistentVolumeClaimStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    access_modes: list[str] = []
    allocated_resource_statuses: dict[str, str] = {}
    allocated_resources: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: list[PersistentVolumeClaimCondition] = []
    current_volume_attributes_class_name: str | None = None
    modify_volume_status: ModifyVolumeStatus | None = None
    phase: str = ""


class PersistentVolumeClaim(
    Object,
    group="",
    version="v1",
    plural="persistentvolumeclaims",
    short_names=["pvc"],
    status=True,
    builtin=True,
):
    spec: PersistentVolumeClaimSpec = _field(default_factory=PersistentVolumeClaimSpec)
    status: PersistentVolumeClaimStatus = _field(default_factory=PersistentVolumeClaimStatus)


class PersistentVolumeClaimVolumeSource(Model, builtin=True):
    claim_name: str
    read_only: bool = False


class PodDNSConfigOption(Model, builtin=True):
    name: str = ""
    value: str | None = None


class PodDNSConfig(Model, builtin=True):
    nameservers: list[str] = []
    options: list[PodDNSConfigOption] = []
    searches: list[str] = []


class PodOS(Model, builtin=True):
    name: str


class PodReadinessGate(Model, builtin=True):
    condition_type: str


class PodResourceClaim(Model, builtin=True):
    name: str
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Model, builtin=True):
    name: str


class PodSchedulingGroup(Model, builtin=True):
    pod_group_name: str | None = None


class Sysctl(Model, builtin=True):
    name: str
    value: str


class PodSecurityContext(Model, builtin=True):
    app_armor_profile: AppArmorProfile | None = None
    fs_group: int | None = None
    fs_group_change_policy: str | None = None
    run_as_group: int | None = None
    run_as_non_root: bool | None = None
    run_as_user: int | None = None
    se_linux_change_policy: str | None = None
    se_linux_options: SELinuxOptions | None = None
    seccomp_profile: SeccompProfile | None = None
    supplemental_groups: list[int] = []
    supplemental_groups_policy: str | None = None
    sysctls: list[Sysctl] = []
    windows_options: WindowsSecurityContextOptions | None = None


class Toleration(Model, builtin=True):
    effect: str = ""
    key: str = ""
    operator: str = ""
    toleration_seconds: int | None = None
    value: str = ""


class TopologySpreadConstraint(Model, builtin=True):
    label_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    max_skew: int
    min_domains: int | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    topology_key: str
    when_unsatisfiable: str


class PodCertificateProjection(Model, builtin=True):
    certificate_chain_path: str = ""
    credential_bundle_path: str = ""
    key_path: str = ""
    key_type: str
    max_expiration_seconds: int | None = None
    signer_name: str
    user_annotations: dict[str, str] = {}


class SecretProjection(Model, builtin=True):
    items: list[KeyToPath] = []
    name: str = ""
    optional: bool | None = None


class ServiceAccountTokenProjection(Model, builtin=True):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str


class VolumeProjection(Model, builtin=True, wire_names={"downward_api": "downwardAPI"}):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    sources: list[VolumeProjection] = []


class RBDVolumeSource(Model, builtin=True):
    fs_type: str = ""
    image: str
    keyring: str = ""
    monitors: list[str]
    pool: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class ScaleIOVolumeSource(Model, builtin=True):
    fs_type: str = ""
    gateway: str
    protection_domain: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference
    ssl_enabled: bool = False
    storage_mode: str = ""
    storage_pool: str = ""
    system: str
    volume_name: str = ""


class SecretVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    items: list[KeyToPath] = []
    optional: bool | None = None
    secret_name: str = ""


class StorageOSVolumeSource(Model, builtin=True):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_name: str = ""
    volume_namespace: str = ""


class Volume(Model, builtin=True, wire_names={"downward_api": "downwardAPI", "scale_io": "scaleIO"}):
    aws_elastic_block_store: AWSElasticBlockStoreVolumeSource | None = None
    azure_disk: AzureDiskVolumeSource | None = None
    azure_file: AzureFileVolumeSource | None = None
    cephfs: CephFSVolumeSource | None = None
    cinder: CinderVolumeSource | None = None
    config_map: ConfigMapVolumeSource | None = None
    csi: CSIVolumeSource | None = None
    downward_api: DownwardAPIVolumeSource | None = None
    empty_dir: EmptyDirVolumeSource | None = None
    ephemeral: EphemeralVolumeSource | None = None
    fc: FCVolumeSource | None = None
    flex_volume: FlexVolumeSource | None = None
    flocker: FlockerVolumeSource | None = None
    gce_persistent_disk: GCEPersistentDiskVolumeSource | None = None
    git_repo: GitRepoVolumeSource | None = None
    glusterfs: GlusterfsVolumeSource | None = None
    host_path: HostPathVolumeSource | None = None
    image: ImageVolumeSource | None = None
    iscsi: ISCSIVolumeSource | None = None
    name: str
    nfs: NFSVolumeSource | None = None
    persistent_volume_claim: PersistentVolumeClaimVolumeSource | None = None
    photon_persistent_disk: PhotonPersistentDiskVolumeSource | None = None
    portworx_volume: PortworxVolumeSource | None = None
    projected: ProjectedVolumeSource | None = None
    quobyte: QuobyteVolumeSource | None = None
    rbd: RBDVolumeSource | None = None
    scale_io: ScaleIOVolumeSource | None = None
    secret: SecretVolumeSource | None = None
    storageos: StorageOSVolumeSource | None = None
    vsphere_volume: VsphereVirtualDiskVolumeSource | None = None


class PodSpec(
    Model,
    builtin=True,
    wire_names={"host_ipc": "hostIPC", "host_pid": "hostPID", "set_hostname_as_fqdn": "setHostnameAsFQDN"},
    lists={
        "containers": ("name",),
        "ephemeral_containers": ("name",),
        "host_aliases": ("ip",),
        "image_pull_secrets": ("name",),
        "init_containers": ("name",),
        "resource_claims": ("name",),
        "scheduling_gates": ("name",),
        "topology_spread_constraints": ("topologyKey", "whenUnsatisfiable"),
        "volumes": ("name",),
    },
):
    active_deadline_seconds: int | None = None
    affinity: Affinity | None = None
    automount_service_account_token: bool | None = None
    containers: list[Container]
    dns_config: PodDNSConfig | None = None
    dns_policy: str = ""
    enable_service_links: bool | None = None
    ephemeral_containers: list[EphemeralContainer] = []
    host_aliases: list[HostAlias] = []
    host_ipc: bool = False
    host_network: bool = False
    host_pid: bool = False
    host_users: bool | None = None
    hostname: str = ""
    hostname_override: str | None = None
    image_pull_secrets: list[LocalObjectReference] = []
    init_containers: list[Container] = []
    node_name: str = ""
    node_selector: dict[str, str] = {}
    os: PodOS | None = None
    overhead: dict[str, Quantity] = {}
    preemption_policy: str | None = None
    priority: int | None = None
    priority_class_name: str = ""
    readiness_gates: list[PodReadinessGate] = []
    resource_claims: list[PodResourceClaim] = []
    resources: ResourceRequirements | None = None
    restart_policy: str = ""
    runtime_class_name: str | None = None
    scheduler_name: str = ""
    scheduling_gates: list[PodSchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None
    security_context: PodSecurityContext | None = None
    service_account: str = ""
    service_account_name: str = ""
    set_hostname_as_fqdn: bool | None = None
    share_process_namespace: bool | None = None
    subdomain: str = ""
    termination_grace_period_seconds: int | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    volumes: list[Volume] = []


class PodCondition(Model, builtin=True):
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    observed_generation: int = 0
    reason: str = ""
    status: str
    type: str


class PodExtendedResourceClaimStatus(Model, builtin=True):
    request_mappings: list[ContainerExtendedResourceRequest]
    resource_claim_name: str


class PodIP(Model, builtin=True):
    ip: str


class PodResourceClaimStatus(Model, builtin=True):
    name: str
    resource_claim_name: str | None = None


class PodStatus(
    Model,
    builtin=True,
    wire_names={"host_ip": "hostIP", "host_ips": "hostIPs", "pod_ip": "podIP", "pod_ips": "podIPs"},
    lists={"conditions": ("type",), "pod_ips": ("ip",), "resource_claim_statuses": ("name",)},
):
    allocated_resources: dict[str, Quantity] = {}
    conditions: list[PodCondition] = []
    container_statuses: list[ContainerStatus] = []
    ephemeral_container_statuses: list[ContainerStatus] = []
    extended_resource_claim_status: PodExtendedResourceClaimStatus | None = None
    host_ip: str = ""
    host_ips: list[HostIP] = []
    init_container_statuses: list[ContainerStatus] = []
    message: str = ""
    node_allocatable_resource_claim_statuses: list[NodeAllocatableResourceClaimStatus] = []
    nominated_node_name: str = ""
    observed_generation: int = 0
    phase: str = ""
    pod_ip: str = ""
    pod_ips: list[PodIP] = []
    qos_class: str = ""
    reason: str = ""
    resize: str = ""
    resource_claim_statuses: list[PodResourceClaimStatus] = []
    resources: ResourceRequirements | None = None
    start_time: datetime | None = None


class Pod(
    Object,
    group="",
    version="v1",
    plural="pods",
    short_names=["po"],
    categories=["all"],
    status=True,
    builtin=True,
):
    spec: PodSpec
    status: PodStatus = _field(default_factory=PodStatus)


class PodTemplateSpec(Model, builtin=True):
    metadata: Meta = _field(default_factory=Meta)
    spec: PodSpec


class PodTemplate(Object, group="", version="v1", plural="podtemplates", status=False, builtin=True):
    template: PodTemplateSpec = _field(default_factory=lambda: zero(PodTemplateSpec))


class ReplicationControllerSpec(Model, builtin=True):
    min_ready_seconds: int = 0
    replicas: int | None = None
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Model, builtin=True):
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class ReplicationControllerStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    available_replicas: int = 0
    conditions: list[ReplicationControllerCondition] = []
    fully_labeled_replicas: int = 0
    observed_generation: int = 0
    ready_replicas: int = 0
    replicas: int


class ReplicationController(
    Object,
    group="",
    version="v1",
    plural="replicationcontrollers",
    short_names=["rc"],
    categories=["all"],
    status=True,
    scale=Scale(spec=".spec.replicas", status=".status.replicas", selector=".status.selector"),
    builtin=True,
):
    spec: ReplicationControllerSpec = _field(default_factory=ReplicationControllerSpec)
    status: ReplicationControllerStatus = _field(default_factory=lambda: zero(ReplicationControllerStatus))


class ScopedResourceSelectorRequirement(Model, builtin=True):
    operator: str
    scope_name: str
    values: list[str] = []


class ScopeSelector(Model, builtin=True):
    match_expressions: list[ScopedResourceSelectorRequirement] = []


class ResourceQuotaSpec(Model, builtin=True):
    hard: dict[str, Quantity] = {}
    scope_selector: ScopeSelector | None = None
    scopes: list[str] = []


class ResourceQuotaStatus(Model, builtin=True):
    hard: dict[str, Quantity] = {}
    used: dict[str, Quantity] = {}


class ResourceQuota(
    Object, group="", version="v1", plural="resourcequotas", short_names=["quota"], status=True, builtin=True
):
    spec: ResourceQuotaSpec = _field(default_factory=ResourceQuotaSpec)
    status: ResourceQuotaStatus = _field(default_factory=ResourceQuotaStatus)


class Secret(Object, group="", version="v1", plural="secrets", status=False, builtin=True):
    data: dict[str, bytes] = {}
    immutable: bool | None = None
    string_data: dict[str, str] = {}
    type: str = ""


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


class ServiceAccount(
    Object,
    group="",
    version="v1",
    plural="serviceaccounts",
    short_names=["sa"],
    status=False,
    builtin=True,
    lists={"secrets": ("name",)},
):
    automount_service_account_token: bool | None = None
    image_pull_secrets: list[LocalObjectReference] = []
    secrets: list[ObjectReference] = []


class TopologySelectorLabelRequirement(Model, builtin=True):
    key: str
    values: list[str]


class TopologySelectorTerm(Model, builtin=True):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "Affinity",
    "AppArmorProfile",
    "AttachedVolume",
    "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource",
    "AzureFileVolumeSource",
    "Binding",
    "CSIPersistentVolumeSource",
    "CSIVolumeSource",
    "Capabilities",
    "CephFSPersistentVolumeSource",
    "CephFSVolumeSource",
    "CinderPersistentVolumeSource",
    "CinderVolumeSource",
    "ClientIPConfig",
    "ClusterTrustBundleProjection",
    "ComponentCondition",
    "ComponentStatus",
    "ConfigMap",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapNodeConfigSource",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
    "ContainerImage",
    "ContainerPort",
    "ContainerResizePolicy",
    "ContainerRestartRule",
    "ContainerRestartRuleOnExitCodes",
    "ContainerState",
    "ContainerStateRunning",
    "ContainerStateTerminated",
    "ContainerStateWaiting",
    "ContainerStatus",
    "ContainerUser",
    "DaemonEndpoint",
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EndpointAddress",
    "EndpointPort",
    "EndpointSubset",
    "Endpoints",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "Event",
    "EventSeries",
    "EventSource",
    "ExecAction",
    "FCVolumeSource",
    "FileKeySelector",
    "FlexPersistentVolumeSource",
    "FlexVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GRPCAction",
    "GitRepoVolumeSource",
    "GlusterfsPersistentVolumeSource",
    "GlusterfsVolumeSource",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "HostPathVolumeSource",
    "ISCSIPersistentVolumeSource",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "LinuxContainerUser",
    "LoadBalancerIngress",
    "LoadBalancerStatus",
    "LocalObjectReference",
    "LocalVolumeSource",
    "ModifyVolumeStatus",
    "NFSVolumeSource",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "Node",
    "NodeAddress",
    "NodeAffinity",
    "NodeAllocatableResourceClaimStatus",
    "NodeCondition",
    "NodeConfigSource",
    "NodeConfigStatus",
    "NodeDaemonEndpoints",
    "NodeFeatures",
    "NodeRuntimeHandler",
    "NodeRuntimeHandlerFeatures",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "NodeSwapStatus",
    "NodeSystemInfo",
    "ObjectFieldSelector",
    "ObjectReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimCondition",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "PhotonPersistentDiskVolumeSource",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodAntiAffinity",
    "PodCertificateProjection",
    "PodCondition",
    "PodDNSConfig",
    "PodDNSConfigOption",
    "PodExtendedResourceClaimStatus",
    "PodIP",
    "PodOS",
    "PodReadinessGate",
    "PodResourceClaim",
    "PodResourceClaimStatus",
    "PodSchedulingGate",
    "PodSchedulingGroup",
    "PodSecurityContext",
    "PodSpec",
    "PodStatus",
    "PodTemplate",
    "PodTemplateSpec",
    "PortStatus",
    "PortworxVolumeSource",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "QuobyteVolumeSource",
    "RBDPersistentVolumeSource",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerCondition",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "ScaleIOPersistentVolumeSource",
    "ScaleIOVolumeSource",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "SeccompProfile",
    "Secret",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretReference",
    "SecretVolumeSource",
    "SecurityContext",
    "Service",
    "ServiceAccount",
    "ServiceAccountTokenProjection",
    "ServicePort",
    "ServiceSpec",
    "ServiceStatus",
    "SessionAffinityConfig",
    "SleepAction",
    "StorageOSPersistentVolumeSource",
    "StorageOSVolumeSource",
    "Sysctl",
    "TCPSocketAction",
    "Taint",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeNodeAffinity",
    "VolumeProjection",
    "VolumeResourceRequirements",
    "VolumeStatus",
    "VsphereVirtualDiskVolumeSource",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]
