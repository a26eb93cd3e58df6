"""The benchmarked operator on kubewright: each Echo becomes an owned ConfigMap, and its status says what was heard."""

import kubewright as kw
from kubewright.api.builtin import core_v1


class EchoSpec(kw.Model):
    """What to echo."""

    message: str


class EchoStatus(kw.Model):
    """What was echoed."""

    heard: str = ""


class Echo(kw.Resource[EchoSpec, EchoStatus], group="bench.kubewright.dev", version="v1"):
    """The benchmarked kind as its author would type it."""


@kw.controller(Echo, owns=[core_v1.ConfigMap], concurrency=16)
async def echo(said: Echo, ctx: kw.Context) -> None:
    meta = kw.Meta(said.metadata.name, labels={"bench": "echo"})
    await ctx.apply(core_v1.ConfigMap(meta, data={"message": said.spec.message}))
    await ctx.patch_status(said, EchoStatus(heard=said.spec.message))
