"""A Pod of the same name and namespace for each Foo; the Pod outlives its Foo."""

import kubewright as kw
from foo.kinds import Foo, FooStatus, conversion
from foo.webhooks import named, sensible
from kubewright.api.builtin import core_v1


def pod_for(foo: Foo) -> core_v1.Pod:
    """Return the Pod for a Foo."""
    return core_v1.Pod(
        kw.Meta(foo.metadata.name),
        spec=core_v1.PodSpec(
            containers=[core_v1.Container(name="busybox", image=foo.spec.image)],
            restart_policy="Always",
        ),
    )


@kw.controller(
    Foo,
    watches=[kw.watch(core_v1.Pod, map=lambda pod: [pod.key], when=kw.predicates.on("delete"))],
    needs=[kw.needs(core_v1.Pod, "create")],
)
async def foos(foo: Foo, ctx: kw.Context) -> None:
    """Create the Pod if it does not exist; leave an existing Pod alone."""
    if await ctx.find(core_v1.Pod, foo.metadata.name) is None:
        ctx.log.info("Pod doesn't exist. Creating new Pod")
        try:
            await ctx.create(pod_for(foo))
            ctx.log.info("Successfully created a Pod (%s)", foo.metadata.name)
        except kw.AlreadyExists:
            # Created since our cache was updated; an existing Pod is left alone.
            pass
    await ctx.patch_status(foo, FooStatus(pod=foo.metadata.name))


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(foos, name="foo", webhooks=[named, sensible, conversion], keeps=[core_v1.Pod])
