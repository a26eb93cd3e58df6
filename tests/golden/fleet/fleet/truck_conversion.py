"""Conversion between the versions of Truck."""

import kubewright as kw
from kubewright.api import from_wire, to_wire

from fleet.truck import Truck
from fleet.truck_v1 import TruckV1


def up(truck: TruckV1) -> Truck:
    """Convert to the storage version."""
    return from_wire(Truck, to_wire(truck))


def down(truck: Truck) -> TruckV1:
    """Convert from the storage version."""
    return from_wire(TruckV1, to_wire(truck))


truck_versions = kw.Conversion(
    Truck,
    TruckV1,
    up=up,
    down=down,
)
