"""Plain HTTP to an API server: requests as data, answers as they came, watches read to their end."""

import contextlib
import gzip
import http.client
import json
import ssl
import urllib.parse
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import yaml

from kubewright.devserver.wire import load_types
from kubewright.devserver.wire.protobuf import parse

PROTOBUF = "application/vnd.kubernetes.protobuf"
USER_AGENT = "conformance/1.0"
TIMEOUT = 30.0
LONG = 120
"""Seconds that a watch is asked for whose events take the time they take."""


@dataclass(frozen=True)
class Step:
    """One request of a scenario. `{name}` in its path or body stands for a value that an earlier step saved."""

    name: str
    method: str
    path: str
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    save: Mapping[str, str] = field(default_factory=dict)
    """Values to keep from the answer: name to a dotted path."""
    during: tuple["Step", ...] = ()
    """Requests sent while this one, a watch, is open."""
    until: Callable[[int, Any], bool] | None = None
    """Ask again, for some seconds, until this holds for status and body: for what servers do in their own time."""
    warned: str = ""
    """Ask again, likewise, until a warning has this in it."""
    user: str = ""
    """The user whose token to send; the administrator's certificate if empty."""
    waits: float = 0
    """For how many seconds the server waits before it answers, or before a watch says more."""
    forgets: bool = False
    """Let the server forget its history before this."""
    pick: Callable[[Any, Mapping[str, str]], Any] | None = None
    """What of the body to compare, where the rest differs by nature: from the body and the saved values."""
    also: tuple[str, ...] = ()
    """Headers to compare beside those that are always compared; tags and dates only for being there."""
    stream: bool = False
    """The answer is a stream of frames, though the path does not say `watch=1`."""
    compared: bool = True
    """Steps that only prepare are not compared."""


@dataclass
class Answer:
    """What came back: the status, the headers that matter, and the body, parsed where it can be."""

    status: int
    headers: dict[str, Any]
    body: Any


@dataclass
class Target:
    """A server to talk to."""

    address: str
    context: ssl.SSLContext
    anonymous_context: ssl.SSLContext
    tokens: Mapping[str, str]
    skip: Callable[[float], None] | None = None
    """Make the server's time pass, where that is in our hands."""
    forget: Callable[[], None] = lambda: None
    """Compact the server's history."""
    _kept: dict[bool, list[http.client.HTTPSConnection]] = field(default_factory=dict)
    """Connections that may serve again, those of the administrator and those of others."""

    def connect(self, user: str) -> http.client.HTTPSConnection:
        context = self.anonymous_context if user else self.context
        host = urllib.parse.urlsplit(self.address).netloc
        return http.client.HTTPSConnection(host, context=context, timeout=TIMEOUT)

    def send(
        self, step: Step, values: Mapping[str, str], run: Callable[[Step], None], frames: int = 0
    ) -> Answer:
        """Send one step; `run` performs the steps that happen while a watch is open, of which `frames` are expected."""
        kept = self._kept.setdefault(bool(step.user), [])
        if kept and not step.waits:
            try:
                return self._exchange(kept.pop(), step, values, run, frames)
            except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLError):
                # Servers close connections that they are tired of; nothing of the request was looked at.
                pass
        return self._exchange(self.connect(step.user), step, values, run, frames)

    def close(self) -> None:
        """Close the connections that are kept."""
        for connections in self._kept.values():
            for connection in connections:
                connection.close()

    def _exchange(
        self,
        connection: http.client.HTTPSConnection,
        step: Step,
        values: Mapping[str, str],
        run: Callable[[Step], None],
        frames: int,
    ) -> Answer:
        usable = False
        try:
            path, body, headers = self._request(step, values)
            timeout = _timeout(step)
            if frames and not self.skip:
                path = path.replace(f"timeoutSeconds={timeout:g}", f"timeoutSeconds={LONG}")
            connection.request(step.method, path, body, headers)
            if not timeout:
                self._let_pass(step.waits)
            response = connection.getresponse()
            for other in step.during:
                run(other)
            if timeout:
                self._let_pass(step.waits)
            data = self._read(connection, response, timeout, frames)
            usable = response.isclosed() and connection.sock is not None
        finally:
            if usable:
                self._kept[bool(step.user)].append(connection)
            else:
                connection.close()
        stream = step.stream or "watch=1" in step.path
        body = _parse(response, data, stream=stream)
        if step.pick is not None:
            body = step.pick(body, values)
        return Answer(response.status, _headers(response, step.also), body)

    def _read(
        self,
        connection: http.client.HTTPSConnection,
        response: http.client.HTTPResponse,
        seconds: float,
        frames: int,
    ) -> bytes:
        if not seconds or response.status != 200:
            return response.read()
        # What should come is waited for, however busy the machine is; then only more than that, or the end, is left.
        seen = b"".join(response.readline() for _ in range(frames))
        if self.skip or not frames:
            self._let_pass(seconds)
            return seen + response.read()
        connection.sock.settimeout(seconds)
        with contextlib.suppress(TimeoutError):
            while line := response.readline():
                seen += line
        return seen

    def _let_pass(self, seconds: float) -> None:
        if self.skip is not None and seconds:
            self.skip(seconds)

    def _request(self, step: Step, values: Mapping[str, str]) -> tuple[str, bytes | None, dict[str, str]]:
        headers = {"User-Agent": USER_AGENT} | {key: fill(text, values) for key, text in step.headers.items()}
        if step.user in self.tokens:
            headers["Authorization"] = f"Bearer {self.tokens[step.user]}"
        elif step.user and step.user != "nobody":
            headers["Authorization"] = f"Bearer {step.user}"
        path = fill(step.path, values)
        if step.body is None:
            return path, None, headers
        headers.setdefault("Content-Type", "application/json")
        if isinstance(step.body, bytes):
            return path, step.body, headers
        text = step.body if isinstance(step.body, str) else json.dumps(step.body, ensure_ascii=False)
        return path, fill(text, values).encode(), headers


