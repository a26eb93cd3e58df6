"""Cron schedules."""

import pytest

from kubewright.devserver.builtin.cron_jobs import schedule_error


@pytest.mark.parametrize(
    "schedule", ["* * * * *", "*/5 0-3 1,15 jan-mar MON", "@daily", "@every 5m", "? 0 * * 0"]
)
def test_accepts_a_valid_schedule(schedule: str) -> None:
    assert schedule_error(schedule) == ""


@pytest.mark.parametrize(
    ("schedule", "error"),
    [
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("*/2/3 * * * *", "too many slashes: */2/3"),
        ("@often", "unrecognized descriptor: @often"),
        ("x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
    ],
)
def test_reports_the_error_in_a_schedule(schedule: str, error: str) -> None:
    assert schedule_error(schedule) == error
