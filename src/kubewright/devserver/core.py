"""The parts of the server that request handling shares."""

from dataclasses import dataclass, field

from kubewright.devserver.auth import RoleAuthorizer
from kubewright.devserver.feature_gates import FeatureGates
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.registry import ResourceRegistry
from kubewright.devserver.request.admission import AdmissionChain
from kubewright.devserver.storage import ObjectStore
from kubewright.devserver.strategy.access import Access
from kubewright.devserver.wire import TypeTable


@dataclass(slots=True, eq=False)
class Core:
    """The parts of one server.

    `api`, `authorizer` and `admission` are set once while the server is assembled: they need the other parts, and
    writing through `api` needs them.
    """

    store: ObjectStore
    registry: ResourceRegistry
    types: TypeTable
    clock: Clock
    gates: FeatureGates
    realistic: bool = False
    """Take as long as kube-apiserver where it responds before its work is done."""
    api: Access = field(init=False)
    authorizer: RoleAuthorizer = field(init=False)
    admission: AdmissionChain = field(init=False)
