"""`kubewright manifests`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kubewright.api import ConfigError
from kubewright.cli.options import target_argument
from kubewright.cli.target import load_operator
from kubewright.generate import Names, crds, file_name, rbac, to_yaml, webhooks

PARTS = ("crds", "rbac", "webhooks")


def _parts(ctx: click.Context, parameter: click.Parameter, value: str) -> Sequence[str]:
    chosen = [part.strip() for part in value.split(",") if part.strip()]
    for part in chosen:
        if part not in PARTS:
            raise click.BadParameter(f"{part!r} is no part: choose from {', '.join(PARTS)}")
    return chosen


@click.command()
@target_argument
@click.option("--only", callback=_parts, default=",".join(PARTS), show_default=True, help="Parts to print.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Write one file per object to this directory.",
)
@click.option(
    "-n", "--namespace", "namespaces", multiple=True, help="Limit the roles to a namespace; repeatable."
)
def command(target: str, only: Sequence[str], output: Path | None, namespaces: Sequence[str]) -> None:
    """Print the CRDs, roles and webhooks of TARGET as YAML, or write them to files."""
    operator = load_operator(target)
    names = Names(operator.name)
    documents: list[dict[str, Any]] = []
    if "crds" in only:
        documents += crds(operator, names)
    if "rbac" in only:
        documents += rbac(operator, names, namespaces)
    if "webhooks" in only:
        documents += webhooks(operator, names)
    if output is None:
        click.echo(to_yaml(documents), nl=False)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for document in documents:
            (output / file_name(document)).write_text(to_yaml([document]))
    except OSError as error:
        raise ConfigError(f"cannot write to {output}: {error.strerror}") from None
