"""`kubewright create types`: classes of other projects' kinds, from their CRDs."""

import os
from collections.abc import Mapping
from pathlib import Path

import click

from kubewright.api import (
    CUSTOM_RESOURCE_DEFINITION,
    ConfigError,
    JsonObject,
    KubewrightError,
    NotFound,
)
from kubewright.cli.documents import read_documents
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options
from kubewright.cli.project.settings import find_project
from kubewright.cli.project.trees import write_tree
from kubewright.client import Client, load_config
from kubewright.scaffold.external import (
    MARKER,
    class_differences,
    external_modules,
    kinds_in,
    read_definitions,
)

_PACKAGE = "__init__.py"


class StaleTypes(KubewrightError):
    """Generated classes do not match their CRDs."""


@click.command()
@click.argument("names", metavar="[CRD]...", nargs=-1)
@click.option(
    "-f",
    "--filename",
    "files",
    type=click.Path(path_type=Path, allow_dash=True),
    multiple=True,
    help="File or directory with CRDs, or - for standard input; repeatable.",
)
@click.option(
    "--output-dir",
    "output",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Package to write the modules to; default: the package `types` of the project.",
)
@click.option("--check", is_flag=True, help="Do not write files; fail if they do not match the CRDs.")
@cluster_options
def types(
    names: tuple[str, ...],
    files: tuple[Path, ...],
    output: Path | None,
    check: bool,
    kubeconfig: Path | None,
    context: str,
) -> None:
    """Write typed classes of other projects' kinds, from their CRDs.

    The CRDs are read from files, or from the cluster by name, such as certificates.cert-manager.io. Each group and
    version becomes a module. The classes have external=True: the operator can watch, own and read these kinds,
    but never installs their CRDs.
    """
    if not files and not names:
        raise click.UsageError("specify CRDs: -f FILE, or their names in the cluster")
    folder = output or _default_folder()
    documents = read_documents(files)
    if names:
        config = load_config(kubeconfig, context or None)

        async def read() -> list[JsonObject]:
            async with Client(config) as client:
                return [await _definition(client, name) for name in names]

        documents += run_program(read)
    definitions = read_definitions(documents)
    for reason in definitions.skipped:
        click.echo(f"skipped {reason}", err=True)
    if not definitions.versions:
        raise ConfigError(f"no CRDs with served versions found in {', '.join(map(str, [*files, *names]))}")
    tree = _own_files(folder, external_modules(definitions.versions))
    if check:
        _check(folder, tree)
        return
    _refuse_lost_kinds(folder, tree)
    write_tree(folder, tree)
    click.echo(f"wrote {folder}: {', '.join(name for name in tree if name != _PACKAGE)}")


def _default_folder() -> Path:
    project = find_project()
    if project is None:
        raise click.UsageError("--output-dir is required outside a project")
    return Path(os.path.relpath(project.root / project.module / "types"))


async def _definition(client: Client, name: str) -> JsonObject:
    try:
        return await client.get(CUSTOM_RESOURCE_DEFINITION, name)
    except NotFound:
        raise ConfigError(
            f"CustomResourceDefinition {name} not found in the cluster: "
            "`kubewright get crds` lists the names, such as certificates.cert-manager.io"
        ) from None


def _own_files(folder: Path, tree: Mapping[str, str]) -> dict[str, str]:
    """Return the files to write; raise ConfigError if a module would replace one written by hand."""
    kept: dict[str, str] = {}
    for name, text in tree.items():
        path = folder / name
        if not path.exists() or _read(path).startswith(MARKER):
            kept[name] = text
        elif name != _PACKAGE:
            raise ConfigError(
                f"{path} was not written by kubewright, so it is not overwritten: "
                "move it, or choose another --output-dir"
            )
    return kept


def _refuse_lost_kinds(folder: Path, tree: Mapping[str, str]) -> None:
    for name, text in tree.items():
        path = folder / name
        lost = sorted(kinds_in(_read(path)) - kinds_in(text)) if path.exists() else []
        if lost:
            raise ConfigError(
                f"{path} also contains {', '.join(lost)}, missing from the given CRDs: "
                "pass all CRDs of the group at once, or delete the file first; nothing was written"
            )


def _check(folder: Path, tree: Mapping[str, str]) -> None:
    found: list[str] = []
    for name, text in tree.items():
        path = folder / name
        if not path.exists():
            found.append(f"missing: {path}")
        elif (before := _read(path)) != text:
            found.append(f"stale: {path}: {class_differences(before, text) or 'changed: its first lines'}")
    for line in found:
        click.echo(line)
    if found:
        raise StaleTypes(f"{folder} does not match the CRDs: run the same command without --check")


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return ""
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
