"""The kind Cart and its controller."""

from typing import Annotated

import kubewright as kw
from kubewright.api.builtin import core_v1


class CartSpec(kw.Model):
    """What is asked for."""

    message: Annotated[str, kw.Field(max_length=256, description="What the ConfigMap says.")] = "hello"


class CartStatus(kw.Model):
    """What is there."""

    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class Cart(
    kw.Resource[CartSpec, CartStatus],
    group="shop.example.com",
    version="v1",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A ConfigMap with a message: put what a Cart is about in its place."""


def config_map_for(cart: Cart) -> core_v1.ConfigMap:
    """Say what the ConfigMap looks like."""
    data = {"message": cart.spec.message}
    return core_v1.ConfigMap(kw.Meta(cart.metadata.name), data=data)


@kw.controller(Cart, owns=[core_v1.ConfigMap])
async def carts(cart: Cart, ctx: kw.Context) -> None:
    """Make the world as the object says; runs again when the object or its ConfigMap changes."""
    await ctx.apply(config_map_for(cart))
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message="the ConfigMap is there")
    await ctx.patch_status(cart, CartStatus(conditions=[ready]))
