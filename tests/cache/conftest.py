"""A scripted source: each list or watch takes the next answer of a script."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Any

import msgspec
import pytest

from kubewright.api import (
    Kind,
    KubewrightError,
    RawList,
    RawObject,
    Status,
    WatchEvent,
    decode_event,
    raw_object,
)

WIDGETS = Kind(group="example.com", version="v1", kind="Widget", plural="widgets")


class ScriptedError(KubewrightError):
    """A failure of the source, as an API answer where it has a code."""

    def __init__(
        self, message: str, code: int = 0, reason: str = "", retry_after: float | None = None
    ) -> None:
        super().__init__(message)
        self.retry_after = retry_after
        if code:
            self.status = Status(code=code, reason=reason, message=message)


@dataclass
class Answer:
    """What one call yields, after how long, and how it ends: cleanly, with an error, or never."""

    items: list[Any]
    error: Exception | None = None
    hangs: bool = False
    pause: float = 0.0
    delay: float = 0.0

    @property
    def refuses(self) -> bool:
        """Return True if the server does not even accept the request."""
        return self.error is not None and not self.items and not self.delay


@dataclass
class Call:
    verb: str
    options: dict[str, Any]
    at: float


@dataclass
class ScriptedSource:
    """Answer lists and watches by a script.

    A list of one object asks for the server's present `revision` alone. It takes an answer of the script only
    if that is a failure, so that a script need not say what such a list finds.
    """

    script: list[Answer] = field(default_factory=list)
    revision: int = 1_000_000
    calls: list[Call] = field(default_factory=list)
    open_streams: int = 0

    def list_raw(self, kind: Kind, **options: Any) -> AsyncGenerator[RawList, None]:
        if options["limit"] == 1 and not (self.script and self.script[0].refuses):
            return self._revision(kind, options)
        return self._answer("list", kind, options)

    async def watch_raw(self, kind: Kind, **options: Any) -> AsyncGenerator[list[WatchEvent], None]:
        async with aclosing(self._answer("watch", kind, options)) as events:
            async for event in events:
                yield event if isinstance(event, list) else [event]

    def calls_of(self, verb: str) -> list[Call]:
        return [call for call in self.calls if call.verb == verb]

    async def _revision(self, kind: Kind, options: dict[str, Any]) -> AsyncGenerator[RawList, None]:
        self._note("check", kind, options)
        yield RawList(str(self.revision), "more", [])
        raise AssertionError("only the first page is needed")

    def _note(self, verb: str, kind: Kind, options: dict[str, Any]) -> None:
        self.calls.append(Call(verb, {"kind": kind, **options}, asyncio.get_running_loop().time()))

    async def _answer(self, verb: str, kind: Kind, options: dict[str, Any]) -> AsyncGenerator[Any, None]:
        self._note(verb, kind, options)
        answer = self.script.pop(0) if self.script else Answer([], hangs=True)
        self.open_streams += 1
        try:
            if verb == "watch" and not answer.refuses:
                yield []
            await asyncio.sleep(answer.delay)
            for item in answer.items:
                if answer.pause:
                    await asyncio.sleep(answer.pause)
                yield item
            if answer.error is not None:
                raise answer.error
            if answer.hangs:
                await asyncio.get_running_loop().create_future()
        finally:
            self.open_streams -= 1


class Make:
    """Objects, events and answers in few words."""

    kind = WIDGETS
    error = ScriptedError

    @staticmethod
    def object(
        name: str, version: int, *, uid: str = "", namespace: str = "default", labels: Any = None, **body: Any
    ) -> RawObject:
        meta = {
            "name": name,
            "namespace": namespace,
            "uid": uid or f"uid-{name}",
            "resourceVersion": str(version),
            "labels": labels or {},
        }
        document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": meta, **body}
        return raw_object(msgspec.json.encode(document))

    @classmethod
    def event(cls, kind: str, name: str, version: int, **more: Any) -> WatchEvent:
        return WatchEvent(kind, cls.object(name, version, **more))  # pyright: ignore[reportArgumentType]

    @staticmethod
    def bookmark(version: int, *, initial: bool = False) -> WatchEvent:
        meta: dict[str, Any] = {"resourceVersion": str(version)}
        if initial:
            meta["annotations"] = {"k8s.io/initial-events-end": "true"}
        return decode_event(msgspec.json.encode({"type": "BOOKMARK", "object": {"metadata": meta}}))

    @staticmethod
    def error_event(code: int, reason: str, message: str) -> WatchEvent:
        status = {"kind": "Status", "code": code, "reason": reason, "message": message}
        return decode_event(msgspec.json.encode({"type": "ERROR", "object": status}))

    @staticmethod
    def page(version: int, *items: RawObject, more: str = "") -> RawList:
        return RawList(str(version), more, list(items))

    @staticmethod
    def answer(*items: Any, **how: Any) -> Answer:
        return Answer(list(items), **how)


@pytest.fixture
def make() -> type[Make]:
    return Make


@pytest.fixture
def source() -> ScriptedSource:
    return ScriptedSource()
