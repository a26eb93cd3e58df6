"""`kubewright manifests`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from kubewright.api import ConfigError
from kubewright.cli.options import target_argument
from kubewright.cli.target import load_operator
from kubewright.controller import Operator
from kubewright.generate import Names, crds, deployment, file_name, rbac, to_yaml, webhooks

PARTS = ("crds", "rbac", "webhooks", "deployment")
DEFAULT_IMAGE = "controller:latest"


def _parts(ctx: click.Context, parameter: click.Parameter, value: str) -> Sequence[str]:
    chosen = [part.strip() for part in value.split(",") if part.strip()]
    for part in chosen:
        if part not in PARTS:
            raise click.BadParameter(f"{part!r} is no part: choose from {', '.join(PARTS)}")
    return chosen


def render(
    operator: Operator,
    parts: Sequence[str] = PARTS,
    *,
    namespaces: Sequence[str] = (),
    image: str = DEFAULT_IMAGE,
) -> list[dict[str, Any]]:
    """Render the chosen parts in the order in which a cluster must be given them."""
    names = Names(operator.name)
    rendered = {
        "crds": lambda: crds(operator, names),
        "rbac": lambda: rbac(operator, names, namespaces),
        "webhooks": lambda: webhooks(operator, names),
        "deployment": lambda: deployment(operator, names, image=image),
    }
    return [document for part in PARTS if part in parts for document in rendered[part]()]


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
@click.option("--image", default=DEFAULT_IMAGE, show_default=True, help="Image of the operator.")
def command(
    target: str, only: Sequence[str], output: Path | None, namespaces: Sequence[str], image: str
) -> None:
    """Print what TARGET needs in a cluster as YAML, or write it to files."""
    documents = render(load_operator(target), only, namespaces=namespaces, image=image)
    if output is None:
        click.echo(to_yaml(documents), nl=False)
        return
    try:
        output.mkdir(parents=True, exist_ok=True)
        for document in documents:
            (output / file_name(document)).write_text(to_yaml([document]))
    except OSError as error:
        raise ConfigError(f"cannot write to {output}: {error.strerror}") from None
