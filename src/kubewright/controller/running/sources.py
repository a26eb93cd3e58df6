"""Events of external systems, followed for as long as the controller runs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

from kubewright.backoff import Backoff
from kubewright.controller.running.telemetry import FieldLog
from kubewright.controller.watches import Source
from kubewright.guards import must_propagate

MAX_DELAY = 30.0
"""Seconds; a stream that works again should not wait for the end of a long backoff."""


async def follow(source: Source[Any], take: Callable[[Any], None], backoff: Backoff, log: FieldLog) -> None:
    """Pass each event on until the stream ends; open a stream that failed again after a backoff.

    The backoff is reset only once a stream lasted longer than the last delay, so that a stream which fails after its
    first event each time is no busy loop.
    """
    loop = asyncio.get_running_loop()
    attempt, delay = 0, 0.0
    while True:
        opened = loop.time()
        try:
            await _read(source, take)
        except BaseException as error:
            # A CancelledError or SystemExit of a library would end this task silently, or the operator.
            if must_propagate(error):
                raise
            attempt = 0 if loop.time() - opened > delay else attempt + 1
            delay = min(backoff.delay(attempt), MAX_DELAY)
            log.error("Source failed, opening it again in %.1f s", delay, exc_info=error)
            await asyncio.sleep(delay)
        else:
            log.info("Source ended")
            return


async def _read(source: Source[Any], take: Callable[[Any], None]) -> None:
    async with AsyncExitStack() as stack:
        stream: AsyncIterable[Any] = source.events()
        if isinstance(stream, AsyncGenerator):
            stream = await stack.enter_async_context(aclosing(cast("AsyncGenerator[Any]", stream)))
        async for event in stream:
            take(event)
