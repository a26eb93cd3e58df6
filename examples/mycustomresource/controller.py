"""Keep `status.Healthy` true while a Pod with the friend's name exists, in any namespace."""

import kubewright as kw
from kubewright.api.builtin import core_v1
from mycustomresource.kinds import FriendStatus, MyCustomResource

by_friend = kw.Index(MyCustomResource, lambda resource: [resource.spec.name])
pods_by_name = kw.Index(core_v1.Pod, lambda pod: [pod.metadata.name])

# The name of a Pod never changes, so only creation and deletion matter.
pod_changes = kw.watch(
    core_v1.Pod, via=by_friend, key=lambda pod: pod.metadata.name, when=kw.predicates.on("create", "delete")
)


@kw.controller(MyCustomResource, watches=[pod_changes])
async def friends(resource: MyCustomResource, ctx: kw.Context) -> None:
    """Report in the status whether a Pod with the name exists."""
    for cause in ctx.causes:
        if cause.kind == "Pod":
            ctx.log.info(
                "pod linked to a MyCustomResource custom resource issued an event",
                extra={"friend": cause.key.name},
            )
    ctx.log.info("reconciling MyCustomResource custom resource")
    pods = await ctx.list(pods_by_name, resource.spec.name, all_namespaces=True)
    for pod in pods:
        ctx.log.info(
            "pod linked to a MyCustomResource custom resource found", extra={"friend": pod.metadata.name}
        )
    await ctx.patch_status(resource, FriendStatus(healthy=bool(pods)))
    ctx.log.info("MyCustomResource's Healthy status updated", extra={"status": bool(pods)})
    ctx.log.info("MyCustomResource custom resource reconciled")


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(friends, name="mycustomresource")
