"""A first operator: Pods to open a shell in. Try it: kubewright run examples/first_operator.py --dev."""

from contextlib import nullcontext
from typing import Annotated

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1


class ShellSpec(kw.Model):
    """The desired state of a shell."""

    size: Annotated[int, kw.Field(ge=0, description="Number of shell pods.")]


class ShellStatus(kw.Model):
    """The observed state of a shell."""

    ready: int = 0


class MyOwnShell(
    kw.Resource[ShellSpec, ShellStatus],
    group="my-first-operator.jgato.io",
    version="v1alpha1",
    columns=[kw.Column("Ready", ".status.ready", type="integer")],
):
    """Pods to open a shell in."""


def deployment_for(shell: MyOwnShell) -> apps_v1.Deployment:
    """Return the Deployment for a shell."""
    labels = {"app": "myownshell", "myownshell_cr": shell.metadata.name}
    busybox = core_v1.Container(name="busybox", image="busybox:latest", command=["sleep", "infinity"])
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


@kw.controller(MyOwnShell, owns=[apps_v1.Deployment])
async def shells(shell: MyOwnShell, ctx: kw.Context) -> None:
    """Apply the Deployment and report the ready replicas."""
    live = await ctx.apply(deployment_for(shell))
    await ctx.patch_status(shell, ShellStatus(ready=live.status.ready_replicas))


@shells.finalizer("myownshell.my-first-operator.jgato.io/finalizer")
async def goodbye(shell: MyOwnShell, ctx: kw.Context) -> None:
    """Log the deletion; the garbage collector deletes the Deployment and its Pods."""
    ctx.log.info("Successfully finalized MyOwnShell")


# `kubewright plan` may run the finalizer: it changes no external system.
operator = kw.Operator(shells, name="first-operator", planning=nullcontext)
