"""Processes that print endlessly."""

import asyncio
import sys
from pathlib import Path

from kubewright.processpods.child import Child
from kubewright.processpods.output import Output
from kubewright.processpods.reaper import Reaper
from kubewright.processpods.streaming.requests import OutputStream

CHATTER = "import os\ndata = b'x' * 65536\nwhile True: os.write(1, data)"


async def test_a_process_that_prints_endlessly_does_not_block_others(tmp_path: Path) -> None:
    reaper = await asyncio.to_thread(Reaper.start)
    output, pieces = Output(), 0

    async def feed(stream: OutputStream, data: bytes) -> None:
        nonlocal pieces
        pieces += 1
        await output.feed(stream, data)

    try:
        child = await Child.start(
            [sys.executable, "-c", CHATTER], reaper=reaper, environment={}, folder=tmp_path
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(child.run(feed))
            while pieces < 300:
                before = pieces
                await asyncio.sleep(0)
                assert pieces - before <= 2
            child.kill()
            assert await running == 137
    finally:
        await asyncio.to_thread(reaper.stop)
