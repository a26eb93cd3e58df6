"""Optional kinds: the operator works without them, picks them up when they come, and copes when they go."""

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kubewright.api import Meta, Model, NotFound, Object, ObjectKey, Resource, kind_of
from kubewright.api.builtin import apiextensions_v1
from kubewright.client import requests
from kubewright.controller import Context, Controller, Operator, reference, rules_for, watch
from kubewright.testing import Cluster, eventually
from kubewright.testing.virtual_time import virtual_time

from .operators import ours, running, with_boxes


class ShopSpec(Model):
    sign: str = ""


class ShopStatus(Model):
    signs: list[str] = []
    found: str = ""
    error: str = ""


class Shop(Resource[ShopSpec, ShopStatus], group="optional.example.com", version="v1"):
    """Works with or without signs."""


class Sign(Object, group="optional.example.com", version="v1"):
    """A kind of another operator, which may not be installed."""

    text: str = ""


def to_all(sign: Sign) -> list[ObjectKey]:
    return [ObjectKey(sign.metadata.namespace, "corner")]


SIGNS = watch(Sign, map=to_all, optional=True)
NAMED = reference(Sign, "spec.sign", optional=True)


async def reconcile(shop: Shop, ctx: Context) -> None:
    signs = [sign.text for sign in await ctx.list(Sign)]
    await ctx.live.list(Sign)
    error = ""
    try:
        await ctx.get(Sign, "open")
    except NotFound as missing:
        error = str(missing)
    found = await ctx.find(NAMED)
    status = ShopStatus(signs=signs, found=found.text if found else "", error=error)
    await ctx.patch_status(shop, status)


def shops() -> Controller[Shop]:
    return Controller(Shop, reconcile, watches=[SIGNS, NAMED])


async def uninstall(cluster: Cluster) -> None:
    definition = kind_of(apiextensions_v1.CustomResourceDefinition)
    await cluster.client.send(requests.delete(definition, f"signs.{kind_of(Sign).group}"))

    async def is_gone() -> bool:
        try:
            await cluster.client.list(Sign, namespace=cluster.namespace)
        except NotFound:
            return True
        return False

    await eventually(is_gone)


@asynccontextmanager
async def without_signs(cluster: Cluster) -> AsyncIterator[None]:
    """Run the body in a cluster without the CRD of signs, and uninstall it afterwards."""
    await cluster.install(Shop)
    try:
        yield
    finally:
        try:
            await uninstall(cluster)
        except NotFound:
            pass


async def test_an_optional_kind_is_watched_while_it_is_installed(
    cluster: Cluster, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "kubewright.cache")
    async with without_signs(cluster), running(cluster, shops()) as manager:
        assert manager.readiness.failures() == {}
        await cluster.create(Shop(Meta("corner"), spec=ShopSpec(sign="open")))
        first = await cluster.eventually(Shop, "corner", lambda it: it.status.error)
        assert first.status.signs == []
        assert "the cluster does not serve this optional kind" in first.status.error

        for _ in range(2):
            await cluster.install(Sign)
            await cluster.create(Sign(Meta("open"), text="come in"))
            there = await cluster.eventually(Shop, "corner", lambda it: it.status.signs == ["come in"])
            assert (there.status.found, there.status.error) == ("come in", "")
            assert manager.readiness.failures() == {}
            await uninstall(cluster)
            await cluster.eventually(Shop, "corner", lambda it: not it.status.signs and it.status.found == "")
            assert manager.readiness.failures() == {}
    assert "the cluster does not serve this optional kind, waiting for it" in caplog.text
    # A CRD that was just created again is not served for a moment by a real server, whether its kind is optional or not.
    assert [
        record.getMessage()
        for record in caplog.records
        if record.levelno >= logging.WARNING and "(re)initializing" not in record.getMessage()
    ] == []


@virtual_time
async def test_an_optional_kind_that_cannot_be_listed_yet_is_read_from_the_server() -> None:
    """A server that is not available now does not delay the start; that does not make its objects missing."""
    async with with_boxes() as cluster:
        await cluster.install(Shop, Sign)
        await cluster.create(Sign(Meta("open"), text="come in"))
        await cluster.create(Shop(Meta("corner"), spec=ShopSpec(sign="open")))

        async def read(shop: Shop, ctx: Context) -> None:
            text = (await ctx.get(Sign, "open")).text
            found = await ctx.find(NAMED)
            await ctx.patch_status(shop, ShopStatus(signs=[text], found=found.text if found else ""))

        unavailable = ours(verbs=("list", "watch"), resource="signs.optional.example.com")
        with cluster.faults.add(match=unavailable, fail=503):
            async with running(cluster, Controller(Shop, read, watches=[SIGNS, NAMED])):
                shop = await cluster.eventually(Shop, "corner", lambda it: it.status.signs)
                assert (shop.status.signs, shop.status.found) == (["come in"], "come in")


def test_rights_on_an_optional_kind_are_generated() -> None:
    rules = rules_for(Operator(shops()))
    (rule,) = [rule for rule in rules if "signs" in rule.resources]
    assert set(rule.verbs) == {"get", "list", "watch"}
