"""What goes on when an object is refused: the others, as with kubectl."""

from collections.abc import Generator
from contextlib import contextmanager

import click

from kubewright.api import ApiError, KubewrightError, Unauthorized


class Refusals:
    """Tell each refusal as it comes, and remember that there was one."""

    def __init__(self) -> None:
        self.exit_code: int = 0

    @contextmanager
    def told(self, *further: type[KubewrightError]) -> Generator[None]:
        """Tell what the server says of one object, and these errors, instead of raising it.

        Who is not let in at all, or reaches no server, would read the same once for each object.
        """
        try:
            yield
        except Unauthorized:
            raise
        except (ApiError, *further) as error:
            click.echo(f"Error: {error}", err=True)
            self.exit_code = 1
