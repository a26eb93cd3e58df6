"""The story in plain lines."""

import time
from collections.abc import Callable

from show.stage import set_up
from show.story import Story


async def tell(say: Callable[[str], None]) -> None:
    """Play the story once; raises when something did not happen."""
    began = time.monotonic()

    def told(mark: str, text: str) -> None:
        say(f"{time.monotonic() - began:5.1f} s  {mark}  {text}")

    async with set_up() as stage:
        told("ok", "The dev cluster is up, five operators run")
        async for step in Story(stage).steps():
            told("..", step.title)
            try:
                seen = await step.play()
            except Exception:
                told("NO", step.title)
                raise
            told("ok", seen)
    told("ok", "All of it happened, and all of it is gone again")
