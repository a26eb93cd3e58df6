"""`kubewright pause`, `resume` and `reconcile`: the annotations that operators written with kubewright follow."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import click

from kubewright.api import (
    PAUSED,
    JsonObject,
    Kind,
    SelectorError,
    control_patch,
    parse_labels,
    utc_now,
)
from kubewright.api.control_annotations import ControlAction
from kubewright.cli.documents import Requested, find_resource, requested_objects
from kubewright.cli.loops import run_program
from kubewright.cli.objects.refusals import Refusals
from kubewright.cli.options import DryRunCommand, cluster_options, dry_run_option
from kubewright.client import Client, load_config

FIELD_MANAGER = "kubewright-cli"
_DONE: dict[ControlAction, str] = {
    "pause": "paused",
    "resume": "resumed",
    "reconcile": "reconcile requested",
}
_DRY_RUNS = {"none": "", "client": " (dry run)", "server": " (server dry run)"}


class _Target(NamedTuple):
    kind: Kind
    name: str
    namespace: str

    def __str__(self) -> str:
        return f"{self.kind.singular}{f'.{self.kind.group}' if self.kind.group else ''}/{self.name}"


class _Choice(NamedTuple):
    """The selected objects and their namespace; an empty namespace means all namespaces."""

    requested: list[Requested]
    namespace: str
    selector: str


def _control_command(action: ControlAction, text: str) -> click.Command:
    """Return the command that sets the annotation of one action."""

    def run(
        words: tuple[str, ...],
        namespace: str,
        all_namespaces: bool,
        selector: str,
        everything: bool,
        dry_run: str,
        kubeconfig: Path | None,
        context: str,
    ) -> int:
        requested = requested_objects(words)
        _check_usage(requested, selector=selector, everything=everything, all_namespaces=all_namespaces)
        config = load_config(kubeconfig, context or None)
        place = "" if all_namespaces else namespace or config.namespace

        async def work() -> int:
            async with Client(config) as client:
                return await _control(client, action, _Choice(requested, place, selector), dry_run)

        return run_program(work)

    options: list[Callable[[Any], Any]] = [
        click.argument("words", metavar="KIND NAME... | KIND/NAME...", nargs=-1, required=True),
        click.option(
            "-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace; default: the context's."
        ),
        click.option(
            "-A", "--all-namespaces", is_flag=True, help="With --selector or --all: in all namespaces."
        ),
        click.option(
            "-l", "--selector", metavar="LABELS", default="", help="Label selector, for example app=web."
        ),
        click.option("--all", "everything", is_flag=True, help="All objects of the KIND in the namespace."),
        dry_run_option(
            "print what would be done, without sending the requests", "send them as dry-run requests"
        ),
        cluster_options,
    ]
    function: Any = run
    for option in reversed(options):
        function = option(function)
    return click.command(name=action, cls=DryRunCommand, help=text)(function)


pause: click.Command = _control_command(
    "pause",
    """Pause the reconciles of objects.

    The annotation kubewright.dev/paused is set to "true". Operators written with kubewright do not reconcile the object
    until it is resumed; if it is deleted, its finalizers still run.
    """,
)
resume: click.Command = _control_command(
    "resume",
    """Resume the reconciles of paused objects.

    The annotation kubewright.dev/paused is removed, and the object is reconciled.
    """,
)
reconcile: click.Command = _control_command(
    "reconcile",
    """Reconcile objects now.

    The annotation kubewright.dev/reconcile-at is set to the current time. Operators written with kubewright then
    reconcile the object, also if nothing else of it has changed.
    """,
)


def _check_usage(
    requested: list[Requested], *, selector: str, everything: bool, all_namespaces: bool
) -> None:
    named = [bool(item.names) for item in requested]
    if any(named) and (selector or everything or all_namespaces):
        raise click.UsageError("names cannot be combined with --selector, --all or --all-namespaces")
    if not any(named) and not selector and not everything:
        raise click.UsageError("specify objects as KIND NAME... or KIND/NAME..., or use --selector or --all")
    try:
        parse_labels(selector)
    except SelectorError as error:
        raise click.UsageError(f"--selector {selector!r}: {error}") from None


async def _control(client: Client, action: ControlAction, choice: _Choice, dry_run: str) -> int:
    refusals = Refusals()
    targets: list[_Target] = []
    for item in choice.requested:
        kind = (await find_resource(client, item.resource)).kind
        place = choice.namespace if kind.namespaced else ""
        if item.names:
            targets += [_Target(kind, name, place) for name in item.names]
            continue
        with refusals.reported():
            found = await client.list(kind, namespace=place, labels=choice.selector)
            metas: list[JsonObject] = [each["metadata"] for each in found]
            targets += [_Target(kind, meta["name"], meta.get("namespace", "")) for meta in metas]
            if not metas:
                where = f" in namespace {place}" if place else ""
                click.echo(f"No resources found{where}", err=True)
    for target in targets:
        with refusals.reported():
            if dry_run != "client":
                answered = await client.patch(
                    target.kind,
                    control_patch(action, utc_now()),
                    name=target.name,
                    namespace=target.namespace,
                    field_manager=FIELD_MANAGER,
                    dry_run=dry_run == "server",
                )
                _warn(action, target, answered["metadata"])
            click.echo(f"{target} {_DONE[action]}{_DRY_RUNS[dry_run]}")
    return refusals.exit_code


def _warn(action: ControlAction, target: _Target, metadata: JsonObject) -> None:
    """Print why the action has no effect on this object yet."""
    annotations: JsonObject = metadata.get("annotations") or {}
    if action == "reconcile" and annotations.get(PAUSED) == "true":
        click.echo(f"Warning: {target} is paused: it is reconciled when it is resumed", err=True)
    if action == "pause" and metadata.get("deletionTimestamp"):
        click.echo(f"Warning: {target} is being deleted: its finalizers still run", err=True)
