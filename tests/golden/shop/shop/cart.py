"""The kind Cart and its controller."""

from typing import Annotated

import kubewright as kw
from kubewright.api.builtin import core_v1


class CartSpec(kw.Model):
    """The desired state."""

    message: Annotated[str, kw.Field(max_length=256, description="Message to store in the ConfigMap.")] = "hello"


class CartStatus(kw.Model):
    """The observed state."""

    conditions: list[kw.Condition] = []


class Cart(
    kw.Resource[CartSpec, CartStatus],
    group="shop.example.com",
    version="v1",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A message stored in a ConfigMap. Replace this with a description of Cart."""


def config_map_for(cart: Cart) -> core_v1.ConfigMap:
    """Return the desired ConfigMap."""
    data = {"message": cart.spec.message}
    return core_v1.ConfigMap(kw.Meta(cart.metadata.name), data=data)


@kw.controller(Cart, owns=[core_v1.ConfigMap])
async def carts(cart: Cart, ctx: kw.Context) -> None:
    """Bring the cluster to the desired state; called when the object or its ConfigMap changes."""
    await ctx.apply(config_map_for(cart))
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message="ConfigMap applied")
    await ctx.patch_status(cart, CartStatus(conditions=[ready]))
