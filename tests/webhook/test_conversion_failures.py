"""Conversions that fail on an API server: the object is named, the others stay readable, nothing is half written."""

from collections.abc import AsyncIterator

import pytest

import kubewright as kw
from kubewright.api import ApiError
from kubewright.testing import Cluster, eventually

from .kinds import Widget, WidgetSpec, WidgetV1Alpha1, WidgetV1Beta1, alpha_up, from_beta


def fragile_down(widget: Widget) -> WidgetV1Alpha1:
    """Fail for one color, and change the name for another."""
    if widget.spec.color == "broken":
        raise ValueError("broken on purpose")
    made = WidgetV1Alpha1(widget.metadata, size=widget.spec.size, color=widget.spec.color)
    if widget.spec.color == "renamed":
        made.metadata = kw.Meta("other", namespace=widget.metadata.namespace)
    return made


@kw.controller(Widget, name="fragile")
async def nothing(widget: Widget, ctx: kw.Context) -> None:
    pass


@pytest.fixture
async def served(cluster: Cluster) -> AsyncIterator[Cluster]:
    fragile = kw.Conversion(Widget, WidgetV1Alpha1, up=alpha_up, down=fragile_down)
    async with cluster.running(kw.Operator(nothing, webhooks=[fragile, from_beta])):
        for color in ("red", "broken", "renamed"):
            await cluster.create(Widget(kw.Meta(color), spec=WidgetSpec(size=1, color=color)))
        await eventually(lambda: converted(cluster))
        yield cluster
        await cluster.client.delete_collection(Widget, namespace=cluster.namespace)


async def converted(cluster: Cluster) -> bool:
    """Return True if the API server calls this conversion webhook; before, it calls none or the previous one."""
    try:
        return (await cluster.get(WidgetV1Beta1, "red")).spec.width == 1
    except ApiError:
        return False


async def refusal(cluster: Cluster, name: str) -> str:
    with pytest.raises(ApiError) as caught:
        await cluster.get(WidgetV1Alpha1, name)
    return caught.value.status.message


async def test_an_object_that_cannot_be_converted_is_named_and_the_others_stay_readable(
    served: Cluster,
) -> None:
    assert f"Widget {served.namespace}/broken: conversion to" in await refusal(served, "broken")
    assert "ValueError: broken on purpose" in await refusal(served, "broken")
    assert (await served.get(WidgetV1Alpha1, "red")).size == 1
    assert (await served.get(Widget, "broken")).spec.size == 1
    with pytest.raises(ApiError, match=f"Widget {served.namespace}/broken"):
        await served.client.list(WidgetV1Alpha1, namespace=served.namespace)


async def test_a_conversion_that_changes_the_name_is_rejected_by_the_server(served: Cluster) -> None:
    assert "the conversion changes metadata.name" in await refusal(served, "renamed")


async def test_a_write_that_cannot_be_converted_changes_nothing(served: Cluster) -> None:
    before = await served.get(Widget, "broken")
    with pytest.raises(ApiError, match="broken on purpose"):
        await served.client.patch(WidgetV1Alpha1, {"size": 9}, name="broken", namespace=served.namespace)
    after = await served.get(Widget, "broken")
    assert (after.spec.size, after.metadata.resource_version) == (1, before.metadata.resource_version)
