"""Simulations as pytest tests: one for each seed; a failure prints the command that repeats it."""

from collections.abc import Awaitable, Callable

import pytest

from kubewright.testing.simulation.simulation import Simulation, simulate


def simulated(
    *, seeds: int = 10, workloads: bool = False
) -> Callable[[Callable[[Simulation], Awaitable[None]]], Callable[..., None]]:
    """Return a decorator that makes a scenario a test, which runs once for each of the first `seeds` seeds.

    `pytest --seeds 1000` runs more seeds, `pytest --seed 17` runs only this one.
    """

    def decorate(scenario: Callable[[Simulation], Awaitable[None]]) -> Callable[..., None]:
        def test(seed: int) -> None:
            __tracebackhide__ = True
            try:
                simulate(scenario, seed, workloads=workloads)
            except BaseException as error:
                error.add_note(f"seed {seed}: repeat it with `pytest -k {scenario.__name__} --seed {seed}`")
                raise

        # Not with functools.wraps: pytest would look for the scenario's parameters.
        test.__name__, test.__doc__, test.__module__ = (
            scenario.__name__,
            scenario.__doc__,
            scenario.__module__,
        )
        return pytest.mark.kubewright_seeds(seeds)(test)

    return decorate
