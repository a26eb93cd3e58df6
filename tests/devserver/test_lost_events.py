"""No watch loses a change or hangs: slow readers, selectors, bookmarks and forgotten history, in any order."""

import asyncio
import json
import random
from collections.abc import Mapping
from typing import Any

import pytest

from kubewright.devserver import Server
from kubewright.http.server import Request, Response, Stream, split_target
from kubewright.testing.virtual_time import virtual_time

PODS = "/api/v1/namespaces/default/pods"
MERGE = "application/merge-patch+json"
NAMES = [f"p{number}" for number in range(6)]
SELECTORS = (
    "",
    "labelSelector=side%3Dleft",
    "labelSelector=side!%3Dleft",
    "fieldSelector=metadata.name%3Dp1",
)
STEPS = 80
SETTLED = 10_000.0


class Door:
    """Requests to a server past its sockets, so that each wait in a watch is the test's to decide."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._headers = {"authorization": f"Bearer {server.add_user('root', ['system:masters'])}"}

    async def ask(self, method: str, target: str, body: Any = None, kind: str = "application/json") -> Any:
        """Send a request and give the parsed answer; refusals are answers too."""
        answer = await self._answer(method, target, body, kind)
        assert isinstance(answer, Response)
        return json.loads(answer.body)

    async def watch(self, target: str, writer: "Reader") -> None:
        """Run a watch to its end."""
        answer = await self._answer("GET", target, None, "application/json")
        assert isinstance(answer, Stream)
        await answer.run(writer)

    async def _answer(self, method: str, target: str, body: Any, kind: str) -> Any:
        path, query = split_target(target)
        data = b"" if body is None else json.dumps(body).encode()
        headers: Mapping[str, str] = {**self._headers, "content-type": kind}
        answer = self._server.handle(Request(method, path, query, headers, data))
        return await answer if asyncio.iscoroutine(answer) else answer


class Reader:
    """A client that stores the events of a watch, and reads some of them slowly."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self.known: dict[str, str] = {}
        self.revision = ""
        self.expired = False
        self.deleted: list[str] = []

    def start(self, listed: Any) -> None:
        """Begin with a list."""
        self.known = {
            item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in listed["items"]
        }
        self.revision = listed["metadata"]["resourceVersion"]
        self.expired = False

    async def write(self, data: bytes) -> None:
        """Take a piece of the stream."""
        for line in data.splitlines():
            self._take(json.loads(line))
        if self._chance.random() < 0.3:
            await asyncio.sleep(self._chance.choice((0.0, 0.01, 1.0, 65.0)))

    def _take(self, event: Any) -> None:
        if event["type"] == "ERROR":
            assert event["object"]["code"] == 410
            self.expired = True
            return
        metadata = event["object"]["metadata"]
        assert int(metadata["resourceVersion"]) >= int(self.revision), "revisions go on rising"
        self.revision = metadata["resourceVersion"]
        if event["type"] == "DELETED":
            assert metadata["name"] in self.known, "only what was known can go"
            del self.known[metadata["name"]]
            self.deleted.append(metadata["uid"])
        elif event["type"] != "BOOKMARK":
            assert (event["type"] == "ADDED") == (metadata["name"] not in self.known)
            self.known[metadata["name"]] = metadata["resourceVersion"]


async def follow(door: Door, reader: Reader, selector: str, chance: random.Random) -> None:
    """List, watch, resume, and list again after 410 Gone, as clients do."""
    while True:
        reader.start(await door.ask("GET", f"{PODS}?{selector}"))
        while not reader.expired:
            bookmarks = chance.choice(("", "&allowWatchBookmarks=true"))
            seconds = chance.choice((30, 150, 600))
            target = f"{PODS}?watch=1&resourceVersion={reader.revision}&timeoutSeconds={seconds}{bookmarks}"
            await door.watch(f"{target}&{selector}", reader)


