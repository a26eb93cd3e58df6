"""The kind LoadingDock and its controller."""

from typing import Annotated

import kubewright as kw


class LoadingDockSpec(kw.Model):
    """The desired state."""

    message: Annotated[str, kw.Field(max_length=256, description="Message to report in the status.")] = "hello"


class LoadingDockStatus(kw.Model):
    """The observed state."""

    conditions: list[kw.Condition] = []


class LoadingDock(
    kw.Resource[LoadingDockSpec, LoadingDockStatus],
    group="fleet.example.org",
    version="v1",
    scope="Cluster",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A cluster-wide message. Replace this with a description of LoadingDock."""


@kw.controller(LoadingDock)
async def loading_docks(dock: LoadingDock, ctx: kw.Context) -> None:
    """Bring the cluster to the desired state; called when the object changes."""
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message=dock.spec.message)
    await ctx.patch_status(dock, LoadingDockStatus(conditions=[ready]))
