"""The kind Truck in version v1, based on v1alpha1."""

import kubewright as kw

from fleet.truck import TruckSpec, TruckStatus


class TruckV1Spec(TruckSpec):
    """The desired state."""


class TruckV1(
    kw.Resource[TruckV1Spec, TruckStatus],
    kind="Truck",
    version="v1",
    group="fleet.example.org",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A message stored in a ConfigMap. Replace this with a description of Truck."""