async def wait_for_deletion(door: Door, name: str, uid: str, chance: random.Random) -> None:
    """Wait as `kubectl delete` does: list the one object, then watch from there until it is gone."""
    selector = f"fieldSelector=metadata.name%3D{name}"
    while True:
        reader = Reader(chance)
        reader.start(await door.ask("GET", f"{PODS}?{selector}"))
        if name not in reader.known:
            return
        if (await door.ask("GET", f"{PODS}/{name}"))["metadata"].get("uid") != uid:
            return
        await door.watch(
            f"{PODS}?watch=1&resourceVersion={reader.revision}&timeoutSeconds=600&{selector}", reader
        )
        if uid in reader.deleted:
            return
        assert reader.expired, "the deletion was not reported"


def pod(name: str, chance: random.Random) -> dict[str, Any]:
    finalizers = chance.choice(([], [], ["ex.io/hold"]))
    labels = {"side": chance.choice(("left", "right"))}
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "x"}]}
    if chance.random() < 0.7:
        # On a node, so that it is deleted with grace and a kubelet says when it is gone.
        spec["nodeName"] = "n"
    return {"metadata": {"name": name, "labels": labels, "finalizers": finalizers}, "spec": spec}


async def kubelet(door: Door, name: str, uid: str, chance: random.Random) -> None:
    """Bring a deletion to its end: take the finalizers off and delete without grace, in either order."""
    await asyncio.sleep(chance.choice((0.0, 0.1, 40.0)))
    release = {"metadata": {"finalizers": None, "uid": uid}}
    options = {"gracePeriodSeconds": 0, "preconditions": {"uid": uid}}
    if chance.random() < 0.5:
        await door.ask("PATCH", f"{PODS}/{name}", release, MERGE)
        await door.ask("DELETE", f"{PODS}/{name}", options)
    else:
        await door.ask("DELETE", f"{PODS}/{name}", options)
        await door.ask("PATCH", f"{PODS}/{name}", release, MERGE)


@pytest.mark.seeds(*range(4))
def test_every_watcher_reaches_the_current_state(seed: int) -> None:
    chance = random.Random(seed)

    @virtual_time
    async def run() -> None:
        async with Server(disable_admission_plugins=["ServiceAccount"]) as server:
            door = Door(server)
            readers = [(Reader(chance), selector) for selector in SELECTORS for _ in range(3)]
            async with asyncio.TaskGroup() as group:
                following = [
                    group.create_task(follow(door, reader, selector, chance)) for reader, selector in readers
                ]
                async with asyncio.timeout(SETTLED), asyncio.TaskGroup() as deletions:
                    for _ in range(STEPS):
                        await _disturb(server, door, deletions, chance)
                # Longer than the longest pause, so that every client that would get the event has it.
                await asyncio.sleep(300)
                for reader, selector in readers:
                    listed = await door.ask("GET", f"{PODS}?{selector}")
                    found = {
                        item["metadata"]["name"]: item["metadata"]["resourceVersion"]
                        for item in listed["items"]
                    }
                    assert reader.known == found, selector
                for task in following:
                    task.cancel()

    run()


async def _disturb(server: Server, door: Door, deletions: asyncio.TaskGroup, chance: random.Random) -> None:
    """Do one thing to the objects or to the server's memory of them."""
    name = chance.choice(NAMES)
    done = chance.choices(("write", "delete", "forget", "pass"), (10, 5, 1, 3))[0]
    if done == "forget":
        server.compact()
    elif done == "pass":
        await asyncio.sleep(chance.choice((0.01, 1.0, 61.0)))
    elif done == "write":
        answer = await door.ask("POST", PODS, pod(name, chance))
        if answer["kind"] == "Status":
            labels = {"metadata": {"labels": {"side": chance.choice(("left", "right"))}}}
            await door.ask("PATCH", f"{PODS}/{name}", labels, MERGE)
    else:
        found = await door.ask("GET", f"{PODS}/{name}")
        if found["kind"] == "Pod":
            uid = found["metadata"]["uid"]
            await door.ask("DELETE", f"{PODS}/{name}", {"propagationPolicy": "Background"})
            deletions.create_task(wait_for_deletion(door, name, uid, chance))
            deletions.create_task(kubelet(door, name, uid, chance))
