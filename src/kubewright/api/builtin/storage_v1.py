"""The kinds of storage.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import PersistentVolumeSpec, TopologySelectorTerm
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.codec import zero
from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object


class TokenRequest(Model, builtin=True):
    audience: str
    expiration_seconds: int | None = None


class CSIDriverSpec(Model, builtin=True, lists={"volume_lifecycle_modes": ()}):
    attach_required: bool | None = None
    fs_group_policy: str | None = None
    node_allocatable_update_period_seconds: int | None = None
    pod_info_on_mount: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None
    requires_republish: bool | None = None
    se_linux_mount: bool | None = None
    service_account_token_in_secrets: bool | None = None
    storage_capacity: bool | None = None
    token_requests: list[TokenRequest] = []
    volume_lifecycle_modes: list[str] = []


class CSIDriver(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="csidrivers",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: CSIDriverSpec


class VolumeNodeResources(Model, builtin=True):
    count: int | None = None


class CSINodeDriver(Model, builtin=True, wire_names={"node_id": "nodeID"}):
    allocatable: VolumeNodeResources | None = None
    name: str
    node_id: str
    topology_keys: list[str] = []


class CSINodeSpec(Model, builtin=True, lists={"drivers": ("name",)}):
    drivers: list[CSINodeDriver]


class StorageHealthCondition(Model, builtin=True):
    access_mode: str | None = None
    last_transition_time: datetime | None = None
    message: str = ""
    reason: str
    status: str
    volume_mode: str | None = None


class StorageHealth(Model, builtin=True):
    health_conditions: list[StorageHealthCondition] = []
    name: str


class CSINodeStatus(Model, builtin=True, lists={"storage_health": ("name",)}):
    storage_health: list[StorageHealth] = []


class CSINode(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="csinodes",
    scope="Cluster",
    status=True,
    builtin=True,
):
    spec: CSINodeSpec
    status: CSINodeStatus = _field(default_factory=CSINodeStatus)


class CSIStorageCapacity(
    Object, group="storage.k8s.io", version="v1", plural="csistoragecapacities", status=False, builtin=True
):
    capacity: Quantity | None = None
    maximum_volume_size: Quantity | None = None
    node_topology: LabelSelector | None = None
    storage_class_name: str


class StorageClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="storageclasses",
    scope="Cluster",
    short_names=["sc"],
    status=False,
    builtin=True,
):
    allow_volume_expansion: bool | None = None
    allowed_topologies: list[TopologySelectorTerm] = []
    mount_options: list[str] = []
    parameters: dict[str, str] = {}
    provisioner: str
    reclaim_policy: str | None = None
    volume_binding_mode: str | None = None


class VolumeAttachmentSource(Model, builtin=True):
    inline_volume_spec: PersistentVolumeSpec | None = None
    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Model, builtin=True):
    attacher: str
    node_name: str
    source: VolumeAttachmentSource


class VolumeError(Model, builtin=True):
    error_code: int | None = None
    message: str = ""
    time: datetime | None = None


class VolumeAttachmentStatus(Model, builtin=True):
    attach_error: VolumeError | None = None
    attached: bool
    attachment_metadata: dict[str, str] = {}
    detach_error: VolumeError | None = None


class VolumeAttachment(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="volumeattachments",
    scope="Cluster",
    status=True,
    builtin=True,
):
    spec: VolumeAttachmentSpec
    status: VolumeAttachmentStatus = _field(default_factory=lambda: zero(VolumeAttachmentStatus))


class VolumeAttributesClass(
    Object,
    group="storage.k8s.io",
    version="v1",
    plural="volumeattributesclasses",
    scope="Cluster",
    short_names=["vac"],
    status=False,
    builtin=True,
):
    driver_name: str
    parameters: dict[str, str] = {}


__all__ = [
    "CSIDriver",
    "CSIDriverSpec",
    "CSINode",
    "CSINodeDriver",
    "CSINodeSpec",
    "CSINodeStatus",
    "CSIStorageCapacity",
    "StorageClass",
    "StorageHealth",
    "StorageHealthCondition",
    "TokenRequest",
    "VolumeAttachment",
    "VolumeAttachmentSource",
    "VolumeAttachmentSpec",
    "VolumeAttachmentStatus",
    "VolumeAttributesClass",
    "VolumeError",
    "VolumeNodeResources",
]
