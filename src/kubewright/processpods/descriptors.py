"""Read and write pipes and terminals without blocking the event loop, whichever loop it is."""

import asyncio
import errno
import os

_PIECE = 64 * 1024


class Descriptor:
    """One end of a pipe, or a terminal's side of it; closed with `close`."""

    def __init__(self, number: int) -> None:
        os.set_blocking(number, False)
        self.number = number
        self._closed = False

    def close(self) -> None:
        """Close it."""
        if not self._closed:
            self._closed = True
            os.close(self.number)

    async def read(self) -> bytes:
        """Return the next data; empty at the end."""
        while not self._closed:
            try:
                return os.read(self.number, _PIECE)
            except BlockingIOError:
                await self._wait(reading=True)
            except OSError as error:
                # Linux reports the end of a terminal without users this way.
                if error.errno == errno.EIO:
                    return b""
                raise
        return b""

    async def write(self, data: bytes) -> None:
        """Write all of it; raise BrokenPipeError if the reader is gone."""
        rest = memoryview(data)
        while rest and not self._closed:
            try:
                rest = rest[os.write(self.number, rest) :]
            except BlockingIOError:
                await self._wait(reading=False)

    async def _wait(self, *, reading: bool) -> None:
        loop = asyncio.get_running_loop()
        due: asyncio.Future[None] = loop.create_future()
        add, remove = (
            (loop.add_reader, loop.remove_reader) if reading else (loop.add_writer, loop.remove_writer)
        )
        add(self.number, lambda: due.done() or due.set_result(None))
        try:
            await due
        finally:
            if not self._closed:
                remove(self.number)
