"""The kind Truck in version v1: as v1alpha1 has it, until this says something else."""

import kubewright as kw

from fleet.truck import Truck, TruckSpec, TruckStatus


class TruckV1Spec(TruckSpec):
    """What is asked for."""


class TruckV1(
    kw.Resource[TruckV1Spec, TruckStatus],
    kind="Truck",
    group="fleet.example.org",
    version="v1",
    columns=Truck.__kind__.columns,
):
    """The same as version v1alpha1: put what is new in its spec."""
