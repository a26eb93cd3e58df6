"""Options that several commands share."""

from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from kubewright.api.scoping import NamespaceSelector
from kubewright.cli.values import checked_selector, namespace_selector, size_in_bytes, split_namespaces

F = TypeVar("F", bound=Callable[..., Any])

# Loaded only if TARGET is omitted: in a cluster TARGET is given, and there is no project directory.
PROJECT = "kubewright.cli.project"
# Loaded only if a Kubernetes version is given: importing the embedded server takes longer than most commands.
RELEASES = "kubewright.devserver.data"
FILE = click.Path(path_type=Path, dir_okay=False)


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


def policies_option(function: F) -> F:
    """Add --policies."""
    return click.option(
        "--policies",
        is_flag=True,
        help="Replace admission webhooks by policies where their functions can be expressed in CEL; "
        "MutatingAdmissionPolicy needs Kubernetes 1.36.",
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
    try:
        return tuple(name for given in value for name in split_namespaces(given))
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def namespace_selector_option(help: str) -> Callable[[F], F]:  # noqa: A002 (click's word)
    """Add the option for namespaces by label; its value is None if it is not given or empty."""
    return click.option(
        "--namespace-selector", metavar="LABELS", default="", callback=_parse_namespace_selector, help=help
    )


def _parse_namespace_selector(
    ctx: click.Context, parameter: click.Parameter, value: str
) -> NamespaceSelector | None:
    try:
        return namespace_selector(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def selector_option(help: str) -> Callable[[F], F]:  # noqa: A002 (click's word)
    """Add the option for the objects that are reconciled, by label."""
    return click.option("--selector", metavar="LABELS", default="", callback=_parse_selector, help=help)


def _parse_selector(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    try:
        return checked_selector(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


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


def journal_options(function: F) -> F:
    """Add the options that select deployed operators, and the account whose token reads their journals."""
    function = click.option(
        "--service-account",
        metavar="[NAMESPACE/]NAME",
        default="",
        help="Read the journal of a deployed operator with a short-lived token of this account; default: the operator's.",
    )(function)
    return click.option(
        "--operator-namespace",
        metavar="NAMESPACE",
        default="",
        help="Look for a deployed operator only in this namespace; default: in all.",
    )(function)


def kubernetes_option(function: F) -> F:
    """Add the option for the Kubernetes version of the embedded server, as a release or an empty text."""
    return click.option(
        "--kubernetes",
        metavar="VERSION",
        default="",
        callback=_known_release,
        help="Kubernetes version to serve, such as 1.33; by default the newest.",
    )(function)


def _known_release(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if not value:
        return ""
    releases = import_module(RELEASES)
    try:
        return releases.KubernetesRelease.find(value).version
    except releases.UnknownReleaseError as error:
        raise click.UsageError(f"--kubernetes: {error}") from None


def ui_options(function: F) -> F:
    """Add the options for the live page of a command that runs something else as well."""
    function = click.option(
        "--ui-port",
        metavar="PORT",
        type=click.IntRange(0, 65535),
        default=0,
        help="Port of the live page on 127.0.0.1; 0 selects a free port.",
    )(function)
    return click.option(
        "--ui",
        is_flag=True,
        help="Show objects and reconciles on a live page in the browser; see `kubewright ui`.",
    )(function)


def page_port(ui: bool, port: int) -> int | None:
    """Return the port for the live page, or None without `--ui`; raise UsageError for a port of no page."""
    if port and not ui:
        raise click.UsageError("--ui-port requires --ui")
    return port if ui else None


def parse_size(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a size such as 200Mi in bytes."""
    try:
        return size_in_bytes(value)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def parse_size_or_off(ctx: click.Context, parameter: click.Parameter, value: str) -> int:
    """Return a size such as 200Mi in bytes; 0 is off."""
    return 0 if value == "0" else parse_size(ctx, parameter, value)
