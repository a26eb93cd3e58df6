"""Run one recorded reconcile on an embedded server with the objects that it read."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import AsyncExitStack, contextmanager
from typing import Any, cast
from uuid import uuid4

import msgspec

from kubewright.api import JsonObject, Kind, ObjectKey, kind_of
from kubewright.api.builtin.apiextensions_v1 import CustomResourceDefinition
from kubewright.cache import Cache
from kubewright.client import Client, config_from_kubeconfig
from kubewright.controller import Controller, Operator
from kubewright.controller.predicates import Cause, CauseType
from kubewright.controller.running import RecordedAnswers, Runner, RuntimeDependencies, Traces
from kubewright.devserver import Match, Server
from kubewright.events import EventRecorder
from kubewright.journal import Journal, ReconcileRecord, Redactor, record_of
from kubewright.metrics import Registry
from kubewright.replay.recorded import RecordedReconcile, ReplayError
from kubewright.replay.writes import differences
from kubewright.schema import crd

# No controller creates ServiceAccounts or marks nodes ready on this server.
_DISABLED = ("ServiceAccount", "TaintNodesByCondition")
_ESTABLISHED_WITHIN = 30.0


class Replayed(msgspec.Struct, frozen=True, kw_only=True):
    """A replayed reconcile."""

    record: ReconcileRecord
    """What the replay did."""
    differences: list[str]
    """How its writes, Events and outcome differ from the recorded ones, as lines of a diff.

    It begins with what the record lacks, if the reconcile read an object whose content is not in the record: without
    that object an equal result would not mean that the reconcile does the same.
    """


async def replay(
    operator: Operator, recorded: RecordedReconcile, *, before: Callable[[], None] | None = None
) -> Replayed:
    """Run a recorded reconcile again with the operator as it is now.

    Nothing is read from or written to a cluster. External systems are replaced by the results that `ctx.record`
    recorded, then by the operator's `planning=` lifespan.
    `before` is called right before the reconciler.
    """
    record = recorded.record
    controller = _controller(operator, record)
    journal = Journal()
    async with AsyncExitStack() as stack:
        if operator.planning is not None:
            await stack.enter_async_context(operator.planning())
        server = await stack.enter_async_context(Server(disable_admission_plugins=_DISABLED))
        config = await asyncio.to_thread(config_from_kubeconfig, server.kubeconfig())
        client = await stack.enter_async_context(Client(config))
        await _install(client, controller)
        server.load([*_namespaces(recorded.objects, record.namespace), *recorded.objects])
        _fail_as_recorded(server, record)
        metrics = Registry()
        cache = Cache(client, metrics=metrics, field_managers={controller.field_manager})
        runner: Runner[Any] = Runner(
            controller,
            RuntimeDependencies(
                client=Traces().observed(client),
                cache=cache,
                recorder=EventRecorder(client, controller=operator.name, host="replay", metrics=metrics),
                metrics=metrics,
                journal=journal,
                recorded_answers=RecordedAnswers(record.calls, call_others=operator.planning is not None),
            ),
        )
        group = await stack.enter_async_context(asyncio.TaskGroup())
        runner.subscribe()
        stack.callback(group.create_task(cache.run()).cancel)
        await runner.wait_synced()
        causes = [
            Cause(each.kind, ObjectKey(each.namespace, each.name), cast("CauseType", each.type))
            for each in record.causes
        ]
        with _clock_of(record):
            if before is not None:
                before()
            await runner.reconcile_once(ObjectKey(record.namespace, record.name), causes)
    kinds = [controller.kind] if isinstance(controller.kind, type) else []
    done = record_of(next(iter(journal)), Redactor(kinds))
    lacking = [f"cannot be compared: the record lacks {each}" for each in recorded.missing]
    return Replayed(record=done, differences=[*lacking, *differences(record, done)])


def _controller(operator: Operator, record: ReconcileRecord) -> Controller[Any]:
    for controller in operator.controllers:
        if controller.name == record.controller:
            recorded = any(not call.missing for call in record.calls)
            if operator.lifespan is not None and operator.planning is None and not recorded:
                raise ReplayError(
                    f"operator {operator.name!r} has a lifespan, which may access an external system: "
                    "pass Operator(..., planning=...) with a lifespan that does not change that system, "
                    "or record the calls to the system with ctx.record"
                )
            return controller
    names = ", ".join(controller.name for controller in operator.controllers)
    raise ReplayError(
        f"operator {operator.name!r} has no controller {record.controller!r}, which made the record: it has {names}"
    )


async def _install(client: Client, controller: Controller[Any]) -> None:
    """Serve all kinds that the controller declares: those with a class by its CRD, others without a schema."""
    forms: list[Any] = [
        controller.kind,
        *(child.kind for child in controller.owns),
        *(watched.kind for watched in controller.watches),
        *(need.kind for need in controller.needs),
    ]
    definitions: dict[str, JsonObject] = {}
    for form in forms:
        kind = kind_of(form)
        if not kind.builtin:
            document = crd(form) if isinstance(form, type) else _open_definition(kind)
            definitions.setdefault(document["metadata"]["name"], document)
    for document in definitions.values():
        await client.create(document, kind=kind_of(CustomResourceDefinition))
    async with asyncio.timeout(_ESTABLISHED_WITHIN):
        for name in definitions:
            while not await _is_established(client, name):  # noqa: ASYNC110 (the server's state)
                await asyncio.sleep(0.01)


async def _is_established(client: Client, name: str) -> bool:
    conditions = (await client.get(CustomResourceDefinition, name)).status.conditions
    return any(each.type == "Established" and each.status == "True" for each in conditions)


def _open_definition(kind: Kind) -> JsonObject:
    version: JsonObject = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced" if kind.namespaced else "Cluster",
            "names": {"kind": kind.kind, "plural": kind.plural},
            "versions": [version],
        },
    }


def _namespaces(objects: Iterable[JsonObject], own: str) -> list[JsonObject]:
    present = {each["metadata"]["name"] for each in objects if each.get("kind") == "Namespace"}
    used = {each["metadata"].get("namespace", "") for each in objects} | {own}
    return [
        {
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {"name": name, "uid": str(uuid4())},
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        }
        for name in sorted(used - present - {"", "default"})
    ]


def _fail_as_recorded(server: Server, record: ReconcileRecord) -> None:
    """Make the requests fail once that failed in the record, with the same status code and message."""
    for write in record.writes:
        if write.error and write.status >= 400:
            plural, _, rest = write.resource.partition("/")
            subresource, _, group = rest.partition(".")
            server.faults.add(
                match=Match(
                    verbs=("patch",) if write.verb == "apply" else (write.verb,),
                    resource=(f"{plural}.{group}" if group else plural) if rest else write.resource,
                    subresource=subresource if rest else None,
                    namespace=write.namespace,
                    name=write.name,
                ),
                fail=write.status,
                message=write.message,
                times=1,
            )


@contextmanager
def _clock_of(record: ReconcileRecord) -> Generator[None]:
    """Make `time.time`, which kubewright uses as its clock, start at the start of the recorded reconcile."""
    real = time.time
    offset = record.started_at.timestamp() - real()
    with contextlib.ExitStack() as stack:
        stack.callback(setattr, time, "time", real)
        time.time = lambda: real() + offset
        yield
