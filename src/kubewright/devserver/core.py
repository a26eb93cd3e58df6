"""What the handlers share: the store, the registry, the type table, the clock and admission."""

from dataclasses import dataclass, field

from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.registry import Registry
from kubewright.devserver.request.admission import Admission, OpenAdmission
from kubewright.devserver.storage import Store
from kubewright.devserver.wire import TypeTable


@dataclass(slots=True, eq=False)
class Core:
    """The server's parts, as one value that travels."""

    store: Store
    registry: Registry
    types: TypeTable
    clock: Clock
    admission: Admission = field(default_factory=OpenAdmission)
    realistic: bool = False
    """Take as long as the real server where it answers before its work is done."""
