"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.core_v1.basic import ObjectReference
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object


class AWSElasticBlockStoreVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    partition: int = 0
    read_only: bool = False
    volume_id: str


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


class CephFSPersistentVolumeSource(Model, builtin=True):
    monitors: list[str]
    path: str = ""
    read_only: bool = False
    secret_file: str = ""
    secret_ref: SecretReference | None = None
    user: str = ""


class CinderPersistentVolumeSource(Model, builtin=True, wire_names={"volume_id": "volumeID"}):
    fs_type: str = ""
    read_only: bool = False
    secret_ref: SecretReference | None = None
    volume_id: str


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


class FlockerVolumeSource(Model, builtin=True, wire_names={"dataset_uuid": "datasetUUID"}):
    dataset_name: str = ""
    dataset_uuid: str = ""


class GCEPersistentDiskVolumeSource(Model, builtin=True):
    fs_type: str = ""
    partition: int = 0
    pd_name: str
    read_only: bool = False


class GlusterfsPersistentVolumeSource(Model, builtin=True):
    endpoints: str
    endpoints_namespace: str | None = None
    path: str
    read_only: bool = False


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


class NodeSelectorRequirement(Model, builtin=True):
    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(Model, builtin=True):
    match_expressions: list[NodeSelectorRequirement] = []
    match_fields: list[NodeSelectorRequirement] = []


class NodeSelector(Model, builtin=True):
    node_selector_terms: list[NodeSelectorTerm]


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


class PersistentVolumeClaimCondition(Model, builtin=True):
    last_probe_time: datetime | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str = ""
    status: str
    type: str


class VolumeHealthCondition(Model, builtin=True):
    message: str = ""
    reason: str
    status: str


class VolumeHealthStatus(Model, builtin=True, lists={"health_conditions": ("status", "reason")}):
    health_conditions: list[VolumeHealthCondition] = []
    last_transition_time: datetime | None = None


class PersistentVolumeClaimStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    access_modes: list[str] = []
    allocated_resource_statuses: dict[str, str] = {}
    allocated_resources: dict[str, Quantity] = {}
    capacity: dict[str, Quantity] = {}
    conditions: list[PersistentVolumeClaimCondition] = []
    current_volume_attributes_class_name: str | None = None
    health_status: VolumeHealthStatus | None = None
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


__all__ = [
    "AWSElasticBlockStoreVolumeSource",
    "AzureDiskVolumeSource",
    "AzureFilePersistentVolumeSource",
    "CSIPersistentVolumeSource",
    "CephFSPersistentVolumeSource",
    "CinderPersistentVolumeSource",
    "FCVolumeSource",
    "FlexPersistentVolumeSource",
    "FlockerVolumeSource",
    "GCEPersistentDiskVolumeSource",
    "GlusterfsPersistentVolumeSource",
    "HostPathVolumeSource",
    "ISCSIPersistentVolumeSource",
    "LocalVolumeSource",
    "ModifyVolumeStatus",
    "NFSVolumeSource",
    "NodeSelector",
    "NodeSelectorRequirement",
    "NodeSelectorTerm",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "PersistentVolumeClaimCondition",
    "PersistentVolumeClaimSpec",
    "PersistentVolumeClaimStatus",
    "PersistentVolumeSpec",
    "PersistentVolumeStatus",
    "PhotonPersistentDiskVolumeSource",
    "PortworxVolumeSource",
    "QuobyteVolumeSource",
    "RBDPersistentVolumeSource",
    "ScaleIOPersistentVolumeSource",
    "SecretReference",
    "StorageOSPersistentVolumeSource",
    "TypedLocalObjectReference",
    "TypedObjectReference",
    "VolumeHealthCondition",
    "VolumeHealthStatus",
    "VolumeNodeAffinity",
    "VolumeResourceRequirements",
    "VsphereVirtualDiskVolumeSource",
]
