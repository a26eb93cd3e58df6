"""Durations in Go's form."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Duration, DurationError, format_duration, parse_duration


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1h2m3.5s", 3723.5),
        ("300ms", 0.3),
        ("-1.5h", -5400),
        ("1us", 1e-6),
        ("1µs", 1e-6),
        ("0", 0),
        ("+5s", 5),
        (".5s", 0.5),
    ],
)
def test_reads_go_durations(text: str, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    ("duration", "text"),
    [
        (timedelta(hours=1), "1h0m0s"),
        (timedelta(seconds=90), "1m30s"),
        (timedelta(seconds=1.5), "1.5s"),
        (timedelta(milliseconds=250), "250ms"),
        (timedelta(microseconds=1500), "1.5ms"),
        (timedelta(microseconds=7), "7µs"),
        (timedelta(), "0s"),
        (-timedelta(seconds=1), "-1s"),
    ],
)
def test_writes_go_durations(duration: timedelta, text: str) -> None:
    assert format_duration(duration) == text


@pytest.mark.parametrize("text", ["", "1", "1d", "1h 2m", "h", "--1s", "1.s.", "9999999h"])
def test_refuses_other_text(text: str) -> None:
    with pytest.raises(DurationError):
        parse_duration(text)


@given(st.timedeltas(timedelta(days=-10000), timedelta(days=10000)))
def test_formatted_durations_parse_to_equal_durations(duration: timedelta) -> None:
    assert parse_duration(format_duration(duration)) == duration
    assert Duration.from_wire(Duration.of(duration).to_wire()) == duration
