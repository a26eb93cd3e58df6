"""The benchmarked operator on kubewright: each Echo gets an owned ConfigMap, and its status the echoed message."""

import kubewright as kw
from kubewright.api.builtin import core_v1


class EchoSpec(kw.Model):
    """What to echo."""

    message: str


class EchoStatus(kw.Model):
    """What was echoed."""

    echoed: str = ""


class Echo(kw.Resource[EchoSpec, EchoStatus], group="bench.kubewright.dev", version="v1"):
    """The benchmarked kind as its author would type it."""


@kw.controller(Echo, owns=[core_v1.ConfigMap], concurrency=16)
async def echo(found: Echo, ctx: kw.Context) -> None:
    meta = kw.Meta(found.metadata.name, labels={"bench": "echo"})
    await ctx.apply(core_v1.ConfigMap(meta, data={"message": found.spec.message}))
    await ctx.patch_status(found, EchoStatus(echoed=found.spec.message))
