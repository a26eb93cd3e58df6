"""Prompt for missing option values on a terminal."""

import sys
from collections.abc import Callable

import click

FindProblem = Callable[[str], str]


def known(
    value: str | None, option: str, question: str, find_problem: FindProblem, default: str | None = None
) -> str:
    """Return the option's value, or prompt for it; raise UsageError if it is invalid."""
    if value is None and not _is_interactive():
        if default is None:
            what = "option" if option.startswith("-") else "argument"
            raise click.UsageError(f"Missing {what} '{option}'")
        value = default
    if value is not None:
        if problem := find_problem(value):
            raise click.UsageError(problem)
        return value
    while problem := find_problem(value := str(click.prompt(question, default=default, err=True))):
        click.echo(problem, err=True)
    return value


def _is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()
