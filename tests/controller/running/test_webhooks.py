"""Another webhook changes what the operator writes."""

import dataclasses
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

from kubewright.api import ApiError, Meta
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from kubewright.controller import Context, Controller
from kubewright.manager import Manager
from kubewright.testing import Cluster, eventually
from kubewright.webhook import Problem, WebhookOptions, denied, mutating_webhook, validating_webhook

from .kinds import Box, Paper
from .operators import OPTIONS, events, running, settled

SERVED = dataclasses.replace(OPTIONS, webhooks=WebhookOptions(bind_address="127.0.0.1:0"))


@mutating_webhook(apps_v1.Deployment)
def mirrored(deployment: apps_v1.Deployment) -> None:
    for container in deployment.spec.template.spec.containers:
        if not container.image.startswith("mirror/"):
            container.image = f"mirror/{container.image}"


@validating_webhook(Paper)
def clean(paper: Paper, old: Paper | None) -> Iterator[Problem]:
    if paper.text == "dirty":
        yield denied("the paper must be clean")


@asynccontextmanager
async def standing(cluster: Cluster, *webhooks: Any, name: str) -> AsyncIterator[None]:
    async with running(cluster, options=SERVED, webhooks=webhooks, name=name):
        yield


def web(name: str, replicas: int) -> apps_v1.Deployment:
    labels = {"app": name}
    container = core_v1.Container(name="main", image="app:1")
    template = core_v1.PodTemplateSpec(
        metadata=Meta(labels=labels), spec=core_v1.PodSpec(containers=[container])
    )
    selector = meta_v1.LabelSelector(match_labels=labels)
    return apps_v1.Deployment(
        Meta(name), spec=apps_v1.DeploymentSpec(replicas=replicas, selector=selector, template=template)
    )


def applies(manager: Manager) -> int:
    """Return how many of the reconciles, each with one apply, sent it."""
    skipped = manager.metrics.counter("kubewright_applies_skipped_total", "", ("controller",))
    reconciles = manager.statistics().controllers[0].outcomes["success"]
    return reconciles - int(skipped.labels(controller="box").value)


def image_of(deployment: apps_v1.Deployment) -> str:
    return deployment.spec.template.spec.containers[0].image


async def test_an_image_that_a_webhook_rewrites_is_reported_once_and_not_applied_again(
    cluster: Cluster,
) -> None:
    await cluster.install(Box)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(web("a", box.spec.size))

    async def asked() -> bool:
        made = await cluster.client.create(in_namespace(web("probe", 1), cluster), dry_run=True)
        return image_of(made) == "mirror/app:1"

    async with standing(cluster, mirrored, name="mirror"):
        await eventually(asked)
        async with running(cluster, Controller(Box, reconcile, owns=[apps_v1.Deployment])) as manager:
            box = await cluster.create(Box(Meta("a")))
            await cluster.eventually(apps_v1.Deployment, "a", lambda found: image_of(found) == "mirror/app:1")
            await settled(manager)
            assert applies(manager) == 1
            await cluster.client.patch(box, {"metadata": {"annotations": {"touched": "yes"}}})
            await settled(manager)
            assert applies(manager) == 1
            await cluster.client.patch(box, {"spec": {"size": 3}})
            changed = await cluster.eventually(
                apps_v1.Deployment, "a", lambda found: found.spec.replicas == 3
            )
            await settled(manager)
            assert applies(manager) == 2
        assert image_of(changed) == "mirror/app:1"
        reported = {event.note for event in await events(cluster, "ApplyAltered")}
    assert reported == {
        "The server did not take spec.template.spec.containers[0].image as controller box applied it"
    }


async def test_a_child_that_a_webhook_denies_is_retried_until_it_is_allowed(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)

    async def reconcile(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta(box.metadata.name), text=box.spec.labels["text"]))

    async def asked() -> bool:
        try:
            await cluster.client.create(
                in_namespace(Paper(Meta("probe"), text="dirty"), cluster), dry_run=True
            )
        except ApiError as refusal:
            return "must be clean" in str(refusal)
        return False

    async with (
        standing(cluster, clean, name="laundry"),
        running(cluster, Controller(Box, reconcile, owns=[Paper])) as manager,
    ):
        await eventually(asked)
        for name, text in (("a", "dirty"), ("b", "fine")):
            box = Box(Meta(name))
            box.spec.labels = {"text": text}
            await cluster.create(box)
        await eventually(lambda: manager.statistics().controllers[0].outcomes["error"] >= 2)
        await cluster.eventually(Paper, "b", lambda paper: paper.text == "fine")
        assert await cluster.find(Paper, "a") is None
        await cluster.client.patch(await cluster.get(Box, "a"), {"spec": {"labels": {"text": "washed"}}})
        await cluster.eventually(Paper, "a", lambda paper: paper.text == "washed")


def in_namespace(obj: Any, cluster: Cluster) -> Any:
    obj.metadata.namespace = cluster.namespace
    return obj
