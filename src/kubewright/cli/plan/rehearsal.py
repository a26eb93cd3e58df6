"""Run an operator on a copy of a cluster's state, inside this process: nothing is written to the cluster.

The operator's functions really run. Their calls to external systems are replaced only by `planning=` of the operator.
"""

import asyncio
import copy
import logging
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from uuid import uuid4

from kubewright.api import ApiError, Forbidden, JsonObject, Kind, KubewrightError, NotFound, kind_of
from kubewright.api.builtin import core_v1
from kubewright.cli.definitions import install_one, live_definition
from kubewright.cli.logs import fields_of
from kubewright.cli.plan.changes import ClusterState, state_of
from kubewright.cli.progress import Progress
from kubewright.client import ApiRequest, Client, config_from_kubeconfig
from kubewright.controller import Operator, rules_for
from kubewright.devserver import Server
from kubewright.generate import crds
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.tracebacks import place_of

QUIET = 0.3
"""Seconds without work after which an operator counts as settled; watch events arrive within milliseconds here."""
_POLL = 0.02
_OFF = "0"
_ANY_PORT = "127.0.0.1:0"
_NAMESPACES = kind_of(core_v1.Namespace)
# No controller creates ServiceAccounts or marks nodes ready in the copy.
_DISABLED = ("ServiceAccount", "TaintNodesByCondition")


class RehearsalError(KubewrightError):
    """An operator cannot run on a copy of the cluster's state."""


def kinds_of(operator: Operator) -> list[Kind]:
    """Return the kinds that an operator reads or writes, its own first."""
    found: dict[tuple[str, str], Kind] = {}
    for controller in operator.controllers:
        own = [kind_of(controller.kind)]
        others = [kind_of(item.kind) for item in (*controller.owns, *controller.watches)]
        for kind in (*own, *others, *(need.kind for need in controller.needs)):
            found.setdefault((kind.group, kind.plural), kind)
    return list(found.values())


class Copy:
    """A copy of a cluster's state: the definitions of its kinds, and their objects."""

    def __init__(
        self, kinds: Sequence[Kind], definitions: Sequence[JsonObject], objects: Sequence[JsonObject]
    ) -> None:
        self.kinds = kinds
        self.definitions = definitions
        self.objects = objects


async def copy_state(
    client: Client, operator: Operator, further: Iterable[Kind], namespaces: Sequence[str]
) -> Copy:
    """Read the objects of the operator's kinds and of `further` kinds, in these namespaces or in all.

    Raise Forbidden if the user may not read a kind that the operator reads: the plan would treat its objects as missing.
    """
    seen = _read_kinds(operator)
    kinds = {(kind.group, kind.plural): kind for kind in (*kinds_of(operator), *further)}
    definitions = {item["metadata"]["name"]: item for item in crds(operator)}
    objects = await _namespaces(client, namespaces)
    for kind in kinds.values():
        name = f"{kind.plural}.{kind.group}"
        if not kind.builtin and name not in definitions and (live := await live_definition(client, name)):
            definitions[name] = _plain_definition(live)
        if kind != _NAMESPACES:
            objects += await _read(client, kind, namespaces, strict=(kind.group, kind.plural) in seen)
    return Copy(list(kinds.values()), list(definitions.values()), objects)


def _read_kinds(operator: Operator) -> set[tuple[str, str]]:
    return {
        (rule.api_groups[0], resource)
        for rule in rules_for(operator)
        for resource in rule.resources
        if {"get", "list", "watch"} & set(rule.verbs)
    }


async def _namespaces(client: Client, chosen: Sequence[str]) -> list[JsonObject]:
    """Read the namespaces; without permission to list them, assume that the chosen ones exist."""
    try:
        return await _read(client, _NAMESPACES, ())
    except Forbidden:
        if not chosen:
            raise
    named = [{"name": name, "uid": str(uuid4())} for name in chosen]
    form: JsonObject = {"apiVersion": "v1", "kind": "Namespace", "spec": {"finalizers": ["kubernetes"]}}
    return [{**form, "metadata": metadata, "status": {"phase": "Active"}} for metadata in named]


async def _read(
    client: Client, kind: Kind, namespaces: Sequence[str], *, strict: bool = True
) -> list[JsonObject]:
    objects: list[JsonObject] = []
    places = namespaces if namespaces and kind.namespaced else ("",)
    for namespace in places:
        try:
            objects += await client.list(kind, namespace=namespace)
        except NotFound:
            continue  # a kind that the cluster does not serve yet has no objects
        except Forbidden:
            if strict:
                raise
    return [{"apiVersion": kind.api_version, "kind": kind.kind, **item} for item in objects]


def _plain_definition(live: JsonObject) -> JsonObject:
    spec = {name: value for name, value in live["spec"].items() if name != "conversion"}
    metadata = {"name": live["metadata"]["name"]}
    return {"apiVersion": live["apiVersion"], "kind": live["kind"], "metadata": metadata, "spec": spec}


