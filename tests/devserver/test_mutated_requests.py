"""Requests of the conformance scenarios, bent at random: whatever comes, the server answers and does not fail itself."""

import json
import logging
import random
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from devserver_http import Http
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.devserver import Server
from kubewright.testing.virtual_time import virtual_time

sys.path.insert(0, str(Path(__file__).parents[1] / "conformance"))

from conformance_exchange import Step
from conformance_scenario import scenarios

SMALL = 20_000
VALUES = (None, True, 0, -1, 2**63, 1.5, "", "x", "é\x00", [], {}, [None], {"": None}, [[{}]], "2024-13-01")


class Sent(NamedTuple):
    """One request as it goes over the wire."""

    method: str
    path: str
    body: bytes
    headers: dict[str, str]


def _requests() -> Iterator[Sent]:
    for scenario in scenarios():
        for step in scenario.steps:
            if step.user or "watch" in step.path or step.waits:
                continue
            body = _bytes(step)
            if len(body) < SMALL:
                path = step.path.replace("{", "").replace("}", "").replace(" ", "%20")
                yield Sent(step.method, path, body, dict(step.headers))


def _bytes(step: Step) -> bytes:
    if step.body is None or isinstance(step.body, bytes):
        return step.body or b""
    return (step.body if isinstance(step.body, str) else json.dumps(step.body)).encode()


REQUESTS = list(_requests())


def bent(request: Sent, seed: int) -> Sent:
    """Bend a request: its bytes, a value in its body, its path, its format, or what it is sent to."""
    chance = random.Random(seed)
    ways = [_bend_bytes, _bend_value, _bend_value, _bend_value, _bend_path, _bend_format, _bend_target]
    for _ in range(chance.randint(1, 2)):
        request = chance.choice(ways)(request, chance)
    return request


def _bend_bytes(request: Sent, chance: random.Random) -> Sent:
    data = bytearray(request.body or b"{}")
    place = chance.randrange(len(data))
    kind = chance.randrange(4)
    if kind == 0:
        data[place] = chance.randrange(256)
    elif kind == 1:
        del data[place : place + chance.randint(1, 8)]
    elif kind == 2:
        data[place:place] = data[: chance.randint(1, 40)]
    else:
        del data[place:]
    return request._replace(body=bytes(data))


def _bend_value(request: Sent, chance: random.Random) -> Sent:
    try:
        document = json.loads(request.body)
    except ValueError:
        return request
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [document]
    while waiting:
        item = waiting.pop()
        keys = list(item) if isinstance(item, dict) else range(len(item)) if isinstance(item, list) else ()
        for key in keys:
            places.append((item, key))
            waiting.append(item[key])
    if not places:
        return request._replace(body=json.dumps(chance.choice(VALUES)).encode())
    holder, key = chance.choice(places)
    if isinstance(holder, dict) and chance.random() < 0.2:
        holder[f"{key}x"] = holder.pop(key)
    elif chance.random() < 0.2:
        holder[key] = [holder[key], holder[key]]
    else:
        holder[key] = chance.choice(VALUES)
    return request._replace(body=json.dumps(document).encode())


def _bend_path(request: Sent, chance: random.Random) -> Sent:
    more = ("dryRun=All", "limit=-5", "fieldManager=%00", "fieldValidation=Strict", "force=maybe", "pretty=x")
    sign = "&" if "?" in request.path else "?"
    extra = f"{sign}{chance.choice(more)}"
    parts = request.path.split("/")
    parts[chance.randrange(1, len(parts))] = chance.choice(["", "x", "%2e%2e", "%ff", "status", "scale"])
    return request._replace(path=request.path + extra if chance.random() < 0.5 else "/".join(parts) or "/")


def _bend_format(request: Sent, chance: random.Random) -> Sent:
    kinds = (
        "application/json",
        "application/yaml",
        "application/json-patch+json",
        "application/merge-patch+json",
        "application/strategic-merge-patch+json",
        "application/apply-patch+yaml",
        "application/vnd.kubernetes.protobuf",
        "text/html; charset=",
    )
    return request._replace(headers={**request.headers, "Content-Type": chance.choice(kinds)})


def _bend_target(request: Sent, chance: random.Random) -> Sent:
    other = chance.choice(REQUESTS)
    return request._replace(method=other.method, path=other.path)


class Failures(logging.Handler):
    """Keep what the server says of its own mistakes."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.found.append(f"{record.getMessage()}: {record.exc_info[1] if record.exc_info else ''!r}")


@settings(max_examples=40)
@given(
    st.lists(
        st.tuples(st.sampled_from(range(len(REQUESTS))), st.integers(0, 2**32)), min_size=30, max_size=30
    )
)
def test_no_mutated_request_causes_a_server_error(choices: list[tuple[int, int]]) -> None:
    failures = Failures()
    logging.getLogger("kubewright.devserver").addHandler(failures)

    @virtual_time
    async def run() -> None:
        async with Server() as server, Http(server) as http:
            for index, seed in choices:
                sent = bent(REQUESTS[index], seed)
                reply = await http.request(sent.method, sent.path, sent.body, sent.headers)
                assert 200 <= reply.status < 600, sent
                assert not failures.found, (sent, failures.found)
            assert (await http.request("GET", "/livez")).status == 200

    try:
        run()
    finally:
        logging.getLogger("kubewright.devserver").removeHandler(failures)
