"""An apply is skipped only if the server would change nothing: decisions against a server's dry run and real apply.

Each history draws an object, what several managers do to it, and what ours desires; each decision of ours is an
example. `KUBEWRIGHT_APPLY_EXAMPLES` sets how many are tried at least (2,000 on the embedded server, 500 on another),
`KUBEWRIGHT_APPLY_SEED` draws others. A failure is printed as the smallest history that shows it, with the numbers that repeat it.

What is compared is the whole object with its managedFields, without the times of these. The resourceVersion moves with a
real change; on a real server it also moves if nothing but such a time does.
"""

import asyncio
import os
import threading
import uuid
from collections import Counter
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest
from acceptance_waits import served
from hypothesis import HealthCheck, Phase

from kubewright.api import ApiError, Conflict, JsonObject, Kind, NotFound, RawObject, parse
from kubewright.api.builtin import apiextensions_v1
from kubewright.api.kinds import kind_of
from kubewright.cache.trimming import keep_managers
from kubewright.client import Client, requests
from kubewright.controller.applying import ApplyMemory, may_change_again
from kubewright.testing import ControlPlane, embedded, isolated

from .apply_scenarios import DEFINED, OURS, History, Step, definition, histories

SEED = int(os.environ.get("KUBEWRIGHT_APPLY_SEED", "1"))
DECISIONS_PER_HISTORY = 2.5
"""At least so many on average: Hypothesis draws histories, and the test counts decisions."""


