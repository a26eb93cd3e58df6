import asyncio

import pytest

from kubewright.guards import attempt, must_propagate, text_of


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def fail_with(error: BaseException) -> None:
    def function(_: None) -> str:
        raise error

    assert attempt(function, None, lambda found: type(found).__name__) == type(error).__name__


@pytest.mark.parametrize(
    "error",
    [AssertionError(), KeyError("a"), RecursionError(), SystemExit(1), asyncio.CancelledError(), Mute()],
)
async def test_any_exception_of_a_function_is_its_failure(error: BaseException) -> None:
    fail_with(error)
    await asyncio.to_thread(fail_with, error)


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_an_interrupt_is_passed_on(error: BaseException) -> None:
    with pytest.raises(type(error)):
        fail_with(error)


async def test_a_cancellation_of_the_task_is_passed_on() -> None:
    caught: list[bool] = []

    async def work() -> None:
        try:
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            caught.append(must_propagate(error))
            raise

    task = asyncio.create_task(work())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert caught == [True]


def test_an_error_without_text_is_named_by_its_class() -> None:
    assert text_of(LookupError("a mistake")) == "a mistake"
    assert text_of(AssertionError()) == "AssertionError"
    assert text_of(Mute()) == "Mute"
