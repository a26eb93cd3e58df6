import asyncio
import socket
import threading
import time

import pytest

from kubewright.testing.virtual_time import OnOneLoop, settle, virtual_time


def now() -> float:
    return asyncio.get_running_loop().time()


def test_hours_pass_at_once_in_virtual_time() -> None:
    @virtual_time
    async def sleep() -> float:
        await asyncio.sleep(36_000)
        return now()

    started = time.monotonic()
    assert sleep() == pytest.approx(36_000)
    assert time.monotonic() - started < 3_600


@virtual_time
async def test_timers_run_in_their_order_at_their_time() -> None:
    seen: list[tuple[str, float]] = []

    async def note(name: str, after: float) -> None:
        await asyncio.sleep(after)
        seen.append((name, round(now(), 6)))

    async with asyncio.TaskGroup() as tasks:
        for name, after in (("late", 90.5), ("soon", 0.1), ("same", 90.5)):
            tasks.create_task(note(name, after))
    assert seen == [("soon", 0.1), ("late", 90.5), ("same", 90.5)]


@virtual_time
async def test_time_stands_still_while_there_is_work() -> None:
    for _ in range(1000):
        await asyncio.sleep(0)
    await settle()
    assert now() == 0


@virtual_time
async def test_time_stands_still_while_a_thread_works() -> None:
    release = threading.Event()
    asyncio.get_running_loop().call_later(1000, release.set)
    waiting = asyncio.get_running_loop().run_in_executor(None, release.wait, 0.05)
    assert await waiting is False
    assert now() == 0


@virtual_time
async def test_bytes_on_their_way_arrive_before_time_passes() -> None:
    left, right = socket.socketpair()
    with left, right:
        left.setblocking(False)
        right.setblocking(False)
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(60):
            for _ in range(10):
                await loop.sock_sendall(left, b"hello")
                assert await loop.sock_recv(right, 5) == b"hello"
        assert now() == 0


@virtual_time
async def test_a_timeout_ends_a_wait_without_timers() -> None:
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(300):
            await asyncio.get_running_loop().create_future()
    assert now() == pytest.approx(300)


def test_a_cluster_of_another_loop_is_refused() -> None:
    @virtual_time
    async def wait_there(cluster: OnOneLoop) -> None:
        await asyncio.sleep(1)

    with pytest.raises(TypeError, match=r"under virtual_time open one inside the test"):
        wait_there(OnOneLoop())
