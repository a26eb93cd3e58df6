"""The journal of a running operator over HTTP: what `kubewright why` and the live page read.

`/journal?kind=...&name=...` has the reconciles of one object. `/journal?after=NUMBER&wait=SECONDS` has those that
follow on a number, and waits for one if there is none yet; `instance` differs after a restart, when numbers start again.

Beside the metrics it has their authentication and authorization. An operator on a developer's machine serves it on the
loopback interface instead, to clients that know the token in a file of the user's (`LocalJournal`).
"""

import asyncio
import hmac
import json
import os
import secrets
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from kubewright.api import ObjectKey
from kubewright.http.server import JSON, PathEndpoint, Request, Response, Router, text
from kubewright.journal import Collected, Journal, Redactor, record_of
from kubewright.serving.guard import Guard
from kubewright.serving.http import BindAddress, BoundHttpServer

PATH = "/journal"
MAX_RECORDS = 100
MAX_WAIT = 20.0
"""Seconds that a request may wait for the next reconcile."""

Describe = Callable[[], dict[str, Any]]
"""Returns what else is known of the operator: its name, whether it leads, what hinders it."""


class JournalPage:
    """Serve the records of one object's reconciles, or of the latest ones, to clients that `guard` allows or that have the token."""

    def __init__(
        self,
        journal: Journal,
        redactor: Callable[[], Redactor],
        describe: Describe,
        *,
        guard: Guard | None = None,
        token: str = "",
    ) -> None:
        self._journal = journal
        self._redactor = redactor
        self._describe = describe
        self._guard = guard
        self._token = token
        self._instance = secrets.token_hex(8)

    @property
    def routes(self) -> list[PathEndpoint]:
        """Return the paths to serve."""
        return [PathEndpoint(PATH, self._serve)]

    async def _serve(self, request: Request) -> Response:
        refusal = await self._refusal(request)
        if refusal is not None:
            return refusal
        if request.one("after"):
            return await self._serve_following(request)
        entries = list(self._journal)
        if kind := request.one("kind"):
            key = ObjectKey(request.one("namespace"), request.one("name"))
            entries = [
                entry
                for entry in entries
                if entry.kind.kind == kind and entry.kind.group == request.one("group") and entry.key == key
            ]
        return self._response(entries[-MAX_RECORDS:])

    async def _serve_following(self, request: Request) -> Response:
        try:
            after, wait = int(request.one("after")), float(request.one("wait", "0"))
        except ValueError:
            return text(400, "after and wait must be numbers\n")
        # The numbers of an earlier process say nothing about this one.
        if request.one("instance") not in ("", self._instance):
            after = 0
        if not self._journal.after(after, 1) and wait > 0:
            added = asyncio.Event()
            unsubscribe = self._journal.subscribe(lambda _: added.set())
            try:
                async with asyncio.timeout(min(wait, MAX_WAIT)):
                    await added.wait()
            except TimeoutError:
                pass
            finally:
                unsubscribe()
        return self._response(self._journal.after(after, MAX_RECORDS))

    def _response(self, entries: Sequence[Collected]) -> Response:
        redactor = self._redactor()
        response = {
            **self._describe(),
            "instance": self._instance,
            "dropped": self._journal.dropped,
            "size": self._journal.size,
            "reconciles": [record_of(entry, redactor) for entry in entries],
        }
        return Response(200, msgspec.json.encode(response), JSON)

    async def _refusal(self, request: Request) -> Response | None:
        if request.method != "GET":
            return text(405, "Method Not Allowed\n")
        if self._guard is not None:
            return await self._guard.refusal(request)
        given = request.headers.get("authorization", "").removeprefix("Bearer ").strip()
        # No Origin: a page in a browser has no business here, whatever name it reached the loopback address by.
        if request.headers.get("origin") or not hmac.compare_digest(given.encode(), self._token.encode()):
            return text(401, "Unauthorized\n")
        return None


class LocalJournal:
    """Serve the journal on the loopback interface, with address and token in a file that only the user can read."""

    def __init__(
        self, path: Path, journal: Journal, redactor: Callable[[], Redactor], describe: Describe
    ) -> None:
        self._path = path
        self._token = secrets.token_urlsafe(24)
        page = JournalPage(journal, redactor, describe, token=self._token)
        self._server = BoundHttpServer(BindAddress("127.0.0.1", 0), Router(page.routes))

    @property
    def server(self) -> BoundHttpServer:
        """Return the server, to be entered before `publish`."""
        return self._server

    def publish(self) -> None:
        """Write the file."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        content = {
            "url": f"http://127.0.0.1:{self._server.port}",
            "token": self._token,
            "pid": os.getpid(),
        }
        descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(content, file)

    def withdraw(self) -> None:
        """Remove the file."""
        with suppress(OSError):
            self._path.unlink()
