"""Each reconcile is a span, each write one below it; the tracer is handed in, or OpenTelemetry's."""

import dataclasses
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from types import ModuleType
from typing import Any

import pytest

from kubewright.api import Meta
from kubewright.controller import Context, Controller, needs
from kubewright.manager.parts import OptionalModule
from kubewright.testing import Cluster, eventually

from .kinds import Box, BoxStatus, Paper
from .operators import OPTIONS, running, settled


@dataclasses.dataclass
class Span:
    name: str
    attributes: Mapping[str, Any]
    below: "Span | None"
    error: str = ""


class FakeTracer:
    """Notes spans as OpenTelemetry makes them: below the one that is current where they begin."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._current: ContextVar[Span | None] = ContextVar("current", default=None)

    @contextmanager
    def start_as_current_span(self, name: str, *, attributes: Any = None) -> Iterator[Span]:
        span = Span(name, attributes, self._current.get())
        self.spans.append(span)
        token = self._current.set(span)
        try:
            yield span
        except Exception as error:
            span.error = str(error)
            raise
        finally:
            self._current.reset(token)


async def work(box: Box, ctx: Context) -> None:
    if box.spec.size == 0:
        raise LookupError("no size")
    if box.status.ready == 0:
        paper = await ctx.apply(Paper(Meta("p"), text="hello"))
        await ctx.patch_status(box, BoxStatus(ready=1))
        await ctx.delete(paper)


BOXES = Controller(Box, work, owns=[Paper], needs=[needs(Paper, "delete")])


async def test_a_reconcile_is_a_span_with_its_writes_below_it(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()
    async with running(cluster, BOXES, options=dataclasses.replace(OPTIONS, tracer=tracer)):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: any(span.name == "delete" for span in tracer.spans))
    reconcile = tracer.spans[0]
    assert reconcile.name == "reconcile"
    assert reconcile.below is None
    identity = reconcile.attributes["reconcileID"]
    assert dict(reconcile.attributes) == {
        "controller": "box",
        "controllerGroup": "running.example.com",
        "controllerKind": "Box",
        "namespace": cluster.namespace,
        "name": "a",
        "reconcileID": identity,
        "causes": [f"Box {cluster.namespace}/a was created"],
    }
    writes = [span for span in tracer.spans if span.below is reconcile]
    assert [(span.name, span.attributes["resource"]) for span in writes] == [
        ("patch", "papers.running.example.com"),
        ("patch", "boxes/status.running.example.com"),
        ("delete", "papers.running.example.com"),
    ]
    assert {span.attributes["namespace"] for span in writes} == {cluster.namespace}


async def test_writes_by_the_client_are_spans_and_reads_are_not(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()

    async def bypass(box: Box, ctx: Context) -> None:
        if await ctx.client.list(Paper, namespace=cluster.namespace):
            return
        paper = Paper(Meta("p", namespace=cluster.namespace), text="hello")
        await ctx.client.create(paper)
        await ctx.client.get(Paper, "p", cluster.namespace)
        await ctx.client.delete(Paper, name="p", namespace=cluster.namespace)

    async with running(
        cluster, Controller(Box, bypass), options=dataclasses.replace(OPTIONS, tracer=tracer)
    ) as manager:
        await cluster.create(Box(Meta("a")))
        await settled(manager)
    written = [span for span in tracer.spans if span.below is not None]
    assert [(span.name, span.attributes["name"]) for span in written] == [("create", "p"), ("delete", "p")]
    assert {span.below.name for span in written if span.below} == {"reconcile"}


async def test_exceptions_of_a_reconcile_are_recorded_in_its_span(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()
    async with running(cluster, BOXES, options=dataclasses.replace(OPTIONS, tracer=tracer)):
        box = Box(Meta("a"))
        box.spec.size = 0
        await cluster.create(box)
        await eventually(lambda: bool(tracer.spans) and tracer.spans[0].error == "no size")


async def test_an_installed_opentelemetry_is_used_by_default(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()
    installed = ModuleType(OptionalModule.OPENTELEMETRY.value)
    installed.get_tracer = lambda name: tracer if name == "kubewright" else None  # pyright: ignore[reportAttributeAccessIssue]
    monkeypatch.setitem(sys.modules, OptionalModule.OPENTELEMETRY.value, installed)
    async with running(cluster, BOXES) as manager:
        await cluster.create(Box(Meta("a")))
        await settled(manager)
        assert tracer.spans
