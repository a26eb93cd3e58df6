"""The demo as plain lines of text."""

import time
from collections.abc import Callable

from show.environment import set_up
from show.scenario import Scenario


async def run(say: Callable[[str], None]) -> None:
    """Run the scenario once; raise if a step fails."""
    began = time.monotonic()

    def report(mark: str, text: str) -> None:
        say(f"{time.monotonic() - began:5.1f} s  {mark}  {text}")

    async with set_up() as environment:
        report("ok", "The dev cluster is up, five operators run")
        async for step in Scenario(environment).steps():
            report("..", step.title)
            try:
                seen = await step.play()
            except Exception:
                report("NO", step.title)
                raise
            report("ok", seen)
    report("ok", "Every step succeeded, and everything is cleaned up")
