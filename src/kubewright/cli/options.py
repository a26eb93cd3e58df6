"""Options that several commands share."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from kubewright.api import KubewrightError, Quantity, names

F = TypeVar("F", bound=Callable[..., Any])

# Loaded only if TARGET is omitted: in a cluster TARGET is given, and there is no project directory.
PROJECT = "kubewright.cli.project"
MIN_SIZE = 1024 * 1024
FILE = click.Path(path_type=Path, dir_okay=False)


class WrongUsage(KubewrightError):
    """The command line is invalid, for example a TARGET that does not exist: the command exits with 2."""


def target_argument(function: F) -> F:
    """Add the argument TARGET; inside a project it may be omitted."""
    return click.argument(
        "target", metavar="[TARGET]", required=False, callback=_or_of_project, shell_complete=_paths
    )(function)


def _paths(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    return [CompletionItem(incomplete, type="file")]


def _or_of_project(ctx: click.Context, parameter: click.Parameter, value: str | None) -> str:
    return target_or_project(value)


def optional_target_argument(function: F) -> F:
    """Add the argument TARGET to a command that does not always need it: see `target_or_project`."""
    return click.argument("target", metavar="[TARGET]", required=False, shell_complete=_paths)(function)


def target_or_project(value: str | None) -> str:
    """Return the given TARGET, else that of the project around the current directory; raise UsageError without one."""
    if value is not None:
        return value
    project = import_module(PROJECT).find_project()
    if project is None:
        raise click.UsageError("Missing argument 'TARGET': it may be left out only inside a project")
    return project.target


def cluster_options(function: F) -> F:
    """Add the options that select the cluster."""
    function = click.option(
        "--context",
        metavar="NAME",
        default="",
        help="Kubeconfig context to use; default: the current context.",
    )(function)
    return click.option(
        "--kubeconfig",
        type=FILE,
        default=None,
        help="Path to the kubeconfig; default: $KUBECONFIG, then ~/.kube/config, then in-cluster.",
    )(function)


def namespaces_option(help: str) -> Callable[[F], F]:  # noqa: A002 (click's word)
    """Add the option for namespaces: it is repeatable, and accepts a list with commas or an empty one, as OLM passes."""
    return click.option(
        "-n",
        "--namespace",
        "namespaces",
        metavar="NAMESPACE",
        multiple=True,
        callback=_split_namespaces,
        help=help,
    )


def _split_namespaces(ctx: click.Context, parameter: click.Parameter, value: Sequence[str]) -> Sequence[str]:
    found = tuple(name for given in value for name in given.split(",") if name)
    for name in found:
        if problems := names.dns1123_label(name):
            raise click.BadParameter(f"{name!r}: {problems[0]}")
    return found


def filenames_option(help: str, *, required: bool = False) -> Callable[[F], F]:  # noqa: A002 (click's word)
    """Add the option for files or directories with manifests, or - for standard input."""
    return click.option(
        "-f",
        "--filename",
        "files",
        type=click.Path(path_type=Path, allow_dash=True),
        multiple=True,
        required=required,
        help=help,
    )


class DryRunCommand(click.Command):
    """A command with --dry-run; as in kubectl its value is optional and follows an equals sign."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse the arguments; --dry-run alone means --dry-run=client."""
        end = args.index("--") if "--" in args else len(args)
        options = ["--dry-run=client" if word == "--dry-run" else word for word in args[:end]]
        return super().parse_args(ctx, options + args[end:])


class _DryRunOption(click.Option):
    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the name and the text for --help; click does not support options with an optional value."""
        record = super().get_help_record(ctx)
        return record and ("--dry-run[=client|server]", record[1])


def dry_run_option(client: str, server: str) -> Callable[[F], F]:
    """Add the option --dry-run, for a DryRunCommand; the texts describe what client and server do."""
    return click.option(
        "--dry-run",
        cls=_DryRunOption,
        type=click.Choice(["none", "client", "server"]),
        default="none",
        help=f"Change nothing. client (the default for --dry-run without a value): {client}. server: {server}.",
    )


def apply_dry_run_option(function: F) -> F:
    """Add the option --dry-run, for a DryRunCommand that applies objects."""
    option = dry_run_option(
        "print the objects that would be sent, without sending them",
        "send them as dry-run requests and print the differences",
    )
    return option(function)


def timeout_option(default: float, until: str) -> Callable[[F], F]:
    """Add the option --timeout with a help text."""
    return click.option(
        "--timeout",
        metavar="SECONDS",
        type=click.FloatRange(min=0.0, min_open=True),
        default=default,
        show_default=True,
        help=f"Seconds to wait until {until}.",
    )


def parse_size(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a size such as 200Mi in bytes."""
    try:
        size = int(Quantity(value))
    except ValueError:
        raise click.BadParameter(f"{value!r} is not a quantity such as 200Mi or 1Gi") from None
    if size < MIN_SIZE:
        raise click.BadParameter(f"{value} is too small: at least 1Mi")
    return size


def parse_size_or_off(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a size such as 200Mi in bytes; 0 is off."""
    return 0 if value == "0" else parse_size(ctx, parameter, value)
