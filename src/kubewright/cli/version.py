"""`kubewright version`."""

import platform
from importlib.metadata import version

import click


@click.command()
def command() -> None:
    """Print the version of kubewright and of Python."""
    click.echo(f"kubewright {version('kubewright')} (Python {platform.python_version()})")
