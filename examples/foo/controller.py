"""A Pod of the same name and namespace for each Foo; the Pod outlives its Foo."""

import kubewright as kw
from foo.kinds import Foo, FooStatus, conversion
from foo.webhooks import named, sensible
from kubewright.api.builtin import core_v1


def pod_for(foo: Foo) -> core_v1.Pod:
    """Say what the Pod of a Foo looks like."""
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
    """Create the Pod if there is none; a Pod that is already there is left alone."""
    if await ctx.find(core_v1.Pod, foo.metadata.name) is None:
        ctx.log.info("Pod doesn't exist. Creating new Pod")
        try:
            await ctx.create(pod_for(foo))
            ctx.log.info("Successfully created a Pod (%s)", foo.metadata.name)
        except kw.AlreadyExists:
            # Somebody was faster than our watch: their Pod is as good as ours.
            pass
    await ctx.patch_status(foo, FooStatus(pod=foo.metadata.name))


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(foos, name="foo", webhooks=[named, sensible, conversion])
