"""Events from outside the cluster, followed for as long as the controller runs."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Callable
from contextlib import AsyncExitStack, aclosing
from typing import Any, cast

from kubewright.backoff import Backoff
from kubewright.controller.running.reporting import FieldLog
from kubewright.controller.watches import Source
from kubewright.guards import must_propagate

LONGEST_REST = 30.0
"""Seconds; whoever mends what an outside system lacks should not wait for a controller's whole backoff."""


async def follow(outside: Source[Any], take: Callable[[Any], None], backoff: Backoff, log: FieldLog) -> None:
    """Take each event until the stream ends; one that fails is opened anew.

    The rests in between grow until the stream lasts longer than the last of them, so that one which fails
    after its first event each time is no busy loop.
    """
    loop = asyncio.get_running_loop()
    attempt, delay = 0, 0.0
    while True:
        opened = loop.time()
        try:
            await _read(outside, take)
        except BaseException as error:
            # A CancelledError or SystemExit of a library would end this task silently, or the operator.
            if must_propagate(error):
                raise
            attempt = 0 if loop.time() - opened > delay else attempt + 1
            delay = min(backoff.delay(attempt), LONGEST_REST)
            log.error("A source failed; it is opened anew in %.1f s", delay, exc_info=error)
            await asyncio.sleep(delay)
        else:
            log.info("A source has ended: no more events come from it")
            return


async def _read(outside: Source[Any], take: Callable[[Any], None]) -> None:
    async with AsyncExitStack() as stack:
        stream: AsyncIterable[Any] = outside.events()
        if isinstance(stream, AsyncGenerator):
            stream = await stack.enter_async_context(aclosing(cast("AsyncGenerator[Any]", stream)))
        async for event in stream:
            take(event)
