"""Injected faults from a YAML file, so that tests in any language can make requests slow or fail.

    - match: {verbs: [patch], resource: deployments.apps}
      fail: 409
      times: 3
    - match: {user: operator}
      delay: 0.2
    - cutWatches: expire
      every: 5

The file is read again when it has changed, before the next request is answered: a test may write it at any time.
"""

import asyncio
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import msgspec

from kubewright.devserver import Fault, Match, RequestContext, Server
from kubewright.documents import DocumentError, read_yaml
from kubewright.envtest.recording import INTERNAL_USERS

_log = logging.getLogger("kubewright.envtest")


class FaultFileError(Exception):
    """A file of faults that cannot be read."""


class MatchRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """Which requests a fault applies to; fields that are not set match everything."""

    verbs: tuple[str, ...] = ()
    resource: str = ""
    subresource: str | None = None
    namespace: str = ""
    name: str = ""
    user: str = ""
    agent: str = ""

    def matcher(self) -> Callable[[RequestContext], bool]:
        """Return a function of requests: for resources only, so that health checks and discovery work."""
        match = Match(
            self.verbs, self.resource, self.subresource, self.namespace, self.name, self.user, self.agent
        )
        return lambda context: (
            bool(context.info.resource) and context.user.name not in INTERNAL_USERS and match(context)
        )


class FaultRule(msgspec.Struct, frozen=True, rename="camel", forbid_unknown_fields=True):
    """One fault: a delay, a failure or both, or watches that end."""

    match: MatchRule = MatchRule()
    delay: float = 0.0
    fail: int | Literal["reset"] | None = None
    when: Literal["before", "after"] = "before"
    retry_after: int | None = None
    message: str = ""
    times: int | None = None
    cut_watches: Literal["end", "reset", "expire"] | None = None
    every: float = 0.0
    """How often the open watches are ended, in seconds."""


def read_rules(path: Path) -> list[FaultRule]:
    """Return the faults in a file; raise FaultFileError with the reason if it cannot be read."""
    try:
        documents = [document.value for document in read_yaml(path.read_bytes())]
        listed = [rule for document in documents for rule in document or ()]
        rules = msgspec.convert(listed, list[FaultRule])
    except OSError as error:
        raise FaultFileError(f"open {path}: {(error.strerror or str(error)).lower()}") from None
    except DocumentError as error:
        raise FaultFileError(f"{path}:{error.line}: {error}") from None
    except (msgspec.ValidationError, TypeError) as error:
        raise FaultFileError(f"{path}: {error}") from None
    for rule in rules:
        if (rule.cut_watches is None) != (rule.every <= 0):
            raise FaultFileError(f"{path}: cutWatches requires every, in seconds, and nothing else does")
        if rule.cut_watches is None and rule.fail is None and not rule.delay:
            raise FaultFileError(f"{path}: a fault requires delay, fail or cutWatches")
        if isinstance(rule.fail, int) and not 400 <= rule.fail <= 599:
            raise FaultFileError(f"{path}: fail: {rule.fail} is not the status of an error")
    return rules


class FaultFile:
    """Keep the faults of a server as a file says."""

    def __init__(self, path: Path, server: Server) -> None:
        """Read the file; raise FaultFileError if that is not possible."""
        self._path = path
        self._server = server
        self._added: list[Fault] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._stamp = self._current_stamp()
        rules = read_rules(path)
        # First in the list: it sees each request before the faults of the file, and matches none.
        server.faults.add(match=self._refresh)
        self._add(rules)

    def _current_stamp(self) -> tuple[int, int] | None:
        try:
            found = self._path.stat()
        except OSError:
            return None
        return found.st_mtime_ns, found.st_size

    def _refresh(self, context: RequestContext) -> bool:
        stamp = self._current_stamp()
        if stamp is not None and stamp != self._stamp:
            self._stamp = stamp
            try:
                rules = read_rules(self._path)
            except FaultFileError as error:
                _log.error("the faults stay as they are: %s", error)
            else:
                self._remove()
                self._add(rules)
        return False

    def _remove(self) -> None:
        for fault in self._added:
            fault.remove()
        for task in self._tasks:
            task.cancel()
        self._added.clear()
        self._tasks.clear()

    def _add(self, rules: list[FaultRule]) -> None:
        for rule in rules:
            matcher = rule.match.matcher()
            if rule.cut_watches is not None:
                self._tasks.append(self._server.spawn(self._cut(matcher, rule.cut_watches, rule.every)))
                continue
            fault = self._server.faults.add(
                match=matcher,
                delay=rule.delay,
                fail=rule.fail,
                when=rule.when,
                retry_after=rule.retry_after,
                message=rule.message,
                times=rule.times,
            )
            self._added.append(fault)

    async def _cut(
        self, matcher: Callable[[RequestContext], bool], how: Literal["end", "reset", "expire"], every: float
    ) -> None:
        while True:
            await asyncio.sleep(every)
            self._server.faults.cut_watches(matcher, how=how)
