"""The story on a terminal: resources with their columns, children, events, and what happens."""

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
from show.stage import NAMESPACE, Stage, set_up
from show.story import Story
from show.tables import Tables
from vmgroup import VmGroup

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KINDS = (MyOwnShell, FooV1Alpha1, VmGroup, PulsarConsumer, apps_v1.Deployment)
BREATH = 2.5
"""Seconds between two steps: a person is watching."""
LOOK = 0.5
EVENTS = 5
LEAST_TOLD = 4
"""Lines of the story that every screen shows."""
LOOK_WITH = (
    "kubectl get myownshells,vg,foos,deployments,pods"
    if shutil.which("kubectl")
    else f"{shutil.which('kubewright') or Path(sys.executable).with_name('kubewright')} get myownshells"
)
"""What a person can type to look around."""
JsonObject = dict[str, Any]


async def tell() -> None:
    """Play the story before a person's eyes and stay until Ctrl-C."""
    console = Console()
    view = View(console)
    with Live(
        view.render(), console=console, screen=False, auto_refresh=False, vertical_overflow="crop"
    ) as screen:
        view.tell("Starting the dev cluster and five operators")
        screen.update(view.render(), refresh=True)
        async with set_up() as stage, asyncio.TaskGroup() as group:
            view.hint = f"export KUBECONFIG={stage.cluster.kubeconfig}"
            watching = group.create_task(_watch(stage, view, screen))
            await _play(stage, view)
            await watching


async def _play(stage: Stage, view: "View") -> None:
    view.done("They are up")
    async for step in Story(stage).steps():
        await asyncio.sleep(BREATH)
        view.tell(step.title)
        try:
            view.done(await step.play())
        except AssertionError as error:
            view.failed(str(error).splitlines()[0])
    view.say("That was the story. Look around; Ctrl-C ends everything")


async def _watch(stage: Stage, view: "View", screen: Live) -> None:
    while True:
        await look(stage.cluster.client, view)
        screen.update(view.render(), refresh=True)
        await asyncio.sleep(LOOK)


async def look(client: Client, view: "View") -> None:
    """See what is there now."""
    tables = [(kind_of(kind).kind, await _rows(client, kind)) for kind in KINDS]
    view.tables = [("MyCustomResource", await _friends(client)), *tables]
    view.pods = await _pods(client)
    view.events = await _events(client)


async def _rows(client: Client, kind: type[Any]) -> JsonObject:
    """Ask for the table that `kubectl get` would show."""
    request = requests.list_page(kind_of(kind), namespace=NAMESPACE)
    answer = await client.raw(msgspec.structs.replace(request, accept=AS_TABLE))
    table: JsonObject = json.loads(answer.body)
    return table


async def _friends(client: Client) -> JsonObject:
    """Make the table that MyCustomResource would have if it had a column for its status."""
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
    """What the terminal shows at one moment; narrow terminals see the beginnings of long cells."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._told: list[Text] = []
        self._drawn = Tables()
        self.tables: list[tuple[str, JsonObject]] = []
        self.pods = ""
        self.events: list[str] = []
        self.hint = ""

    def tell(self, text: str) -> None:
        """Begin a step."""
        self._told.append(Text.assemble(("… ", "yellow"), (text, "bold")))

    def say(self, text: str) -> None:
        """Say something that is no step."""
        self._told.append(Text(text, style="bold"))

    def done(self, text: str) -> None:
        """End a step that went as it should."""
        self._end("✓", text, "green", "dim")

    def failed(self, text: str) -> None:
        """End a step that did not."""
        self._end("✗", text, "red", "red")

    def _end(self, mark: str, text: str, mark_style: str, style: str) -> None:
        title = self._told[-1].plain[2:]
        self._told[-1] = Text.assemble((f"{mark} ", mark_style), title, (f" → {text}", style))

    def _latest(self, room: int) -> list[Text]:
        """Give as much of the story's end as there is room for, the last step in any case."""
        shown: list[Text] = []
        for text in reversed(self._told):
            room -= len(text.wrap(self._console, self._console.size.width))
            if shown and room < 0:
                break
            shown.insert(0, text)
        return shown

    def render(self) -> RenderableType:
        """Draw everything: resources always, of the story and the events as much as the screen has room for."""
        width, height = self._console.size
        below: list[RenderableType] = []
        tables = [(name, rows) for name, rows in self.tables if rows.get("rows")]
        below += [self._drawn.draw(name, rows, width) for name, rows in tables]
        taken = sum(1 + len(rows["rows"]) for _, rows in tables)
        if self.pods:
            below.append(_line(f"Pods: {self.pods}"))
        if self.hint:
            below += [_line(self.hint, "cyan"), _line(LOOK_WITH, "cyan")]
        # Headings are lines too, and Live needs the last one of the screen for its cursor.
        free = height - taken - (3 if below else 0) - 3
        story = self._latest(max(LEAST_TOLD, free - len(self.events)))
        free -= sum(len(text.wrap(self._console, width)) for text in story)
        parts: list[RenderableType] = [_heading("Story"), *story, _heading("Resources"), *below]
        if self.events and free > 1:
            parts += [_heading("Events"), *map(_line, self.events[-free + 1 :])]
        return Group(*parts)


def _heading(text: str) -> Rule:
    return Rule(Text(text, style="bold"), align="left", style="dim")


def _line(text: str, style: str = "") -> Text:
    return Text(text, style=style, no_wrap=True, overflow="ellipsis")
