"""The parts of the running half that need no cluster."""

import asyncio
import threading

import pytest

from kubewright.api import Meta, ObjectKey, encode, raw_object
from kubewright.api.builtin import core_v1
from kubewright.cache import StoreChange
from kubewright.controller import TerminalError, UndeclaredAccess
from kubewright.controller.running.context import WorkerThreads
from kubewright.controller.running.dependencies import Views
from kubewright.controller.running.reconciliation import is_terminal


def caused(error: Exception, cause: Exception) -> Exception:
    error.__cause__ = cause
    return error


@pytest.mark.parametrize(
    ("error", "terminal"),
    [
        (TerminalError("x"), True),
        (UndeclaredAccess("x"), True),
        (caused(ValueError("x"), TerminalError("y")), True),
        (ValueError("x"), False),
        (ExceptionGroup("x", [TerminalError("a"), caused(KeyError("b"), TerminalError("c"))]), True),
        (ExceptionGroup("x", [TerminalError("a"), ValueError("b")]), False),
    ],
)
def test_an_error_is_terminal_if_it_or_its_cause_is(error: BaseException, terminal: bool) -> None:
    assert is_terminal(error) is terminal


async def test_threads_are_bounded_and_counted_until_they_end() -> None:
    threads = WorkerThreads("test", 2)
    go, started = threading.Event(), threading.Semaphore(0)

    def work() -> int:
        started.release()
        go.wait()
        return 7

    async with asyncio.TaskGroup() as group:
        running = [group.create_task(threads.run(work)) for _ in range(3)]
        for _ in range(2):
            await asyncio.to_thread(started.acquire)
        assert threads.running == 2
        running[0].cancel()
        go.set()
    assert [task.result() for task in running[1:]] == [7, 7]
    threads.close()


def test_a_change_is_decoded_once_for_all_controllers() -> None:
    raw = raw_object(encode(core_v1.ConfigMap(Meta("one", namespace="n"), data={"a": "1"})))
    change, views = StoreChange(ObjectKey("n", "one"), None, raw), Views()
    first, second = views.of(core_v1.ConfigMap, change), views.of(core_v1.ConfigMap, change)
    assert first.new is second.new
    assert views.of(core_v1.Secret, change).kind is core_v1.Secret
    assert views.of(core_v1.ConfigMap, StoreChange(change.key, raw, None)).type == "delete"
