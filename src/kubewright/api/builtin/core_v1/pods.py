"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.core_v1.basic import LocalObjectReference
from kubewright.api.builtin.core_v1.volumes import (
    AWSElasticBlockStoreVolumeSource,
    AzureDiskVolumeSource,
    FCVolumeSource,
    FlockerVolumeSource,
    GCEPersistentDiskVolumeSource,
    HostPathVolumeSource,
    NFSVolumeSource,
    NodeSelector,
    NodeSelectorTerm,
    PersistentVolumeClaimSpec,
    PhotonPersistentDiskVolumeSource,
    PortworxVolumeSource,
    QuobyteVolumeSource,
    VolumeHealthCondition,
    VsphereVirtualDiskVolumeSource,
)
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.codec import zero
from kubewright.api.fields import Scale
from kubewright.api.meta import Meta
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object


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


class AzureFileVolumeSource(Model, builtin=True):
    read_only: bool = False
    secret_name: str
    share_name: str


class CSIVolumeSource(Model, builtin=True):
    driver: str
    fs_type: str | None = None
    node_publish_secret_ref: LocalObjectReference | None = None
    read_only: bool | None = None
    volume_attributes: dict[str, str] = {}


class Capabilities(Model, builtin=True):
    add: list[str] = []
    drop: list[str] = []


class CephFSVolumeSource(Model, builtin=True):
    monitors: list[str]
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: LocalObjectReference | None = None
    user: str = ""


class CinderVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None
    volume_id: str


class ClusterTrustBundleProjection(Model, builtin=True):
    label_selector: LabelSelector | None = None
    name: str | None = None
    optional: bool | None = None
    path: str
    signer_name: str | None = None
    user: int | None = None


class ConfigMapEnvSource(Model, builtin=True):
    name: str = ""
    optional: bool | None = None


class ConfigMapKeySelector(Model, builtin=True):
    key: str
    name: str = ""
    optional: bool | None = None


class KeyToPath(Model, builtin=True):
    key: str
    mode: int | None = None
    path: str
    user: int | None = None


class ConfigMapProjection(Model, builtin=True):
    items: list[KeyToPath] = []
    name: str = ""
    optional: bool | None = None


class ConfigMapVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    default_user: int | None = None
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
    protocol: str | None = None
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
    mode: str | None = None
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


class VolumeMount(Model, builtin=True, lists={"bind_mount_options": ()}):
    bind_mount_options: list[str] = []
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


class DownwardAPIVolumeFile(Model, builtin=True):
    field_ref: ObjectFieldSelector | None = None
    mode: int | None = None
    path: str
    resource_field_ref: ResourceFieldSelector | None = None
    user: int | None = None


class DownwardAPIProjection(Model, builtin=True):
    items: list[DownwardAPIVolumeFile] = []


class DownwardAPIVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    default_user: int | None = None
    items: list[DownwardAPIVolumeFile] = []


class EmptyDirVolumeSource(Model, builtin=True):
    medium: str = ""
    mode: int | None = None
    size_limit: Quantity | None = None


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


class PersistentVolumeClaimTemplate(Model, builtin=True):
    metadata: Meta = _field(default_factory=Meta)
    spec: PersistentVolumeClaimSpec


class EphemeralVolumeSource(Model, builtin=True):
    volume_claim_template: PersistentVolumeClaimTemplate | None = None


class EvictionResponder(Model, builtin=True):
    name: str
    priority: int


class FlexVolumeSource(Model, builtin=True):
    driver: str
    fs_type: str = ""
    options: dict[str, str] = {}
    read_only: bool = False
    secret_ref: LocalObjectReference | None = None


class GitRepoVolumeSource(Model, builtin=True):
    directory: str = ""
    repository: str
    revision: str = ""


class GlusterfsVolumeSource(Model, builtin=True):
    endpoints: str
    path: str
    read_only: bool = False


class HostAlias(Model, builtin=True):
    hostnames: list[str] = []
    ip: str


class HostIP(Model, builtin=True):
    ip: str


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


class NodeAllocatableMappedResources(Model, builtin=True):
    name: str
    quantity: Quantity


class NodeAllocatableOverheadResources(Model, builtin=True):
    name: str
    per_container: Quantity | None = None
    per_pod: Quantity | None = None


class NodeAllocatableResourceClaimStatus(
    Model, builtin=True, lists={"containers": (), "mapping": ("name",), "overhead": ("name",)}
):
    containers: list[str] = []
    mapping: list[NodeAllocatableMappedResources] = []
    overhead: list[NodeAllocatableOverheadResources] = []
    resource_claim_name: str


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
    user: int | None = None
    user_annotations: dict[str, str] = {}


