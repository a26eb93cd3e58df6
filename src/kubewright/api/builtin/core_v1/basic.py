"""The kinds of the core group, v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.model import Model
from kubewright.api.quantities import Quantity
from kubewright.api.resource import Object
from kubewright.api.times import MicroTime


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


class LocalObjectReference(Model, builtin=True):
    name: str = ""


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


__all__ = [
    "Binding",
    "ComponentCondition",
    "ComponentStatus",
    "ConfigMap",
    "Event",
    "EventSeries",
    "EventSource",
    "LimitRange",
    "LimitRangeItem",
    "LimitRangeSpec",
    "LocalObjectReference",
    "Namespace",
    "NamespaceCondition",
    "NamespaceSpec",
    "NamespaceStatus",
    "ObjectReference",
    "ResourceQuota",
    "ResourceQuotaSpec",
    "ResourceQuotaStatus",
    "ScopeSelector",
    "ScopedResourceSelectorRequirement",
    "Secret",
    "ServiceAccount",
]