class Examples:
    """Try histories on one server, from a thread of its own."""

    def __init__(self, plane: ControlPlane | None) -> None:
        self._plane = plane
        self._started = threading.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()))
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> "Examples":
        self._thread.start()
        assert self._started.wait(150)
        return self

    def __exit__(self, *error: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join()

    def run(self, history: History) -> None:
        asyncio.run_coroutine_threadsafe(self._run(history), self._loop).result()

    async def _serve(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        if self._plane is None:
            opened = embedded(controllers=False)
        else:
            opened = isolated("real", self._plane.kubeconfig, controllers=False)
        async with opened as self._cluster:
            client = self._cluster.client
            definitions = kind_of(apiextensions_v1.CustomResourceDefinition)
            for kind in DEFINED:
                await client.apply(definition(kind), kind=definitions, field_manager="install")
            for kind in DEFINED:
                await served(client, kind, self._cluster.namespace)
            self._started.set()
            await self._stop.wait()

    async def _run(self, history: History) -> None:
        name = f"e-{uuid.uuid4().hex[:12]}"
        example = _Example(self._cluster.client, self._cluster.namespace, name, self.counts)
        try:
            for step in history.steps:
                await example.take(step)
        finally:
            await example.clean(history.subject.kinds[0])


class _Example:
    """One object and the memory of our manager."""

    def __init__(self, client: Client, namespace: str, name: str, counts: Counter[str]) -> None:
        self._client = client
        self._namespace = namespace
        self._name = name
        self._counts = counts
        self._memory = ApplyMemory(OURS)
        self._last: Step | None = None

    async def take(self, step: Step) -> None:
        if step.action == "restart":
            self._memory = ApplyMemory(OURS)
        elif step.action == "forget":
            await self._write(
                requests.patch(step.kind, self._name, self._namespace, {"metadata": {"managedFields": [{}]}})
            )
        elif step.action == "merge":
            await self._write(
                requests.patch(
                    step.kind,
                    self._name,
                    self._namespace,
                    step.document,
                    subresource=step.subresource,
                    field_manager=step.manager,
                )
            )
        elif step.action == "apply":
            await self._write(self._apply(step, manager=step.manager))
        elif step.action == "ours":
            self._last = step
            await self._decide(step)
        elif self._last is not None:
            await self._decide(self._last)

    async def clean(self, kind: Kind) -> None:
        try:
            await self._client.send(
                requests.patch(kind, self._name, self._namespace, {"metadata": {"finalizers": None}})
            )
            await self._client.raw(requests.delete(kind, self._name, self._namespace))
        except NotFound:
            pass

    async def _decide(self, step: Step) -> None:
        live = await self._read(step.kind)
        if live is None:
            if not step.subresource:
                await self._send(step, None)
            return
        kind, document, part = step.kind, self._document(step), step.subresource
        self._counts["decisions"] += 1
        reason = self._memory.reason_to_send(kind, document, _cached(live), subresource=part)
        rehearsed = await self._write(self._apply(step, dry_run=True))
        if rehearsed is None:
            assert reason is not None, f"skipped what the server refuses: {step}"
            self._counts["refused"] += 1
            return
        changes = _essence(rehearsed) != _essence(live)
        if reason is None:
            self._counts["skipped"] += 1
            assert not changes, _difference(step, live, rehearsed)
            answer = await self._write(self._apply(step))
            assert answer is not None
            assert not _has_moved(live, answer), _difference(step, live, answer)
            return
        self._counts["sent"] += 1
        answer = await self._send(step, live)
        assert answer is not None
        moved = _has_moved(live, answer)
        assert moved == changes, f"dry run and apply differ\n{_difference(step, live, answer)}"
        if not moved:
            self._counts["sent although nothing changed"] += 1
        await self._check_no_loop(step, answer)

    async def _check_no_loop(self, step: Step, answer: RawObject) -> None:
        """Check that the same is not sent again on the unchanged object, and rightly so."""
        live = await self._read(step.kind)
        assert live is not None
        assert live.meta.resource_version == answer.meta.resource_version
        reason = self._memory.reason_to_send(
            step.kind, self._document(step), _cached(live), subresource=step.subresource
        )
        assert reason is None, f"{step} would be sent again, because of {reason}"
        again = await self._write(self._apply(step))
        assert again is not None
        assert not _has_moved(live, again), _difference(step, live, again)

    async def _send(self, step: Step, live: RawObject | None) -> RawObject | None:
        """Send an apply as the writer does: again if the first one left something for the next to do."""
        document = self._document(step)
        version = None if live is None else live.meta.resource_version
        answer: RawObject | None = None
        for count in range(3):
            request = self._apply(step)
            answer = await self._write(request)
            if answer is None:
                return None
            self._counts["sent again at once"] += count > 0
            if answer.meta.resource_version == version or not may_change_again(
                request.body, answer, step.subresource
            ):
                break
            version = answer.meta.resource_version
        assert answer is not None
        self._memory.learn(step.kind, document, answer, subresource=step.subresource)
        return answer

    def _apply(self, step: Step, *, manager: str = OURS, dry_run: bool = False) -> requests.ApiRequest:
        return requests.apply(
            self._document(step),
            step.kind,
            field_manager=manager,
            subresource=step.subresource,
            dry_run=dry_run,
        )

    def _document(self, step: Step) -> JsonObject:
        name = {"name": self._name, "namespace": self._namespace}
        meta = {**step.document.get("metadata", {}), **name}
        kind = step.kind
        return {**step.document, "apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta}

    async def _read(self, kind: Kind) -> RawObject | None:
        try:
            return await self._client.send(requests.get(kind, self._name, self._namespace))
        except NotFound:
            return None

    async def _write(self, request: requests.ApiRequest) -> RawObject | None:
        """Send a write; None if the server refuses it."""
        try:
            return await self._client.send(request)
        except Conflict:
            raise
        except ApiError:
            return None


def _cached(live: RawObject) -> RawObject:
    """Return the object as the cache of an operator keeps it."""
    return keep_managers(live.copied(), frozenset({OURS}))


def _has_moved(before: RawObject, after: RawObject) -> bool:
    """Return True if the version moved for more than times.

    The server writes a new time of a managedFields entry, and the order of entries that follows from it, where the
    desired object is not literally what it keeps, such as `labels: {}`.
    """
    return before.meta.resource_version != after.meta.resource_version and _essence(before) != _essence(after)


def _essence(state: RawObject) -> JsonObject:
    """Return the object without what a dry run does not move, without times and the generation.

    The generation moves with the spec, which is compared; beyond that the server moves it on each apply of an
    embedded object with `labels: {}`, which it does not keep.
    """
    wire: JsonObject = parse(state.raw)
    meta = {
        key: value for key, value in wire["metadata"].items() if key not in ("resourceVersion", "generation")
    }
    entries: list[JsonObject] = [
        {key: value for key, value in entry.items() if key != "time"}
        for entry in meta.pop("managedFields", ())
    ]
    return {**wire, "metadata": meta, "managers": sorted(entries, key=repr)}


def _difference(step: Step, live: RawObject, after: RawObject) -> str:
    return f"{step.action} {step.kind.api_version} {step.kind.kind} {step.document} changes the object\nfrom {_essence(live)}\n  to {_essence(after)}"


@pytest.fixture(scope="module")
def examples(bare_plane: ControlPlane | None, known_types: Any) -> Iterator[Examples]:
    with Examples(bare_plane) as running:
        yield running


def test_an_apply_is_skipped_only_if_the_server_would_change_nothing(
    examples: Examples, server_name: str, record_property: Any
) -> None:
    count = int(os.environ.get("KUBEWRIGHT_APPLY_EXAMPLES") or (2000 if server_name == "embedded" else 500))
    settings = hypothesis.settings(
        max_examples=int(count / DECISIONS_PER_HISTORY),
        deadline=None,
        database=None,
        suppress_health_check=list(HealthCheck),
        phases=(Phase.explicit, Phase.generate, Phase.shrink),
    )

    @hypothesis.seed(SEED)
    @settings
    @hypothesis.given(histories())
    def holds(history: History) -> None:
        examples.run(history)

    try:
        holds()
    except BaseException as error:
        error.add_note(
            f"repeat with KUBEWRIGHT_APPLY_SEED={SEED} KUBEWRIGHT_APPLY_EXAMPLES={count} scripts/test {__file__}"
        )
        raise
    for name, number in examples.counts.items():
        record_property(name, number)
    print(dict(examples.counts))
    assert examples.counts["decisions"] >= count
