"""The demo on a terminal: resources with their columns, Pods, events, and the steps of the scenario."""

import asyncio
import json
import shutil
import sys
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.rule import Rule
from rich.text import Text

from foo import FooV1Alpha1
from kubewright.api import kind_of
from kubewright.api.builtin import apps_v1, core_v1, events_v1
from kubewright.client import Client, requests
from mycustomresource import MyCustomResource
from myownshell import MyOwnShell
from pulsarconsumer import PulsarConsumer
from show.environment import NAMESPACE, Environment, set_up
from show.scenario import Scenario
from show.tables import Tables
from vmgroup import VmGroup

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KINDS = (MyOwnShell, FooV1Alpha1, VmGroup, PulsarConsumer, apps_v1.Deployment)
PAUSE = 2.5
"""Seconds between two steps, so that the user can follow."""
REFRESH = 0.5
EVENTS = 5
LEAST_LINES = 4
"""Lines of the scenario that every screen shows."""
SUGGESTION = (
    "kubectl get myownshells,vg,foos,deployments,pods"
    if shutil.which("kubectl")
    else f"{shutil.which('kubewright') or Path(sys.executable).with_name('kubewright')} get myownshells"
)
"""A command that lists the resources."""
JsonObject = dict[str, Any]


async def run(*, ui: bool = False) -> None:
    """Run the scenario on the terminal and keep the cluster until Ctrl-C."""
    console = Console()
    view = View(console)
    with Live(
        view.render(), console=console, screen=False, auto_refresh=False, vertical_overflow="crop"
    ) as screen:
        view.begin("Starting the dev cluster and five operators")
        screen.update(view.render(), refresh=True)
        async with set_up(ui=ui) as environment, asyncio.TaskGroup() as group:
            if environment.link:
                # Above the tables, which are drawn again and again: a link is there to be clicked.
                console.print(f"live page: {environment.link}", soft_wrap=True)
            view.hint = f"export KUBECONFIG={environment.cluster.kubeconfig}"
            watching = group.create_task(_watch(environment, view, screen))
            await _play(environment, view)
            await watching


async def _play(environment: Environment, view: "View") -> None:
    view.done("They are up")
    async for step in Scenario(environment).steps():
        await asyncio.sleep(PAUSE)
        view.begin(step.title)
        try:
            view.done(await step.play())
        except AssertionError as error:
            view.failed(str(error).splitlines()[0])
    view.say("The scenario is done. The cluster keeps running; press Ctrl-C to stop it")


async def _watch(environment: Environment, view: "View", screen: Live) -> None:
    while True:
        await look(environment.cluster.client, view)
        screen.update(view.render(), refresh=True)
        await asyncio.sleep(REFRESH)


async def look(client: Client, view: "View") -> None:
    """Read the current state of the cluster into the view."""
    tables = [(kind_of(kind).kind, await _rows(client, kind)) for kind in KINDS]
    view.tables = [("MyCustomResource", await _friends(client)), *tables]
    view.pods = await _pods(client)
    view.events = await _events(client)


async def _rows(client: Client, kind: type[Any]) -> JsonObject:
    """Request the table that `kubectl get` shows."""
    request = requests.list_page(kind_of(kind), namespace=NAMESPACE)
    response = await client.raw(msgspec.structs.replace(request, accept=AS_TABLE))
    table: JsonObject = json.loads(response.body)
    return table


async def _friends(client: Client) -> JsonObject:
    """Build a table for MyCustomResource, which has no printer column for its status."""
    found = await client.list(MyCustomResource, namespace=NAMESPACE)
    columns = [{"name": name, "priority": 0} for name in ("Name", "Friend", "Healthy")]
    rows = [{"cells": [it.metadata.name, it.spec.name, it.status.healthy]} for it in found]
    return {"columnDefinitions": columns, "rows": rows}


async def _pods(client: Client) -> str:
    phases: dict[str, int] = {}
    for pod in await client.list(core_v1.Pod, namespace=NAMESPACE):
        phase = "Terminating" if pod.metadata.deletion_timestamp else pod.status.phase
        phases[phase] = phases.get(phase, 0) + 1
    return ", ".join(f"{count} {phase}" for phase, count in sorted(phases.items())) or "none"


async def _events(client: Client) -> list[str]:
    found = await client.list(events_v1.Event, namespace=NAMESPACE)
    found.sort(key=lambda event: int(event.metadata.resource_version or 0))
    return [f"{event.regarding.kind}/{event.regarding.name}: {event.note}" for event in found[-EVENTS:]]


class View:
    """What the terminal shows; long cells are truncated on narrow terminals."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._lines: list[Text] = []
        self._drawn = Tables()
        self.tables: list[tuple[str, JsonObject]] = []
        self.pods = ""
        self.events: list[str] = []
        self.hint = ""

    def begin(self, text: str) -> None:
        """Add a step that is running."""
        self._lines.append(Text.assemble(("… ", "yellow"), (text, "bold")))

    def say(self, text: str) -> None:
        """Add a line that is not a step."""
        self._lines.append(Text(text, style="bold"))

    def done(self, text: str) -> None:
        """Mark the last step as succeeded."""
        self._end("✓", text, "green", "dim")

    def failed(self, text: str) -> None:
        """Mark the last step as failed."""
        self._end("✗", text, "red", "red")

    def _end(self, mark: str, text: str, mark_style: str, style: str) -> None:
        title = self._lines[-1].plain[2:]
        self._lines[-1] = Text.assemble((f"{mark} ", mark_style), title, (f" → {text}", style))

    def _latest(self, room: int) -> list[Text]:
        """Return the latest lines that fit into `room` lines of the screen; the last one always."""
        shown: list[Text] = []
        for text in reversed(self._lines):
            room -= len(text.wrap(self._console, self._console.size.width))
            if shown and room < 0:
                break
            shown.insert(0, text)
        return shown

    def render(self) -> RenderableType:
        """Return everything: all resources, and as many lines and events as fit on the screen."""
        width, height = self._console.size
        below: list[RenderableType] = []
        tables = [(name, rows) for name, rows in self.tables if rows.get("rows")]
        below += [self._drawn.draw(name, rows, width) for name, rows in tables]
        taken = sum(1 + len(rows["rows"]) for _, rows in tables)
        if self.pods:
            below.append(_line(f"Pods: {self.pods}"))
        if self.hint:
            below += [_line(self.hint, "cyan"), _line(SUGGESTION, "cyan")]
        # Headings are lines too, and Live needs the last one of the screen for its cursor.
        free = height - taken - (3 if below else 0) - 3
        lines = self._latest(max(LEAST_LINES, free - len(self.events)))
        free -= sum(len(text.wrap(self._console, width)) for text in lines)
        parts: list[RenderableType] = [_heading("Steps"), *lines, _heading("Resources"), *below]
        if self.events and free > 1:
            parts += [_heading("Events"), *map(_line, self.events[-free + 1 :])]
        return Group(*parts)


def _heading(text: str) -> Rule:
    return Rule(Text(text, style="bold"), align="left", style="dim")


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