def _timeout(step: Step) -> float:
    query = urllib.parse.parse_qs(urllib.parse.urlsplit(step.path).query)
    return float(query.get("timeoutSeconds", ["0"])[0])


def fill(text: str, values: Mapping[str, str]) -> str:
    """Put saved values in their places."""
    for name, value in values.items():
        text = text.replace("{" + name + "}", value)
    return text


def _headers(response: http.client.HTTPResponse, also: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {"content-type": response.getheader("Content-Type", "")}
    if retry := response.getheader("Retry-After"):
        found["retry-after"] = retry
    if warnings := response.headers.get_all("Warning"):
        found["warning"] = warnings
    for name in also:
        value = response.getheader(name)
        found[name] = "SET" if value and name in ("etag", "last-modified", "expires") else value
    return found


def _message(data: bytes) -> dict[str, Any]:
    """Read an object in protobuf, and check that our writer gives the same bytes."""
    types = load_types()
    _, document = types.decode_protobuf(data)
    return {"document": document, "rewritten": types.encode_protobuf(document) == data}


def _frames(data: bytes) -> dict[str, Any]:
    """Read the frames of a watch in protobuf: length, type, object."""
    frames: list[Any] = []
    while data:
        size = int.from_bytes(data[:4], "big")
        event, data = parse(data[4 : 4 + size]), data[4 + size :]
        frames.append([event[1][0].decode(), _message(parse(event[2][0])[1][0])])
    return {"frames": frames}


def _parse(response: http.client.HTTPResponse, data: bytes, *, stream: bool) -> Any:
    kind = response.getheader("Content-Type", "")
    if response.getheader("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    if kind == "application/yaml":
        return yaml.safe_load(data)
    if kind.startswith(PROTOBUF):
        return _frames(data) if "stream=watch" in kind else _message(data)
    if not kind.startswith("application/json"):
        return data.decode("utf-8", "replace")
    if stream and response.status == 200:
        return [json.loads(line) for line in data.splitlines()]
    return json.loads(data) if data else None
