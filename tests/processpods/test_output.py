"""Output of processes as logs show it."""

import asyncio
import contextlib
from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kubewright.processpods.output import KEPT_LINES, LONGEST_LINE, Output
from kubewright.processpods.streaming.requests import LogRequest


async def read(output: Output, **request: Any) -> bytes:
    return b"".join([piece async for piece in output.read(LogRequest(**request))])


def made(*pieces: bytes) -> Output:
    output = Output()

    async def feed() -> None:
        for piece in pieces:
            await output.feed("stdout", piece)

    asyncio.run(feed())
    return output


@given(st.lists(st.binary(max_size=50), max_size=20))
def test_no_output_is_lost_in_any_chunks(pieces: list[bytes]) -> None:
    output = made(*pieces)
    output.end()
    assert asyncio.run(read(output)) == b"".join(pieces)


async def test_a_line_is_shown_when_it_is_complete() -> None:
    output = Output()
    await output.feed("stdout", b"one\ntw")
    assert await read(output) == b"one\n"
    await output.feed("stdout", b"o\n")
    assert await read(output, tail=1) == b"two\n"
    await output.feed("stdout", b"x" * (LONGEST_LINE + 1))
    assert len(await read(output, tail=1)) == LONGEST_LINE


async def test_streams_and_times_can_be_chosen() -> None:
    output, before = Output(), datetime.now(UTC)
    await output.feed("stdout", b"good\n")
    await output.feed("stderr", b"bad\n")
    assert await read(output, stream="stderr") == b"bad\n"
    assert await read(output, tail=1, stream="stdout") == b"good\n"
    later = datetime.now(UTC) + timedelta(hours=1)
    assert await read(output, since=later) == b""
    assert await read(output, limit_bytes=3) == b"goo"
    stamp, _, rest = (await read(output, timestamps=True)).partition(b" ")
    assert rest.startswith(b"good\n")
    assert before <= datetime.fromisoformat(stamp[:26].decode() + "+00:00") <= datetime.now(UTC)


async def test_following_yields_new_lines_until_the_end() -> None:
    output = Output()
    await output.feed("stdout", b"old\nnews\n")

    async def write() -> None:
        for number in range(3):
            await output.feed("stdout", b"%d\n" % number)
            await asyncio.sleep(0)
        output.end()

    async with asyncio.TaskGroup() as group:
        following = group.create_task(read(output, follow=True, tail=1))
        group.create_task(write())
    assert following.result() == b"news\n0\n1\n2\n"


async def test_only_the_newest_output_is_kept() -> None:
    output = Output(kept=100)
    for number in range(1000):
        await output.feed("stdout", b"line %d\n" % number)
    kept = await read(output)
    assert len(kept) <= 100
    assert kept.endswith(b"line 999\n")
    assert output.last(1, 100) == "line 999\n"


async def test_a_slow_listener_misses_the_oldest_output() -> None:
    output = Output(kept=1000)
    async with contextlib.aclosing(output.listen()) as received:
        first = asyncio.ensure_future(anext(received))
        await asyncio.sleep(0)
        await output.feed("stdout", b"first")
        assert await first == ("stdout", b"first")
        for number in range(100):
            await output.feed("stdout", b"%100d" % number)
        output.end()
        rest = [int(data) async for _, data in received]
    assert rest == list(range(90, 100))


async def test_empty_lines_are_limited_too() -> None:
    output = Output()
    await output.feed("stdout", b"\n" * (KEPT_LINES + 1000))
    assert await read(output) == b"\n" * KEPT_LINES
