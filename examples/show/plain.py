"""The demo as plain lines of text."""

import asyncio
import time
from collections.abc import Callable

from show.environment import set_up
from show.scenario import Scenario


async def run(say: Callable[[str], None], *, ui: bool = False, stay: bool = False) -> None:
    """Run the scenario once; raise if a step fails. With `stay` the cluster keeps running until it is cancelled."""
    began = time.monotonic()

    def report(mark: str, text: str) -> None:
        say(f"{time.monotonic() - began:5.1f} s  {mark}  {text}")

    async with set_up(ui=ui) as environment:
        report("ok", "The dev cluster is up, five operators run")
        if environment.link:
            say(f"live page: {environment.link}")
        async for step in Scenario(environment).steps():
            report("..", step.title)
            try:
                seen = await step.play()
            except Exception:
                report("NO", step.title)
                raise
            report("ok", seen)
        if stay:
            say("The scenario is done. The cluster keeps running; press Ctrl-C to stop it")
            await asyncio.get_running_loop().create_future()
    report("ok", "Every step succeeded, and everything is cleaned up")
