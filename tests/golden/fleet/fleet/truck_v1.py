"""The kind Truck in version v1: as v1alpha1 has it, until this says something else."""

import kubewright as kw

from fleet.truck import TruckSpec, TruckStatus


class TruckV1Spec(TruckSpec):
    """What is asked for."""


class TruckV1(
    kw.Resource[TruckV1Spec, TruckStatus],
    kind="Truck",
    version="v1",
    group="fleet.example.org",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A ConfigMap with a message: put what a Truck is about in its place."""
