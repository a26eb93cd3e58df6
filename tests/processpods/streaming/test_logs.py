"""The options of log requests."""

from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import pytest

from kubewright.devserver import StatusError
from kubewright.http.server import Request, split_target
from kubewright.processpods.endpoints import log_request
from kubewright.processpods.streaming.requests import LogRequest

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asked(**query: str) -> LogRequest:
    path, found = split_target(f"/log?{urlencode(query)}")
    return log_request(Request("GET", path, found, {}, b""), NOW)


def test_the_whole_log_is_requested_without_options() -> None:
    assert asked() == LogRequest()


def test_every_option_is_parsed() -> None:
    found = asked(
        follow="true",
        previous="true",
        timestamps="true",
        sinceSeconds="10",
        tailLines="3",
        limitBytes="7",
        stream="Stderr",
    )
    since = NOW - timedelta(seconds=10)
    assert found == LogRequest(
        follow=True, previous=True, timestamps=True, since=since, tail=3, limit_bytes=7, stream="stderr"
    )
    assert asked(sinceTime="2025-12-31T23:00:00Z").since == NOW - timedelta(hours=1)


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"tailLines": "-1"}, 422),
        ({"limitBytes": "0"}, 422),
        ({"sinceSeconds": "0"}, 422),
        ({"sinceSeconds": "1", "sinceTime": "2025-12-31T23:00:00Z"}, 422),
        ({"stream": "Stdin"}, 422),
        ({"tailLines": "many"}, 400),
        ({"sinceTime": "soon"}, 400),
    ],
)
def test_invalid_options_are_rejected(query: dict[str, str], code: int) -> None:
    with pytest.raises(StatusError) as caught:
        asked(**query)
    assert caught.value.code == code
