"""An embedded server on which all recorded cases were played."""

import asyncio
import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from builtin_cases import (
    Client,
    Embedded,
    play_accepted,
    play_behavior,
    play_refused,
    recording,
    serve,
    wait_until_ready,
)


@pytest.fixture(scope="session")
def embedded() -> Iterator[Embedded]:
    """Play all recorded cases on an embedded server, in their order."""
    started: queue.Queue[Client] = queue.Queue()
    stop = threading.Event()
    thread = threading.Thread(target=lambda: asyncio.run(serve(started, stop)))
    thread.start()
    try:
        client = started.get(timeout=120)
        wait_until_ready(client)
        plays = {"accepted": play_accepted, "refused": play_refused, "behavior": play_behavior}
        answers = {
            name: [play(client, entry["case"]) for entry in recording(name)] for name, play in plays.items()
        }
        yield Embedded(client, answers)
        client.close()
    finally:
        stop.set()
        thread.join()
