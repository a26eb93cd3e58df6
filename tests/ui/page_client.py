"""A client of the live page, as a browser is one: it has the cookie, and reads the stream of server-sent events."""

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from kubewright.testing import eventually

Json = dict[str, Any]


class PageView:
    """What a page that follows the stream knows."""

    def __init__(self, namespace: str = "") -> None:
        self.namespace = namespace
        self.hello: Json = {}
        self.hellos = 0
        self.objects: dict[str, Json] = {}
        self.reconciles: dict[tuple[str, str], Json] = {}
        self.operators: list[Json] = []
        self.problems: list[str] = []
        self.history: Json = {}
        self.events: list[tuple[str, Json]] = []

    def take(self, name: str, data: Json) -> None:
        """Take one event, as the page does."""
        self.events.append((name, data))
        match name:
            case "hello":
                self.hello = data
                self.hellos += 1
            case "objects":
                if data["reset"]:
                    self.objects.clear()
                self.objects.update({each["uid"]: each for each in data["changed"]})
                for each in data["removed"]:
                    self.objects.pop(each["uid"], None)
            case "reconciles":
                if data["reset"]:
                    self.reconciles.clear()
                for each in data["added"]:
                    self.reconciles.pop((each["operator"], each.get("replaces", "")), None)
                    self.reconciles[each["operator"], each["id"]] = each
            case "operators":
                self.operators = data["operators"]
            case "problems":
                self.problems = data["problems"]
            case "history":
                self.history = data
            case _:
                raise AssertionError(f"unknown event {name}")

    @property
    def own_problems(self) -> list[str]:
        """Return the problems without those of Pods that other tests left behind."""
        other = re.compile(rf"the journal of Pod (?!{re.escape(self.namespace)}/)")
        return [text for text in self.problems if not other.match(text)]

    def find(self, kind: str, name: str) -> Json | None:
        """Return an object by kind and name, in the namespace of the test if it is known: other tests use the names too."""
        places = ("", self.namespace)
        return next(
            (
                each
                for each in self.objects.values()
                if (each["kind"], each["name"]) == (kind, name)
                and (not self.namespace or each["namespace"] in places)
            ),
            None,
        )

    async def has(self, kind: str, name: str, test: Callable[[Json], bool] = bool) -> Json:
        """Wait for an object that passes the test."""

        def look() -> Json | None:
            found = self.find(kind, name)
            return found if found is not None and test(found) else None

        return await eventually(look, message=f"{kind} {name} is not on the page")


class PageClient:
    """One browser."""

    def __init__(self, session: aiohttp.ClientSession, link: str) -> None:
        self.session = session
        self.url = link.partition("/?")[0]

    async def get(self, path: str, expected: int = 200) -> Any:
        """Return the JSON of a path."""
        async with self.session.get(f"{self.url}{path}") as response:
            text = await response.text()
            assert response.status == expected, text
            return json.loads(text)

    async def act(self, expected: int = 200, **action: Any) -> str:
        """Perform an action and return the message."""
        async with self.session.post(f"{self.url}/api/actions", json=action) as response:
            text = await response.text()
            assert response.status == expected, text
            return json.loads(text)["message"]

    @asynccontextmanager
    async def following(self, namespace: str = "") -> AsyncIterator[PageView]:
        """Follow the stream, and connect again when it ends, as EventSource does."""
        view = PageView(namespace)

        async def follow() -> None:
            while True:
                try:
                    async for name, data in self.stream():
                        view.take(name, data)
                except aiohttp.ClientError:
                    pass
                await asyncio.sleep(0.01)

        task = asyncio.create_task(follow())
        try:
            yield view
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled() and task.exception() is not None:
                await task

    async def stream(self) -> AsyncIterator[tuple[str, Json]]:
        """Yield the events of one connection."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self.session.get(
            f"{self.url}/api/stream", timeout=timeout, read_bufsize=2**24
        ) as response:
            assert response.status == 200, await response.text()
            assert response.content_type == "text/event-stream"
            name = ""
            async for line in response.content:
                if line.startswith(b"event: "):
                    name = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    yield name, json.loads(line[6:])


@asynccontextmanager
async def browser(link: str) -> AsyncIterator[PageClient]:
    """Open a link in a new browser."""
    jar = aiohttp.CookieJar(unsafe=True)  # cookies of an IP address
    async with aiohttp.ClientSession(cookie_jar=jar) as session:
        async with session.get(link) as response:
            assert response.status in (200, 404), await response.text()
        yield PageClient(session, link)
