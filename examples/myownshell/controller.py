"""One Deployment of busybox Pods per MyOwnShell."""

from contextlib import nullcontext

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from myownshell.kinds import MyOwnShell, ShellStatus

FINALIZER = "myownshell.my-first-operator.jgato.io/finalizer"
COMMAND = "echo The app is running, You can now ssh into for a while! && sleep 99999999 "


def deployment_for(shell: MyOwnShell) -> apps_v1.Deployment:
    """Return the Deployment for a shell."""
    labels = {"app": "myownshell", "myownshell_cr": shell.metadata.name}
    busybox = core_v1.Container(name="busybox", image="busybox:latest", command=["sh", "-c", COMMAND])
    return apps_v1.Deployment(
        kw.Meta(shell.metadata.name),
        spec=apps_v1.DeploymentSpec(
            replicas=shell.spec.size,
            selector=meta_v1.LabelSelector(match_labels=labels),
            template=core_v1.PodTemplateSpec(
                metadata=kw.Meta(labels=labels), spec=core_v1.PodSpec(containers=[busybox])
            ),
        ),
    )


@kw.controller(MyOwnShell, owns=[kw.owned(apps_v1.Deployment, finalizer=FINALIZER)])
async def shells(shell: MyOwnShell, ctx: kw.Context) -> None:
    """Apply the Deployment and report the ready replicas."""
    live = await ctx.apply(deployment_for(shell))
    await ctx.patch_status(shell, ShellStatus(ready=live.status.ready_replicas))


@shells.finalizer(FINALIZER)
async def goodbye(shell: MyOwnShell, ctx: kw.Context) -> None:
    """Log the deletion; the garbage collector deletes the Deployment and its Pods."""
    ctx.log.info("Successfully finalized MyOwnShell")


def operator() -> kw.Operator:
    """Declare the operator; `kubewright plan` may run the finalizer, which changes no external system."""
    return kw.Operator(shells, name="myownshell", planning=nullcontext)
