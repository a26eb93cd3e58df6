"""A Pod of the same name and namespace for each Foo; the Pod outlives its Foo."""

import kubewright as kw
from foo.kinds import FooV1Alpha1
from kubewright.api.builtin import core_v1


def pod_for(foo: FooV1Alpha1) -> core_v1.Pod:
    """Say what the Pod of a Foo looks like."""
    return core_v1.Pod(
        kw.Meta(foo.metadata.name),
        spec=core_v1.PodSpec(
            containers=[core_v1.Container(name="busybox", image="gcr.io/google_containers/echoserver:1.4")],
            restart_policy="Always",
        ),
    )


@kw.controller(
    FooV1Alpha1,
    watches=[kw.watch(core_v1.Pod, map=lambda pod: [pod.key], when=kw.on("delete"))],
    needs=[kw.needs(core_v1.Pod, "create")],
)
async def foos(foo: FooV1Alpha1, ctx: kw.Context) -> None:
    """Create the Pod if there is none; a Pod that is already there is left alone."""
    if await ctx.get(core_v1.Pod, foo.metadata.name) is not None:
        return
    ctx.log.info("Pod doesn't exist. Creating new Pod")
    try:
        await ctx.create(pod_for(foo))
    except kw.AlreadyExists:
        # Somebody was faster than our watch: their Pod is as good as ours.
        return
    ctx.log.info("Successfully created a Pod (%s)", foo.metadata.name)


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(foos, name="foo")
