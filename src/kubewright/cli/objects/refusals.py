"""Errors of single objects, which do not stop a command, as in kubectl."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from kubewright.api import ApiError, KubewrightError, Unauthorized


class Refusals:
    """Print errors of single objects as they occur, and remember that there was one."""

    def __init__(self) -> None:
        self.exit_code: int = 0

    @contextmanager
    def reported(self, *further: type[KubewrightError]) -> Generator[None]:
        """Print API errors of one object, and errors of the types given, instead of raising them.

        Unauthorized and connection errors are raised: they would repeat for every object.
        """
        try:
            yield
        except Unauthorized:
            raise
        except (ApiError, *further) as error:
            click.echo(f"Error: {error}", err=True)
            self.exit_code = 1
