"""The table of commands, and exit codes for errors."""

import sys
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, NamedTuple

import click
from click.shell_completion import CompletionItem

from kubewright.cli.entry import load_module
from kubewright.cli.exits import FAILED, WRONG_USAGE, error_line, exit_code_of


class CommandEntry(NamedTuple):
    """A command's module, its line in the help, and its name in the module."""

    module: str
    summary: str
    attribute: str = "command"


COMMANDS: Mapping[str, CommandEntry] = {
    "dev": CommandEntry("kubewright.cli.dev", "Run an embedded cluster in the foreground."),
    "envtest": CommandEntry(
        "kubewright.cli.envtest", "Run tests in any language on the embedded API server."
    ),
    "run": CommandEntry("kubewright.cli.run.command", "Run an operator."),
    "install": CommandEntry(
        "kubewright.cli.definitions.install", "Install an operator's CRDs in the cluster."
    ),
    "uninstall": CommandEntry(
        "kubewright.cli.definitions.uninstall", "Delete an operator's CRDs from the cluster."
    ),
    "migrate": CommandEntry("kubewright.cli.migrate.command", "Store objects in their storage version."),
    "manifests": CommandEntry("kubewright.cli.packages.manifests", "Print an operator's manifests as YAML."),
    "deploy": CommandEntry(
        "kubewright.cli.deployment.deploy",
        "Deploy an operator and wait until it is available.",
    ),
    "undeploy": CommandEntry(
        "kubewright.cli.deployment.undeploy", "Delete an operator's deployment from the cluster."
    ),
    "get": CommandEntry("kubewright.cli.objects.get", "Display one or many objects."),
    "apply": CommandEntry("kubewright.cli.objects.apply", "Apply manifests with server-side apply."),
    "delete": CommandEntry("kubewright.cli.objects.delete", "Delete objects by name or from files."),
    "pause": CommandEntry("kubewright.cli.objects.control", "Pause the reconciles of objects.", "pause"),
    "resume": CommandEntry(
        "kubewright.cli.objects.control", "Resume the reconciles of paused objects.", "resume"
    ),
    "reconcile": CommandEntry("kubewright.cli.objects.control", "Reconcile objects now.", "reconcile"),
    "plan": CommandEntry(
        "kubewright.cli.plan.command", "Show what an operator would create, change and delete."
    ),
    "why": CommandEntry("kubewright.cli.why.command", "Explain the state of an object and its reconciles."),
    "ui": CommandEntry("kubewright.cli.ui", "Show a cluster and its operators in the browser."),
    "replay": CommandEntry("kubewright.cli.replay.command", "Run a recorded reconcile again."),
    "prove": CommandEntry(
        "kubewright.cli.prove.command", "Run an operator with crashes and faults, and check its properties."
    ),
    "rbac": CommandEntry("kubewright.cli.rbac.command", "Verify an operator's RBAC rules with its tests."),
    "doctor": CommandEntry(
        "kubewright.cli.doctor.command", "Check the cluster and the operator's setup, and suggest fixes."
    ),
    "init": CommandEntry("kubewright.cli.project.init", "Create a new project."),
    "create": CommandEntry("kubewright.cli.project.create", "Add a kind, a webhook or types to the project."),
    "build": CommandEntry("kubewright.cli.packages.build", "Build the project's container image."),
    "bundle": CommandEntry("kubewright.cli.packages.bundle", "Generate an OLM bundle for the project."),
    "scorecard": CommandEntry(
        "kubewright.cli.packages.scorecard", "Run scorecard checks and report the capability level."
    ),
    "completion": CommandEntry("kubewright.cli.completion", "Print a shell completion script."),
    "version": CommandEntry("kubewright.cli.version", "Print the version."),
}
SECTIONS: Mapping[str, Sequence[str]] = {
    "Start": ("init", "create", "dev", "envtest", "run"),
    "Verify": ("manifests", "plan", "replay", "prove", "rbac", "scorecard", "doctor"),
    "Ship": ("build", "bundle", "install", "uninstall", "deploy", "undeploy", "migrate"),
    "Objects": ("get", "why", "ui", "apply", "delete", "pause", "resume", "reconcile"),
}
"""The groups of commands in the help; commands without a group come last."""


class CommandTable(click.Group):
    """Load a command's module only when it runs, so that help and completion stay quick."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load one command."""
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else getattr(load_module(entry.module), entry.attribute)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; suggest a similar one if it is unknown."""
        # Completion (resilient parsing) runs on incomplete input and must not fail.
        known = not args or args[0] in COMMANDS or args[0].startswith("-")
        if not known and not ctx.resilient_parsing:
            near = get_close_matches(args[0], COMMANDS, n=1)
            hint = f": did you mean {near[0]!r}?" if near else ""
            raise click.UsageError(f"unknown command {args[0]!r}{hint}", ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands from the table alone."""
        grouped = {name for names in SECTIONS.values() for name in names}
        rest = [name for name in COMMANDS if name not in grouped]
        width = max(map(len, COMMANDS))
        for title, names in {**SECTIONS, "More": rest}.items():
            with formatter.section(title):
                shown = [name for name in names if name in COMMANDS]
                formatter.write_dl([(name.ljust(width), COMMANDS[name].summary) for name in shown])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Complete a command's name from the table alone."""
        return [
            CompletionItem(name, help=entry.summary)
            for name, entry in COMMANDS.items()
            if name.startswith(incomplete)
        ]


def _print_version(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    if value and not ctx.resilient_parsing:
        ctx.invoke(load_module(COMMANDS["version"].module).command, output="text")
        ctx.exit()


@click.group(
    cls=CommandTable, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_version,
    help="Print the version and exit.",
)
def cli() -> None:
    """Write, run and ship Kubernetes operators in Python.

    TARGET is a Python file, a package directory, a module, or module:object; inside a project it may be left
    out. Use "kubewright COMMAND --help" for more about a command. Exit codes: 0 (success), 1 (failure),
    2 (usage error).
    """


def main(arguments: list[str] | None = None) -> None:
    """Run the command; exit with 0 (done), 1 (failed) or 2 (wrong usage)."""
    sys.exit(_exit_code(arguments))


def _exit_code(arguments: list[str] | None) -> int:
    options: dict[str, Any] = {"args": arguments, "prog_name": "kubewright", "standalone_mode": False}
    try:
        outcome = cli.main(**options)
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        return WRONG_USAGE
    except click.UsageError as error:
        click.echo(f"Error: {_usage(error)}", err=True)
        return WRONG_USAGE
    except click.ClickException as error:
        click.echo(f"Error: {error.format_message()}", err=True)
        return FAILED
    except click.Abort:
        click.echo(error_line(KeyboardInterrupt()), err=True)
        return FAILED
    except (Exception, KeyboardInterrupt) as error:
        click.echo(error_line(error), err=True)
        return exit_code_of(error)
    return outcome if isinstance(outcome, int) else 0


def _usage(error: click.UsageError) -> str:
    """Format a usage error in one line, with the command that prints the help."""
    message = error.format_message().rstrip(".")
    return message if error.ctx is None else f"{message} ({error.ctx.command_path} --help)"
