"""Both servers at once: play a case on the real and on the embedded one, and pair their responses."""

import http.client
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass
from itertools import count
from typing import Any

from compare_case import Case
from conformance_exchange import Answer, Step, Target
from conformance_scenario import Run
from conformance_servers import running

from kubewright.testing.controlplane import KUBERNETES

STEP_TIMEOUT = 15.0
"""Seconds for a server to reach the state that a step waits for."""
SETTLE_TIMEOUT = 12.0
"""Seconds for both servers to reach the same state after work that they do in the background."""
SETTLED = 1.5
"""Seconds for which the real server's state must not change to count as its last."""
POLL = 0.1
UNREACHED = ": not reached in "
"""What the response of a step says that waited in vain."""


class TolerantTarget:
    """A target for which a closed connection is a response, because a panic of kube-apiserver closes it."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self.forget = target.forget
        self.sent = 0

    def send(
        self, step: Step, values: Mapping[str, str], run: Callable[[Step], None], frames: int = 0
    ) -> Answer:
        """Send a step; return status 0 if there is no response."""
        self.sent += 1
        try:
            return self._target.send(step, values, run, frames)
        except (http.client.HTTPException, OSError) as error:
            return Answer(0, {}, f"no response: {type(error).__name__}")


@dataclass(frozen=True)
class Pairing:
    """The responses of both servers to a step."""

    step: Step
    real: Mapping[str, Any]
    embedded: Mapping[str, Any]
    worded: "Pairing | None" = None
    """The same with the texts of errors and warnings, where they are not compared."""

    @property
    def equal(self) -> bool:
        """Return True if the normalised responses are the same."""
        return self.real == self.embedded

    def without_wording(self) -> "Pairing":
        """Return the same without the texts of errors and warnings, which change with each release."""
        return Pairing(self.step, _without_wording(self.real), _without_wording(self.embedded), self)


def _without_wording(answer: Mapping[str, Any]) -> Mapping[str, Any]:
    headers = answer["headers"]
    if "warning" in headers:
        headers = {**headers, "warning": len(headers["warning"])}
    body = answer["body"]
    if isinstance(body, dict) and body.get("kind") == "Status" and body.get("status") == "Failure":
        body = {name: value for name, value in body.items() if name not in ("message", "details")}
    return {**answer, "headers": headers, "body": body}


class Servers:
    """The real and the embedded server."""

    def __init__(self, real: Target, embedded: Target, *, wording: bool = True) -> None:
        """Take both servers; without `wording`, the texts of errors and warnings are not compared."""
        self._wording = wording
        self._targets = (TolerantTarget(real), TolerantTarget(embedded))
        self._numbers = count(1)
        self._stack = ExitStack()
        self._pool = self._stack.enter_context(ThreadPoolExecutor(2))
        self._fixtures: dict[Callable[[], AbstractContextManager[dict[str, str]]], dict[str, str]] = {}

    @property
    def sent(self) -> int:
        """Return the number of requests that were sent to the real server."""
        return self._targets[0].sent

    def close(self) -> None:
        """End what the cases started."""
        self._stack.close()

    def play(self, case: Case) -> list[Pairing]:
        """Send the requests of a case to both servers and return the pairs of responses, in order."""
        if case.fixture not in self._fixtures:
            self._fixtures[case.fixture] = self._stack.enter_context(case.fixture())
        number = next(self._numbers)
        values = {**self._fixtures[case.fixture], "run": f"r{number}", "ns": f"ns-{number}"}
        runs = [Run(target, timeout=STEP_TIMEOUT) for target in self._targets]
        for run in runs:
            run.values.update(values)
        pending: list[Step] = []
        try:
            for step in case.steps:
                if step.name in case.eventually:
                    self._each(runs, lambda run, steps=tuple(pending): _perform(run, steps))
                    pending.clear()
                    self._settle(runs, step)
                else:
                    pending.append(step)
            self._each(runs, lambda run: _perform(run, pending))
        finally:
            self._each(runs, lambda run: _perform(run, case.cleanup))
        pairings = _pairings(case, *runs)
        return pairings if self._wording else [pairing.without_wording() for pairing in pairings]

    def _settle(self, runs: list[Run], step: Step) -> None:
        """Ask until the real server's state stays the same for a while and the embedded one's is the same too."""
        begin = since = time.monotonic()
        last: Any = None
        while time.monotonic() < begin + SETTLE_TIMEOUT:
            self._each(runs, lambda run: _perform(run, [step]))
            real, embedded = (run.answers.get(step.name) for run in runs)
            if real != last:
                last, since = real, time.monotonic()
            if real == embedded and time.monotonic() >= since + SETTLED:
                return
            time.sleep(POLL)

    def _each(self, runs: list[Run], work: Callable[[Run], None]) -> None:
        for done in [self._pool.submit(work, run) for run in runs]:
            done.result()


def _perform(run: Run, steps: Any) -> None:
    """Send steps until one does not reach the state that it waits for; the others then have no response."""
    for step in steps:
        try:
            run.perform(step)
        except AssertionError as error:
            run.answers[step.name] = {
                "status": 0,
                "headers": {},
                "body": str(error).partition(", the last")[0],
            }
            return


def is_unreached(pairing: Pairing) -> bool:
    """Return True if neither server reached the state that a step waits for."""
    return pairing.equal and pairing.real["status"] == 0 and UNREACHED in str(pairing.real["body"])


def _pairings(case: Case, real: Run, embedded: Run) -> list[Pairing]:
    found: list[Pairing] = []
    for step in _flat(case.steps):
        answers = [run.answers.get(step.name) for run in (real, embedded)]
        if answers[0] is not None and answers[1] is not None:
            found.append(Pairing(step, answers[0], answers[1]))
    return found


def _flat(steps: tuple[Step, ...]) -> Iterator[Step]:
    for step in steps:
        yield from _flat(step.during)
        yield step


@contextmanager
def both(*, controllers: bool, kubernetes: str) -> Iterator[Servers]:
    """Run both servers of a Kubernetes version, with the garbage collector and the namespace controller if `controllers` is set."""
    with ExitStack() as stack:
        real, embedded = (
            stack.enter_context(running(kind, controllers=controllers, kubernetes=kubernetes))
            for kind in ("real", "embedded")
        )
        servers = Servers(real, embedded, wording=kubernetes == KUBERNETES)
        stack.callback(servers.close)
        yield servers
