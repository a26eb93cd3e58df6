"""Ages as kubectl shows them."""

import pytest

from kubewright.devserver.builtin.ages import age, human_duration

MINUTE, HOUR, DAY, YEAR = 60, 3600, 86400, 31536000


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (-5, "<invalid>"),
        (-1, "0s"),
        (119, "119s"),
        (120, "2m"),
        (9 * MINUTE + 5, "9m5s"),
        (10 * MINUTE + 5, "10m"),
        (3 * HOUR, "3h"),
        (7 * HOUR + 30 * MINUTE, "7h30m"),
        (47 * HOUR, "47h"),
        (2 * DAY + HOUR, "2d1h"),
        (8 * DAY, "8d"),
        (2 * YEAR + 30 * DAY, "2y30d"),
        (9 * YEAR, "9y"),
    ],
)
def test_shows_the_units_that_matter(seconds: int, shown: str) -> None:
    assert human_duration(seconds) == shown


def test_the_age_of_something_without_a_time_is_unknown() -> None:
    assert age(None, 0.0) == "<unknown>"
