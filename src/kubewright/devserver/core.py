"""What the handlers share: the store, the registry, the type table, the clock and admission."""

from dataclasses import dataclass, field

from .clock import Clock
from .operation import Admission, OpenAdmission
from .registry import Registry
from .storage import Store
from .wire import TypeTable


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
