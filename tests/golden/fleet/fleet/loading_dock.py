"""The kind LoadingDock and its controller."""

from typing import Annotated

import kubewright as kw


class LoadingDockSpec(kw.Model):
    """What is asked for."""

    message: Annotated[str, kw.Field(max_length=256, description="What the status repeats.")] = "hello"


class LoadingDockStatus(kw.Model):
    """What is there."""

    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class LoadingDock(
    kw.Resource[LoadingDockSpec, LoadingDockStatus],
    group="fleet.example.org",
    version="v1",
    scope="Cluster",
    columns=[kw.Column("Ready", '.status.conditions[?(@.type=="Ready")].status')],
):
    """A message for the whole cluster: put what a LoadingDock is about in its place."""


@kw.controller(LoadingDock)
async def loading_docks(dock: LoadingDock, ctx: kw.Context) -> None:
    """Make the world as the object says; runs again when the object changes."""
    ready = kw.Condition(type="Ready", status="True", reason="Reconciled", message=dock.spec.message)
    await ctx.patch_status(dock, LoadingDockStatus(conditions=[ready]))
