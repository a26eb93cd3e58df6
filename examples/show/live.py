"""The story on a terminal: resources with their columns, children, events, and what happens."""

import asyncio
import json
import shutil
from typing import Any

import msgspec
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
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
from show.tables import table
from vmgroup import VmGroup

AS_TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
KINDS = (MyOwnShell, FooV1Alpha1, VmGroup, PulsarConsumer, apps_v1.Deployment)
BREATH = 2.5
"""Seconds between two steps: a person is watching."""
LOOK = 0.5
EVENTS = 5
LOOK_WITH = (
    "kubectl get myownshells,vg,foos,deployments,pods"
    if shutil.which("kubectl")
    else "kubewright get myownshells"
)
"""What a person can type to look around."""
Wire = dict[str, Any]


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
    view.tell("That was the story. Look around; Ctrl-C ends everything")


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


async def _rows(client: Client, kind: type[Any]) -> Wire:
    """Ask for the table that `kubectl get` would show."""
    request = requests.list_page(kind_of(kind), namespace=NAMESPACE)
    answer = await client.raw(msgspec.structs.replace(request, accept=AS_TABLE))
    table: Wire = json.loads(answer.body)
    return table


async def _friends(client: Client) -> Wire:
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
        self.tables: list[tuple[str, Wire]] = []
        self.pods = ""
        self.events: list[str] = []
        self.hint = ""

    def tell(self, text: str) -> None:
        """Begin a step."""
        self._told.append(Text(f"  {text}"))

    def done(self, text: str) -> None:
        """End a step that went as it should."""
        self._told[-1] = Text.assemble(("✓ ", "green"), self._told[-1].plain.strip(), (f": {text}", "dim"))

    def failed(self, text: str) -> None:
        """End a step that did not."""
        self._told[-1] = Text.assemble(("✗ ", "red"), self._told[-1].plain.strip(), (f": {text}", "red"))

    def _latest(self) -> list[Text]:
        """Give as much of the story's end as a third of the screen holds, the last step in any case."""
        room, width = self._console.size.height // 3, max(1, self._console.size.width - 4)
        shown: list[Text] = []
        for text in reversed(self._told):
            room -= -(-text.cell_len // width)
            if shown and room < 0:
                break
            shown.insert(0, text)
        return shown

    def render(self) -> RenderableType:
        """Draw everything, the story first: what a small screen has no room for is cut at the end."""
        parts: list[RenderableType] = [Panel(Group(*self._latest()), title="Story", title_align="left")]
        if self.hint:
            parts.append(_line(self.hint))
            parts.append(_line(LOOK_WITH))
        width = self._console.size.width
        parts += [table(name, rows, width) for name, rows in self.tables if rows.get("rows")]
        if self.pods:
            parts.append(_line(f"Pods: {self.pods}"))
        if self.events:
            parts.append(Panel(Group(*map(_line, self.events)), title="Events", title_align="left"))
        return Group(*parts)


def _line(text: str) -> Text:
    return Text(text, no_wrap=True, overflow="ellipsis")
