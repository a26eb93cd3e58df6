"""Two operators that test_fault_proxy.py runs in processes of their own."""

from contextlib import suppress

import kubewright as kw
from kubewright.api.builtin import core_v1

FINALIZER = "jars.kubewright.dev/lid"


class JarSpec(kw.Model):
    content: str = ""


class JarStatus(kw.Model):
    content: str = ""
    label: str = ""


class Jar(kw.Resource[JarSpec, JarStatus], group="jars.kubewright.dev", version="v1"):
    """A glass with something in it."""


class Jars:
    """Keep a label for each Jar, which is its child, and a lid, which is not.

    Both are deleted here: a real garbage collector learns of a new kind only after half a minute.
    """

    async def reconcile(self, jar: Jar, ctx: kw.Context) -> None:
        name, data = jar.metadata.name, {"content": jar.spec.content}
        await ctx.apply(core_v1.ConfigMap(kw.Meta(f"{name}-label"), data=data))
        lid = core_v1.ConfigMap(kw.Meta(f"{name}-lid", namespace=jar.metadata.namespace), data=data)
        await ctx.client.apply(lid, field_manager="jars")
        await ctx.patch_status(jar, JarStatus(content=jar.spec.content))

    async def finalize(self, jar: Jar, ctx: kw.Context) -> None:
        for part in ("label", "lid"):
            with suppress(kw.NotFound):
                await ctx.client.delete(
                    core_v1.ConfigMap, f"{jar.metadata.name}-{part}", jar.metadata.namespace
                )


@kw.controller(Jar, needs=[kw.needs(core_v1.ConfigMap, "create")])
async def labels(jar: Jar, ctx: kw.Context) -> None:
    """Create a label with a new name if the status names none: a crash between both writes doubles it."""
    if not jar.status.label:
        label = core_v1.ConfigMap(
            kw.Meta(generate_name=f"{jar.metadata.name}-", namespace=jar.metadata.namespace)
        )
        created = await ctx.client.create(label)
        await ctx.patch_status(jar, JarStatus(label=created.metadata.name))


def operator() -> kw.Operator:
    """Declare an operator that survives every fault."""
    return kw.Operator(
        kw.Controller(
            Jar,
            Jars(),
            name="jars",
            owns=[core_v1.ConfigMap],
            needs=[kw.needs(core_v1.ConfigMap, "patch", "create", "delete")],
            finalizer=FINALIZER,
        ),
        name="jars",
    )


def doubling() -> kw.Operator:
    """Declare an operator whose writes can be counted."""
    return kw.Operator(labels, name="labels")
