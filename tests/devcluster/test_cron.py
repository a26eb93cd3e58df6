from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devcluster.cron import Schedule, ScheduleError

START = datetime(2026, 1, 31, 23, 59, 30, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("* * * * *", datetime(2026, 2, 1, 0, 0, tzinfo=UTC)),
        ("*/15 * * * *", datetime(2026, 2, 1, 0, 0, tzinfo=UTC)),
        ("30 4 1,15 * *", datetime(2026, 2, 1, 4, 30, tzinfo=UTC)),
        ("0 0 * * MON", datetime(2026, 2, 2, 0, 0, tzinfo=UTC)),
        ("0 0 * * 7", datetime(2026, 2, 1, 0, 0, tzinfo=UTC)),
        ("0 12 29 feb *", datetime(2028, 2, 29, 12, 0, tzinfo=UTC)),
        ("5-10/5 8-9 * * *", datetime(2026, 2, 1, 8, 5, tzinfo=UTC)),
        ("0 0 13 * 5", datetime(2026, 2, 6, 0, 0, tzinfo=UTC)),
        ("@hourly", datetime(2026, 2, 1, 0, 0, tzinfo=UTC)),
        ("@weekly", datetime(2026, 2, 1, 0, 0, tzinfo=UTC)),
        ("@yearly", datetime(2027, 1, 1, 0, 0, tzinfo=UTC)),
    ],
)
def test_a_schedule_has_the_next_run_that_cron_has(text: str, expected: datetime) -> None:
    assert Schedule.parse(text).next_after(START) == expected


def test_an_impossible_date_has_no_next_run() -> None:
    assert Schedule.parse("0 0 30 2 *").next_after(START) is None


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "*/0 * * * *", "a * * * *", "5-1 * * * *"])
def test_an_invalid_schedule_is_rejected(text: str) -> None:
    with pytest.raises(ScheduleError):
        Schedule.parse(text)


@given(
    minute=st.integers(0, 59),
    hour=st.integers(0, 23),
    start=st.integers(0, 2**31).map(lambda seconds: datetime.fromtimestamp(seconds, UTC)),
)
def test_a_daily_run_is_at_most_a_day_away(minute: int, hour: int, start: datetime) -> None:
    found = Schedule.parse(f"{minute} {hour} * * *").next_after(start)
    assert found is not None
    assert timedelta(0) < found - start <= timedelta(days=1)
    assert (found.hour, found.minute, found.second) == (hour, minute, 0)
