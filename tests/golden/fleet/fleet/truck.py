"""The kind Truck and its controller."""

from typing import Annotated

import kubewright as kw
from kubewright.api.builtin import core_v1


class TruckSpec(kw.Model):
    """What is asked for."""

    message: Annotated[str, kw.Field(max_length=256, description="What the ConfigMap says.")] = "hello"


class TruckStatus(kw.Model):
    """What is there."""

    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class Truck(
    kw.Resource[TruckSpec, TruckStatus],
    group="fleet.example.org",
    version="v1alpha1",
    stored=True,
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A ConfigMap with a message: put what a Truck is about in its place."""


def config_map_for(truck: Truck) -> core_v1.ConfigMap:
    """Say what the ConfigMap looks like."""
    data = {"message": truck.spec.message}
    return core_v1.ConfigMap(kw.Meta(truck.metadata.name), data=data)


@kw.controller(Truck, owns=[core_v1.ConfigMap])
async def trucks(truck: Truck, ctx: kw.Context) -> None:
    """Make the world as the object says; runs again when the object or its ConfigMap changes."""
    await ctx.apply(config_map_for(truck))
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message="the ConfigMap is there")
    await ctx.patch_status(truck, TruckStatus(conditions=[ready]))
