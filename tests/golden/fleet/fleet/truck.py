"""The kind Truck and its controller."""

from typing import Annotated

import kubewright as kw
from kubewright.api.builtin import core_v1


class TruckSpec(kw.Model):
    """The desired state."""

    message: Annotated[str, kw.Field(max_length=256, description="Message to store in the ConfigMap.")] = "hello"


class TruckStatus(kw.Model):
    """The observed state."""

    conditions: list[kw.Condition] = []


class Truck(
    kw.Resource[TruckSpec, TruckStatus],
    group="fleet.example.org",
    version="v1alpha1",
    stored=True,
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A message stored in a ConfigMap. Replace this with a description of Truck."""


def config_map_for(truck: Truck) -> core_v1.ConfigMap:
    """Return the desired ConfigMap."""
    data = {"message": truck.spec.message}
    return core_v1.ConfigMap(kw.Meta(truck.metadata.name), data=data)


@kw.controller(Truck, owns=[core_v1.ConfigMap])
async def trucks(truck: Truck, ctx: kw.Context) -> None:
    """Bring the cluster to the desired state; called when the object or its ConfigMap changes."""
    await ctx.apply(config_map_for(truck))
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message="ConfigMap applied")
    await ctx.patch_status(truck, TruckStatus(conditions=[ready]))
