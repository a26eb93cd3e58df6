"""The kinds of discovery.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import ObjectReference
from kubewright.api.model import Model
from kubewright.api.resource import Object


class EndpointConditions(Model, builtin=True):
    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForNode(Model, builtin=True):
    name: str


class ForZone(Model, builtin=True):
    name: str


class EndpointHints(Model, builtin=True):
    for_nodes: list[ForNode] = []
    for_zones: list[ForZone] = []


class Endpoint(Model, builtin=True, lists={"addresses": ()}):
    addresses: list[str]
    conditions: EndpointConditions = _field(default_factory=EndpointConditions)
    deprecated_topology: dict[str, str] = {}
    hints: EndpointHints | None = None
    hostname: str | None = None
    node_name: str | None = None
    target_ref: ObjectReference | None = None
    zone: str | None = None


class EndpointPort(Model, builtin=True):
    app_protocol: str | None = None
    name: str | None = None
    port: int | None = None
    protocol: str | None = None


class EndpointSlice(
    Object, group="discovery.k8s.io", version="v1", plural="endpointslices", status=False, builtin=True
):
    address_type: str
    endpoints: list[Endpoint] = []
    ports: list[EndpointPort] = []


__all__ = [
    "Endpoint",
    "EndpointConditions",
    "EndpointHints",
    "EndpointPort",
    "EndpointSlice",
    "ForNode",
    "ForZone",
]
