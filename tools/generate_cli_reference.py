"""Write docs/reference/cli.md from the help of every command; --check fails where it is stale."""

import sys
from collections.abc import Iterator
from pathlib import Path

import click

from kubewright.cli.app import COMMANDS, cli

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "cli.md"
WIDTH = 100


def help_of(command: click.Command, name: str, parent: click.Context | None) -> Iterator[str]:
    """Yield the sections of a command and of its subcommands."""
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=WIDTH, max_content_width=WIDTH
    )
    context.help_option_names = ["-h", "--help"]
    path = context.command_path
    yield f"## {path}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            if found is not None:
                yield from help_of(found, below, context)


def page() -> str:
    """Return the whole page."""
    root = click.Context(cli, info_name="kubewright", terminal_width=WIDTH, max_content_width=WIDTH)
    sections = [
        "# Command line\n",
        "The commands of `kubewright` and their options.\n",
        f"```text\n{cli.get_help(root)}\n```\n",
    ]
    for name in sorted(COMMANDS):
        found = cli.get_command(root, name)
        assert found is not None, name
        sections += help_of(found, name, root)
    return "\n".join(sections)


def main() -> int:
    """Write the page, or check it."""
    if "--check" in sys.argv[1:]:
        if not PAGE.exists() or PAGE.read_text() != page():
            print(f"{PAGE.name} is stale: run python {Path(__file__).name}", file=sys.stderr)
            return 1
        return 0
    PAGE.write_text(page())
    return 0


if __name__ == "__main__":
    sys.exit(main())