class Rehearsal:
    """An operator that runs on a copy of the cluster's state."""

    def __init__(self, client: Client, manager: Manager, kinds: Sequence[Kind]) -> None:
        self.client = client
        self.failures: dict[str, None] = {}
        """Errors of reconciles, without duplicates."""
        self._manager = manager
        self._kinds = kinds

    async def state(self) -> ClusterState:
        """Read the copy as it is now."""
        objects: list[JsonObject] = []
        for kind in self._kinds:
            objects += await _read(self.client, kind, ())
        return state_of(objects)

    async def settle(self, writes: "Writes", timeout: float) -> None:
        """Wait until the operator has nothing to do now; reconciles that are scheduled for later are ignored."""
        loop = asyncio.get_running_loop()
        since, seen = loop.time(), (-1, False)
        try:
            async with asyncio.timeout(timeout):
                while loop.time() - since < QUIET:
                    await asyncio.sleep(_POLL)
                    queues = [item.queue for item in self._manager.statistics().controllers]
                    busy = any(queue.ready or queue.in_flight for queue in queues)
                    now = (writes.count, busy)
                    if busy or now != seen:
                        since, seen = loop.time(), now
        except TimeoutError:
            raise RehearsalError(
                f"the operator did not settle within {timeout:.0f} s: check that reconcile does not write a new value each time, or raise --timeout"
            ) from None


class Writes:
    """Count the operator's writes: pass `observe` as the observer of its configuration."""

    def __init__(self) -> None:
        self.count: int = 0

    def observe(self, request: ApiRequest, code: int, refusal: ApiError | None) -> None:
        """Count a request if it is a successful write."""
        if request.method != "GET" and refusal is None:
            self.count += 1


@asynccontextmanager
async def rehearsing(
    operator: Operator, copied: Copy, writes: Writes, namespaces: Sequence[str]
) -> AsyncGenerator[Rehearsal, None]:
    """Run an operator on a copy while the context is open, with its lifespan for planning."""
    stand_in = copy.copy(operator)
    stand_in.lifespan = operator.planning
    stand_in.shards = None
    options = ManagerOptions(
        journal_limit=0,
        namespaces=namespaces,
        metrics_bind_address=_OFF,
        health_probe_bind_address=_OFF,
        webhooks=WebhookOptions(bind_address=_ANY_PORT, ephemeral_cluster=True),
        graceful_timeout=1.0,
        watchdog=False,
        disruption_limits=False,
        run_sync_observer=_ThreadWarnings() if operator.planning is None else None,
    )
    async with Server(disable_admission_plugins=_DISABLED) as server:
        config = await asyncio.to_thread(config_from_kubeconfig, server.kubeconfig())
        async with Client(config) as client:
            for definition in copied.definitions:
                await install_one(client, definition, _Silent())
            server.load(copied.objects)
            manager = Manager(stand_in, replace(config, observer=writes.observe), options)
            rehearsal = Rehearsal(client, manager, copied.kinds)
            with _recorded_failures(rehearsal.failures):
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(manager.run())
                    ready = group.create_task(manager.ready.wait())
                    await asyncio.wait({ready, work}, return_when=asyncio.FIRST_COMPLETED)
                    ready.cancel()
                    yield rehearsal
                    work.cancel()


class _ThreadWarnings:
    """Warn once about each function that runs in a thread: it probably calls an external system."""

    def __init__(self) -> None:
        self._seen: set[tuple[str, str]] = set()

    def __call__(self, controller: str, function: str) -> None:
        if (controller, function) not in self._seen:
            self._seen.add((controller, function))
            Progress().note(
                f"warning: controller {controller!r} calls {function} with ctx.run_sync: "
                "without Operator(..., planning=...), plan carries out calls to other systems"
            )


class _Silent(Progress):
    def done(self, text: str) -> None:
        """Print nothing: installing CRDs in the copy is an internal step."""

    def note(self, text: str) -> None:
        """Print nothing."""


class _Failures(logging.Handler):
    def __init__(self, failures: dict[str, None]) -> None:
        super().__init__(logging.WARNING)
        self._failures = failures

    def emit(self, record: logging.LogRecord) -> None:
        """Record the error once, however often it is repeated."""
        fields = fields_of(record)
        if text := fields.get("error"):
            # A failed reconcile: the message counts its failures, so it differs each time.
            self._failures[f"{fields['at']}: {text}" if "at" in fields else str(text)] = None
        elif record.levelno >= logging.ERROR:
            cause = record.exc_info[1] if record.exc_info else None
            place = place_of(cause) if cause else ""
            self._failures[f"{place}: {type(cause).__name__}: {cause}" if place else record.getMessage()] = (
                None
            )


class _recorded_failures:  # noqa: N801 (reads as a word in `with`)
    """Record errors that the operator's controllers log instead of printing them."""

    def __init__(self, failures: dict[str, None]) -> None:
        self._handler = _Failures(failures)
        self._logger = logging.getLogger("kubewright")

    def __enter__(self) -> None:
        self._logger.addHandler(self._handler)
        self._propagated, self._logger.propagate = self._logger.propagate, False

    def __exit__(self, *failure: object) -> None:
        self._logger.removeHandler(self._handler)
        self._logger.propagate = self._propagated
