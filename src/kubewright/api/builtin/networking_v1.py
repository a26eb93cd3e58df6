"""The kinds of networking.k8s.io/v1; written by tools/generate_builtin.py."""

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import TypedLocalObjectReference
from kubewright.api.builtin.meta_v1 import LabelSelector
from kubewright.api.conditions import Condition
from kubewright.api.model import Model
from kubewright.api.resource import Object


class ServiceBackendPort(Model, builtin=True):
    name: str = ""
    number: int = 0


class IngressServiceBackend(Model, builtin=True):
    name: str
    port: ServiceBackendPort = _field(default_factory=ServiceBackendPort)


class IngressBackend(Model, builtin=True):
    resource: TypedLocalObjectReference | None = None
    service: IngressServiceBackend | None = None


class HTTPIngressPath(Model, builtin=True):
    backend: IngressBackend
    path: str = ""
    path_type: str


class HTTPIngressRuleValue(Model, builtin=True):
    paths: list[HTTPIngressPath]


class ParentReference(Model, builtin=True):
    group: str = ""
    name: str
    namespace: str = ""
    resource: str


class IPAddressSpec(Model, builtin=True):
    parent_ref: ParentReference


class IPAddress(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="ipaddresses",
    scope="Cluster",
    short_names=["ip"],
    status=False,
    builtin=True,
):
    spec: IPAddressSpec


class IPBlock(Model, builtin=True):
    cidr: str
    except_: list[str] = []


class IngressRule(Model, builtin=True):
    host: str = ""
    http: HTTPIngressRuleValue | None = None


class IngressTLS(Model, builtin=True):
    hosts: list[str] = []
    secret_name: str = ""


class IngressSpec(Model, builtin=True):
    default_backend: IngressBackend | None = None
    ingress_class_name: str | None = None
    rules: list[IngressRule] = []
    tls: list[IngressTLS] = []


class IngressPortStatus(Model, builtin=True):
    error: str | None = None
    port: int
    protocol: str


class IngressLoadBalancerIngress(Model, builtin=True):
    hostname: str = ""
    ip: str = ""
    ports: list[IngressPortStatus] = []


class IngressLoadBalancerStatus(Model, builtin=True):
    ingress: list[IngressLoadBalancerIngress] = []


class IngressStatus(Model, builtin=True):
    load_balancer: IngressLoadBalancerStatus = _field(default_factory=IngressLoadBalancerStatus)


class Ingress(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="ingresses",
    short_names=["ing"],
    status=True,
    builtin=True,
):
    spec: IngressSpec = _field(default_factory=IngressSpec)
    status: IngressStatus = _field(default_factory=IngressStatus)


class IngressClassParametersReference(Model, builtin=True):
    api_group: str | None = None
    kind: str
    name: str
    namespace: str | None = None
    scope: str | None = None


class IngressClassSpec(Model, builtin=True):
    controller: str = ""
    parameters: IngressClassParametersReference | None = None


class IngressClass(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="ingressclasses",
    scope="Cluster",
    status=False,
    builtin=True,
):
    spec: IngressClassSpec = _field(default_factory=IngressClassSpec)


class NetworkPolicyPeer(Model, builtin=True):
    ip_block: IPBlock | None = None
    namespace_selector: LabelSelector | None = None
    pod_selector: LabelSelector | None = None


class NetworkPolicyPort(Model, builtin=True):
    end_port: int | None = None
    port: int | str | None = None
    protocol: str | None = None


class NetworkPolicyEgressRule(Model, builtin=True):
    ports: list[NetworkPolicyPort] = []
    to: list[NetworkPolicyPeer] = []


class NetworkPolicyIngressRule(Model, builtin=True):
    from_: list[NetworkPolicyPeer] = []
    ports: list[NetworkPolicyPort] = []


class NetworkPolicySpec(Model, builtin=True):
    egress: list[NetworkPolicyEgressRule] = []
    ingress: list[NetworkPolicyIngressRule] = []
    pod_selector: LabelSelector = _field(default_factory=LabelSelector)
    policy_types: list[str] = []


class NetworkPolicy(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="networkpolicies",
    short_names=["netpol"],
    status=False,
    builtin=True,
):
    spec: NetworkPolicySpec = _field(default_factory=NetworkPolicySpec)


class ServiceCIDRSpec(Model, builtin=True):
    cidrs: list[str] = []


class ServiceCIDRStatus(Model, builtin=True, lists={"conditions": ("type",)}):
    conditions: list[Condition] = []


class ServiceCIDR(
    Object,
    group="networking.k8s.io",
    version="v1",
    plural="servicecidrs",
    scope="Cluster",
    status=True,
    builtin=True,
):
    spec: ServiceCIDRSpec = _field(default_factory=ServiceCIDRSpec)
    status: ServiceCIDRStatus = _field(default_factory=ServiceCIDRStatus)


__all__ = [
    "HTTPIngressPath",
    "HTTPIngressRuleValue",
    "IPAddress",
    "IPAddressSpec",
    "IPBlock",
    "Ingress",
    "IngressBackend",
    "IngressClass",
    "IngressClassParametersReference",
    "IngressClassSpec",
    "IngressLoadBalancerIngress",
    "IngressLoadBalancerStatus",
    "IngressPortStatus",
    "IngressRule",
    "IngressServiceBackend",
    "IngressSpec",
    "IngressStatus",
    "IngressTLS",
    "NetworkPolicy",
    "NetworkPolicyEgressRule",
    "NetworkPolicyIngressRule",
    "NetworkPolicyPeer",
    "NetworkPolicyPort",
    "NetworkPolicySpec",
    "ParentReference",
    "ServiceBackendPort",
    "ServiceCIDR",
    "ServiceCIDRSpec",
    "ServiceCIDRStatus",
]
