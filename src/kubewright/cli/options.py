"""Options that several commands share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])

FILE = click.Path(path_type=Path, dir_okay=False)


def target_argument(function: F) -> F:
    """Take TARGET."""
    return click.argument("target", metavar="TARGET")(function)


def cluster_options(function: F) -> F:
    """Take which cluster to talk to."""
    function = click.option(
        "--context", default="", help="Context of the kubeconfig; default: the current one."
    )(function)
    return click.option(
        "--kubeconfig", type=FILE, default=None, help="Kubeconfig; default: as kubectl finds it."
    )(function)
