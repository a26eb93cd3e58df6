"""`kubewright version`."""

import json
import platform
from importlib.metadata import version

import click


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(output: str) -> None:
    """Print the versions of kubewright and Python."""
    versions = {"kubewright": version("kubewright"), "python": platform.python_version()}
    if output == "json":
        click.echo(json.dumps(versions, indent=2))
    else:
        click.echo(f"kubewright {versions['kubewright']} (Python {versions['python']})")