class SecretProjection(Model, builtin=True):
    items: list[KeyToPath] = []
    name: str = ""
    optional: bool | None = None


class ServiceAccountTokenProjection(Model, builtin=True):
    audience: str = ""
    expiration_seconds: int | None = None
    path: str
    user: int | None = None


class VolumeProjection(Model, builtin=True, wire_names={"downward_api": "downwardAPI"}):
    cluster_trust_bundle: ClusterTrustBundleProjection | None = None
    config_map: ConfigMapProjection | None = None
    downward_api: DownwardAPIProjection | None = None
    pod_certificate: PodCertificateProjection | None = None
    secret: SecretProjection | None = None
    service_account_token: ServiceAccountTokenProjection | None = None


class ProjectedVolumeSource(Model, builtin=True):
    default_mode: int | None = None
    default_user: int | None = None
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
    default_user: int | None = None
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
        "eviction_responders": ("name",),
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
    eviction_responders: list[EvictionResponder] = []
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


class PodVolumeHealth(Model, builtin=True, lists={"health_conditions": ("status", "reason")}):
    health_conditions: list[VolumeHealthCondition] = []
    last_transition_time: datetime | None = None
    name: str


class PodStatus(
    Model,
    builtin=True,
    wire_names={"host_ip": "hostIP", "host_ips": "hostIPs", "pod_ip": "podIP", "pod_ips": "podIPs"},
    lists={
        "conditions": ("type",),
        "node_allocatable_resource_claim_statuses": ("resourceClaimName",),
        "pod_ips": ("ip",),
        "resource_claim_statuses": ("name",),
        "volume_health": ("name",),
    },
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
    volume_health: list[PodVolumeHealth] = []


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


class TopologySelectorLabelRequirement(Model, builtin=True):
    key: str
    values: list[str]


class TopologySelectorTerm(Model, builtin=True):
    match_label_expressions: list[TopologySelectorLabelRequirement] = []


__all__ = [
    "Affinity",
    "AppArmorProfile",
    "AzureFileVolumeSource",
    "CSIVolumeSource",
    "Capabilities",
    "CephFSVolumeSource",
    "CinderVolumeSource",
    "ClusterTrustBundleProjection",
    "ConfigMapEnvSource",
    "ConfigMapKeySelector",
    "ConfigMapProjection",
    "ConfigMapVolumeSource",
    "Container",
    "ContainerExtendedResourceRequest",
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
    "DownwardAPIProjection",
    "DownwardAPIVolumeFile",
    "DownwardAPIVolumeSource",
    "EmptyDirVolumeSource",
    "EnvFromSource",
    "EnvVar",
    "EnvVarSource",
    "EphemeralContainer",
    "EphemeralVolumeSource",
    "EvictionResponder",
    "ExecAction",
    "FileKeySelector",
    "FlexVolumeSource",
    "GRPCAction",
    "GitRepoVolumeSource",
    "GlusterfsVolumeSource",
    "HTTPGetAction",
    "HTTPHeader",
    "HostAlias",
    "HostIP",
    "ISCSIVolumeSource",
    "ImageVolumeSource",
    "ImageVolumeStatus",
    "KeyToPath",
    "Lifecycle",
    "LifecycleHandler",
    "LinuxContainerUser",
    "NodeAffinity",
    "NodeAllocatableMappedResources",
    "NodeAllocatableOverheadResources",
    "NodeAllocatableResourceClaimStatus",
    "ObjectFieldSelector",
    "PersistentVolumeClaimTemplate",
    "PersistentVolumeClaimVolumeSource",
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
    "PodVolumeHealth",
    "PreferredSchedulingTerm",
    "Probe",
    "ProjectedVolumeSource",
    "RBDVolumeSource",
    "ReplicationController",
    "ReplicationControllerCondition",
    "ReplicationControllerSpec",
    "ReplicationControllerStatus",
    "ResourceClaim",
    "ResourceFieldSelector",
    "ResourceHealth",
    "ResourceRequirements",
    "ResourceStatus",
    "SELinuxOptions",
    "ScaleIOVolumeSource",
    "SeccompProfile",
    "SecretEnvSource",
    "SecretKeySelector",
    "SecretProjection",
    "SecretVolumeSource",
    "SecurityContext",
    "ServiceAccountTokenProjection",
    "SleepAction",
    "StorageOSVolumeSource",
    "Sysctl",
    "TCPSocketAction",
    "Toleration",
    "TopologySelectorLabelRequirement",
    "TopologySelectorTerm",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeDevice",
    "VolumeMount",
    "VolumeMountStatus",
    "VolumeProjection",
    "VolumeStatus",
    "WeightedPodAffinityTerm",
    "WindowsSecurityContextOptions",
]
