"""`kubewright delete`, for a machine without kubectl."""

import asyncio
from pathlib import Path

import click

from kubewright.api import GroupVersionKind, Kind, KubewrightError, NotFound
from kubewright.cli.documents import find_resource, read_documents, requested_objects
from kubewright.cli.loops import run_program
from kubewright.cli.objects.refusals import Refusals
from kubewright.cli.options import DryRunCommand, cluster_options, dry_run_option, filenames_option
from kubewright.cli.progress import Progress
from kubewright.client import Client, load_config

GONE_WITHIN = 120.0
_POLL = 0.1
DeletionTarget = tuple[Kind, str, str]


class StillThere(KubewrightError):
    """An object was not deleted in time."""


@click.command(cls=DryRunCommand)
@click.argument("words", metavar="[KIND NAME... | KIND/NAME...]", nargs=-1)
@filenames_option(
    "File or directory with the manifests of the objects to delete, or - for standard input; repeatable."
)
@click.option("-n", "--namespace", metavar="NAMESPACE", default="", help="Namespace; default: the context's.")
@click.option("--ignore-not-found", is_flag=True, help="Treat objects that do not exist as deleted.")
@click.option(
    "--wait/--no-wait", "waiting", default=True, show_default=True, help="Wait until the objects are deleted."
)
@dry_run_option(
    "print the objects that would be deleted, without sending the requests", "send them as dry-run requests"
)
@cluster_options
def command(
    words: tuple[str, ...],
    files: tuple[Path, ...],
    namespace: str,
    ignore_not_found: bool,
    waiting: bool,
    dry_run: str,
    kubeconfig: Path | None,
    context: str,
) -> int:
    """Delete objects by name or from files.

    If an object does not exist or the server rejects the request, the error is printed, the other objects are still
    deleted, and the command exits with 1.
    """
    requested = requested_objects(words) if words else []
    if bool(files) == bool(requested) or not all(item.names for item in requested):
        raise click.UsageError("specify objects as KIND NAME... or KIND/NAME..., or files with -f")
    documents = read_documents(files)
    config = load_config(kubeconfig, context or None)
    place = namespace or config.namespace

    async def work() -> int:
        refusals = Refusals()
        async with Client(config) as client:
            targets: list[DeletionTarget] = []
            for item in requested:
                kind = (await find_resource(client, item.resource)).kind
                targets += [(kind, name, place if kind.namespaced else "") for name in item.names]
            for document in reversed(documents):
                with refusals.reported():
                    gvk = GroupVersionKind.parse(document["apiVersion"], document["kind"])
                    kind = await client.resolve(gvk)
                    where = document["metadata"].get("namespace", place) if kind.namespaced else ""
                    targets.append((kind, document["metadata"]["name"], where))
            for target in targets:
                with refusals.reported(StillThere):
                    if dry_run == "none":
                        await _delete(client, target, ignore_not_found=ignore_not_found, waiting=waiting)
                    else:
                        await _dry_run(client, target, dry_run, ignore_not_found=ignore_not_found)
        return refusals.exit_code

    return run_program(work)


async def _delete(client: Client, target: DeletionTarget, *, ignore_not_found: bool, waiting: bool) -> None:
    kind, name, namespace = target
    try:
        uid = (await client.get(kind, name, namespace))["metadata"]["uid"]
        await client.delete(kind, name, namespace, propagation="Background")
    except NotFound:
        if not ignore_not_found:
            raise
        return
    called = _called(target)
    if waiting:
        await _wait_gone(client, target, uid, called)
    click.echo(f"{called} deleted")


async def _dry_run(client: Client, target: DeletionTarget, strategy: str, *, ignore_not_found: bool) -> None:
    kind, name, namespace = target
    if strategy == "client":
        click.echo(f"{_called(target)} deleted (dry run)")
        return
    try:
        await client.delete(kind, name, namespace, propagation="Background", dry_run=True)
    except NotFound:
        if not ignore_not_found:
            raise
        return
    click.echo(f"{_called(target)} deleted (server dry run)")


def _called(target: DeletionTarget) -> str:
    kind, name, _ = target
    return f"{kind.singular}{f'.{kind.group}' if kind.group else ''}/{name}"


async def _wait_gone(client: Client, target: DeletionTarget, uid: str, called: str) -> None:
    holders: list[str] = []
    try:
        with Progress().waiting(f"waiting until {called} is deleted") as update:
            async with asyncio.timeout(GONE_WITHIN):
                while True:
                    metadata = (await client.get(*target))["metadata"]
                    if metadata["uid"] != uid:
                        return
                    holders = metadata.get("finalizers") or []
                    update(f"waiting until {called} is deleted: {', '.join(holders)}".rstrip(": "))
                    await asyncio.sleep(_POLL)
    except NotFound:
        return
    except TimeoutError:
        why = (
            f": it has finalizers ({', '.join(holders)}); check that their controller is running"
            if holders
            else ""
        )
        raise StillThere(f"{called} was not deleted within {GONE_WITHIN:.0f} s{why}") from None
