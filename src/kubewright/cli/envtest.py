"""`kubewright envtest`: replacements of envtest's binaries."""

import click

from kubewright.cli.options import kubernetes_option
from kubewright.envtest.assets import create_folder


@click.group()
def command() -> None:
    """Run tests of operators in any language on the embedded API server."""


@command.command()
@kubernetes_option
def path(kubernetes: str) -> None:
    """Print a folder with kube-apiserver and etcd that run kubewright.

    envtest and other test kits start the programs in KUBEBUILDER_ASSETS:

        KUBEBUILDER_ASSETS=$(kubewright envtest path) go test ./...

    The folder has kubectl too if it is on PATH.
    """
    click.echo(create_folder(kubernetes=kubernetes))
