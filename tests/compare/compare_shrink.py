"""Make the case of a difference small: the fewest requests, then the smallest bodies, that still show it."""

import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from compare_case import copy, places, value_at
from compare_difference import Difference, first_difference
from compare_servers import Servers
from conformance_exchange import Step

REPLY = "https://{hook}/reply/"
TRIES = 120
"""Replays for one difference."""
SECONDS = 40.0
"""Seconds for them: some cases wait for watches to end."""


class Shrinker:
    """Replay smaller versions of a case while their difference stays in the same class."""

    def __init__(self, servers: Servers, tries: int = TRIES) -> None:
        self._servers = servers
        self._tries = tries

    def shrink(self, difference: Difference) -> Difference:
        """Return the same difference in the smallest case that was found."""
        left, deadline = self._tries, time.monotonic() + SECONDS
        smallest = difference
        progress = True
        while progress:
            progress = False
            for steps in _smaller(smallest):
                if left == 0 or time.monotonic() > deadline:
                    return smallest
                left -= 1
                found = self.replay(smallest, steps)
                if found is not None and found.key == difference.key:
                    smallest, progress = found, True
                    break
        return smallest

    def replay(self, difference: Difference, steps: tuple[Step, ...]) -> Difference | None:
        """Play other steps in place of the case's and return the difference, if there is one."""
        case = difference.case.with_steps(steps)
        return first_difference(case, self._servers.play(case))


def _smaller(difference: Difference) -> Iterator[tuple[Step, ...]]:
    steps = difference.case.steps
    last = next(
        (index for index, step in enumerate(steps) if difference.step in (step, *step.during)), len(steps) - 1
    )
    if last + 1 < len(steps):
        yield steps[: last + 1]
    for size in (8, 4, 2, 1):
        for begin in range(last - size, -1, -size):
            yield steps[:begin] + steps[begin + size :]
    for index in range(last, -1, -1):
        for step in _smaller_steps(steps[index]):
            yield (*steps[:index], step, *steps[index + 1 :])


def _smaller_steps(step: Step) -> Iterator[Step]:
    for index in range(len(step.during)):
        yield replace(step, during=step.during[:index] + step.during[index + 1 :])
    if isinstance(step.body, dict | list):
        for body in _smaller_values(step.body):
            yield replace(step, body=body)
    for name in step.headers:
        if name != "Content-Type":
            yield replace(step, headers={key: value for key, value in step.headers.items() if key != name})
    path, _, options = step.path.partition("?")
    parts = options.split("&") if options else []
    for index, part in enumerate(parts):
        # Without a dry run, an object would stay that disturbs other cases.
        if not part.startswith(("watch", "timeoutSeconds", "dryRun")):
            rest = "&".join(parts[:index] + parts[index + 1 :])
            yield replace(step, path=f"{path}?{rest}" if rest else path)


def _smaller_values(value: Any) -> Iterator[Any]:
    """Return the value with one part removed, large parts first, then with one segment less of a webhook's path."""
    paths = sorted(places(value), key=len)
    for path in paths:
        if path[-1] == "namespaceSelector":
            # Without it, a webhook or a policy would act on the objects of other cases.
            continue
        made = copy(value)
        del value_at(made, path[:-1])[path[-1]]
        yield made
    for path in paths:
        for url in _smaller_urls(value_at(value, path)):
            made = copy(value)
            value_at(made, path[:-1])[path[-1]] = url
            yield made


def _smaller_urls(url: Any) -> Iterator[str]:
    """Return the URL of a drawn response without one of the parts that follow its first."""
    if not isinstance(url, str) or not url.startswith(REPLY):
        return
    first, *rest = url.removeprefix(REPLY).split("/")
    for index in range(len(rest)):
        yield REPLY + "/".join((first, *rest[:index], *rest[index + 1 :]))
