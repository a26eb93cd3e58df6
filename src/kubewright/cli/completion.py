"""`kubewright completion`."""

import click
from click.shell_completion import get_completion_class

from kubewright.api import ConfigError

PROGRAM, VARIABLE = "kubewright", "_KUBEWRIGHT_COMPLETE"


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print a shell completion script for commands, options and files.

    For bash, add to ~/.bashrc: eval "$(kubewright completion bash)"
    """
    found = get_completion_class(shell)
    if found is None:
        raise ConfigError(f"shell completion is not available for {shell}")
    try:
        click.echo(found(ctx.find_root().command, {}, PROGRAM, VARIABLE).source())
    except RuntimeError as error:
        # The old bash of macOS does not support completion.
        raise ConfigError(str(error)) from None
