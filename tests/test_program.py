"""An operator runs inside another program."""

import asyncio
import contextlib

import kubewright as kw
from kubewright.testing import Cluster


class LampSpec(kw.Model):
    color: str = "white"


class LampStatus(kw.Model):
    shown: str = ""


class Lamp(kw.Resource[LampSpec, LampStatus], group="program.example.com", version="v1"):
    """A lamp."""


@kw.controller(Lamp)
async def lamps(lamp: Lamp, ctx: kw.Context) -> None:
    await ctx.patch_status(lamp, LampStatus(shown=lamp.spec.color))


async def test_runs_beside_other_tasks_of_a_program_until_it_is_cancelled(cluster: Cluster) -> None:
    operator = kw.Operator(lamps, name="lamps")
    await cluster.install(operator)
    task = asyncio.create_task(
        kw.run(operator, kubeconfig=cluster.kubeconfig, namespaces=[cluster.namespace])
    )
    await cluster.create(Lamp(kw.Meta("a"), spec=LampSpec(color="red")))
    await cluster.eventually(Lamp, "a", lambda lamp: lamp.status.shown == "red")
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task
    assert task.cancelled()
