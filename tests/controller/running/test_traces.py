"""Each reconcile is a span, each write one below it; the tracer is handed in, or OpenTelemetry's."""

import asyncio
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
from kubewright.http.client import Origin, Pool, Route
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
    ended: bool = False
    links: list[tuple["Span", Mapping[str, Any]]] = dataclasses.field(default_factory=list)

    def get_span_context(self) -> "Span":
        return self

    def add_link(self, context: "Span", attributes: Any = None) -> None:
        self.links.append((context, attributes))

    def end(self, end_time: int | None = None) -> None:
        self.ended = True


class FakeTracer:
    """Notes spans as OpenTelemetry makes them: below the one that is current where they begin."""

    def __init__(self) -> None:
        self.begun: list[Span] = []
        self._current: ContextVar[Span | None] = ContextVar("current", default=None)

    @property
    def spans(self) -> list[Span]:
        """Return the spans that are exported: those that have ended."""
        return [span for span in self.begun if span.ended]

    @contextmanager
    def start_as_current_span(
        self, name: str, *, attributes: Any = None, end_on_exit: bool = True
    ) -> Iterator[Span]:
        span = Span(name, attributes, self._current.get())
        self.begun.append(span)
        token = self._current.set(span)
        try:
            yield span
        except Exception as error:
            span.error = str(error)
            raise
        finally:
            self._current.reset(token)
            if end_on_exit:
                span.end()


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


async def test_a_reconcile_is_linked_to_the_write_that_caused_it(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()

    async def file(paper: Paper, ctx: Context) -> None:
        ctx.event("Filed", paper.text)

    async def write(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("p"), text=str(box.spec.size)))

    controllers = Controller(Box, write, owns=[Paper]), Controller(Paper, file)
    async with running(cluster, *controllers, options=dataclasses.replace(OPTIONS, tracer=tracer)):
        box = await cluster.create(Box(Meta("a")))
        await eventually(lambda: any(span.links for span in tracer.spans))
        await cluster.client.patch(box, {"spec": {"size": 7}}, type="merge")
        await eventually(lambda: sum(bool(span.links) for span in tracer.spans) > 1)
    linked = [span for span in tracer.spans if span.links]
    assert {span.attributes["controllerKind"] for span in linked} == {"Paper"}
    writes = [span for span in tracer.spans if span.name == "patch"]
    assert [span.links[0][0] for span in linked] == writes
    about = {"kind": "Paper", "namespace": cluster.namespace, "name": "p"}
    assert [span.links[0][1] for span in linked] == [
        {**about, "type": "create"},
        {**about, "type": "update"},
    ]


class SlowResponses(Pool):
    """Connections on which the responses to patches of papers arrive only when they are let through."""

    def __init__(self, route: Route, arrive: asyncio.Event) -> None:
        super().__init__(route)
        self._arrive = arrive

    async def send(self, head: bytes, *rest: Any) -> Any:
        response = await super().send(head, *rest)
        if head.startswith(b"PATCH ") and b"/papers/" in head.partition(b"\r\n")[0]:
            await self._arrive.wait()
        return response


async def test_a_reconcile_that_ends_before_the_response_to_its_cause_is_linked(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()
    arrive = asyncio.Event()
    filed: list[str] = []

    async def file(paper: Paper, ctx: Context) -> None:
        ctx.event("Filed", paper.text)
        filed.append(paper.text)

    async def write(box: Box, ctx: Context) -> None:
        await ctx.apply(Paper(Meta("p"), text="hello"))

    route = Route(Origin.of(cluster.config.server))
    cluster.config = dataclasses.replace(cluster.config, exchange=lambda: SlowResponses(route, arrive))
    controllers = Controller(Box, write, owns=[Paper]), Controller(Paper, file)
    async with running(cluster, *controllers, options=dataclasses.replace(OPTIONS, tracer=tracer)):
        await cluster.create(Box(Meta("a")))
        await eventually(lambda: filed)
        arrive.set()
        [link] = await eventually(lambda: [link for span in tracer.spans for link in span.links])
    cause, about = link
    assert cause.name == "patch"
    assert about == {"kind": "Paper", "namespace": cluster.namespace, "name": "p", "type": "create"}


async def test_a_reconcile_is_linked_to_the_deletion_that_caused_it(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()

    async def write(box: Box, ctx: Context) -> None:
        if any(cause.type == "delete" for cause in ctx.causes):
            ctx.event("Gone", "the paper is gone")
        elif box.status.ready == 0:
            paper = await ctx.apply(Paper(Meta("p"), text="hello"))
            await ctx.patch_status(box, BoxStatus(ready=1))
            await ctx.delete(paper)

    controller = Controller(Box, write, owns=[Paper], needs=[needs(Paper, "delete")])
    async with running(cluster, controller, options=dataclasses.replace(OPTIONS, tracer=tracer)):
        await cluster.create(Box(Meta("a")))
        await eventually(
            lambda: any(
                cause.name == "delete" and about["type"] == "delete"
                for span in tracer.spans
                for cause, about in span.links
            )
        )


async def test_idle_reconciles_are_not_exported(cluster: Cluster) -> None:
    await cluster.install(Box, Paper)
    tracer = FakeTracer()
    seen: list[str] = []

    async def look(box: Box, ctx: Context) -> None:
        seen.append(box.metadata.name)

    async with running(
        cluster, Controller(Box, look), options=dataclasses.replace(OPTIONS, tracer=tracer)
    ) as manager:
        await cluster.create(Box(Meta("a")))
        await settled(manager)
    assert seen
    assert tracer.begun
    assert tracer.spans == []


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
