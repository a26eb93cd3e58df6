"""What a command must know: from its options, else by asking where somebody sits at a terminal."""

import sys
from collections.abc import Callable

import click

Trouble = Callable[[str], str]


def known(value: str | None, option: str, question: str, trouble: Trouble, default: str | None = None) -> str:
    """Return what an option says, or ask; say what is wrong with it."""
    if value is None and not _somebody():
        if default is None:
            what = "option" if option.startswith("-") else "argument"
            raise click.UsageError(f"Missing {what} '{option}'")
        value = default
    if value is not None:
        if told := trouble(value):
            raise click.UsageError(told)
        return value
    while told := trouble(value := str(click.prompt(question, default=default, err=True))):
        click.echo(told, err=True)
    return value


def _somebody() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
