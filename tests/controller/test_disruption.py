"""Windows of the week and slots of a budget."""

from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import DeclarationError, Object
from kubewright.controller import Controller, DisruptionDeferred, Operator, Options, disruption_rules
from kubewright.controller.disruption import SlotTable, check_windows
from kubewright.disruption import Budget, Window

BERLIN = ZoneInfo("Europe/Berlin")
START = datetime(2026, 3, 1, 12, tzinfo=UTC)


def berlin(text: str, fold: int = 0) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=BERLIN, fold=fold)


class Thing(Object, group="limits.example.com", version="v1"):
    """Is disrupted."""


async def reconcile(thing: Thing, ctx: Any) -> None:
    """Do nothing."""


@pytest.mark.parametrize(
    ("text", "open_at", "closed_at"),
    [
        (
            "Sat 02:00-08:00",
            ["2026-03-07T02:00", "2026-03-07T07:59"],
            ["2026-03-07T08:00", "2026-03-08T02:00"],
        ),
        ("22:00-04:00", ["2026-03-03T22:00", "2026-03-04T03:59"], ["2026-03-04T04:00", "2026-03-04T21:59"]),
        ("Mon-Fri 22:00-04:00", ["2026-03-07T03:00"], ["2026-03-07T22:00", "2026-03-09T03:00"]),
        ("Sat,Sun 00:00-24:00", ["2026-03-07T00:00", "2026-03-08T23:59"], ["2026-03-09T00:00"]),
        ("Fri-Mon 1:30-2:00", ["2026-03-06T01:30", "2026-03-09T01:59"], ["2026-03-10T01:30"]),
    ],
)
def test_a_window_is_open_while_the_clock_shows_a_time_within_it(
    text: str, open_at: list[str], closed_at: list[str]
) -> None:
    window = Window(text, zone="Europe/Berlin")
    assert [at for at in open_at if not window.is_open(berlin(at))] == []
    assert [at for at in closed_at if window.is_open(berlin(at))] == []


def test_a_window_follows_the_change_to_summer_time() -> None:
    """On 29 March 2026 the clock of Berlin is set from 02:00 to 03:00."""
    before = berlin("2026-03-29T01:00")
    assert Window("Sun 02:30-08:00", zone="Europe/Berlin").next_opening(before) == berlin("2026-03-29T03:00")
    skipped = Window("Sun 02:00-03:00", zone="Europe/Berlin").next_opening(before)
    assert skipped == berlin("2026-04-05T02:00"), "the hour does not exist on that day"


def test_a_window_follows_the_change_to_winter_time() -> None:
    """On 25 October 2026 the clock of Berlin is set from 03:00 to 02:00."""
    window = Window("Sun 02:00-02:30", zone="Europe/Berlin")
    assert window.is_open(berlin("2026-10-25T02:10"))
    assert window.is_open(berlin("2026-10-25T02:10", fold=1))
    between = berlin("2026-10-25T02:40")
    assert not window.is_open(between)
    assert window.next_opening(between) == berlin("2026-10-25T02:00", fold=1).astimezone(UTC)


@given(
    minutes=st.integers(0, 60 * 24 * 400),
    days=st.sampled_from(["", "Sun ", "Mon-Fri ", "Sat,Wed "]),
    start=st.integers(0, 47),
    length=st.integers(1, 47),
    zone=st.sampled_from(
        ["UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"]
    ),
)
def test_the_next_opening_is_the_first_minute_at_which_a_window_is_open(
    minutes: int, days: str, start: int, length: int, zone: str
) -> None:
    end = (start + length) % 48
    window = Window(f"{days}{start // 2:02}:{start % 2 * 3}0-{end // 2:02}:{end % 2 * 3}0", zone=zone)
    now = datetime(2026, 1, 1, tzinfo=UTC) + timedelta(minutes=minutes)
    found = window.next_opening(now)
    assert found is not None
    assert window.is_open(found)
    expected = now
    while not window.is_open(expected):
        expected += timedelta(minutes=10)
    assert timedelta(0) <= expected - found < timedelta(minutes=10)
    for earlier in (1, 10, 30):
        moment = found - timedelta(minutes=earlier)
        assert moment < now or not window.is_open(moment) or found == now


@pytest.mark.parametrize(
    ("text", "zone", "message"),
    [
        ("Sat", "UTC", "it is not a time of the week"),
        ("Sat 2-8", "UTC", "it is not a time of the week"),
        ("", "UTC", "it is not a time of the week"),
        ("Sam 02:00-08:00", "UTC", "'Sam' is not a day: use Mon, Tue"),
        ("Sat- 02:00-08:00", "UTC", "'' is not a day"),
        ("Sat 02:00-25:00", "UTC", "25:00 is not a time of the day"),
        ("Sat 02:60-08:00", "UTC", "02:60 is not a time of the day"),
        ("Sat 02:00-02:00", "UTC", "write 00:00-24:00 for a whole day"),
        ("24:00-02:00", "UTC", "write 00:00 for a start"),
        ("02:00-03:00", "Europe/Belin", "unknown time zone 'Europe/Belin'"),
        ("02:00-03:00", "../etc/passwd", "unknown time zone"),
        ("02:00-03:00", "", "unknown time zone ''"),
    ],
)
def test_an_invalid_window_is_one_clear_line(text: str, zone: str, message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        Window(text, zone=zone)
    assert message in str(raised.value)
    assert str(raised.value).startswith(f"Window({text!r}, zone={zone!r}): ")
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize(
    ("at_most", "every", "message"),
    [
        (0, "10m", "at_most must be a whole number of at least 1"),
        (-1, "10m", "at_most must be a whole number of at least 1"),
        (True, "10m", "at_most must be a whole number of at least 1"),
        (1.5, "10m", "at_most must be a whole number of at least 1"),
        (2, "10 minutes", 'invalid duration "10 minutes"'),
        (2, "0s", "every must be a positive time"),
        (2, timedelta(0), "every must be a positive time"),
        (2, 600, "every must be a positive time"),
    ],
)
def test_an_invalid_budget_is_one_clear_line(at_most: Any, every: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as raised:
        Budget(at_most=at_most, every=every)
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


def test_limits_of_the_wrong_type_are_refused_where_the_controller_is_declared() -> None:
    wrong: Any = {"at_most": 2}
    with pytest.raises(DeclarationError, match=r"controller 'thing': budget=.* pass a Budget"):
        Controller(Thing, reconcile, options=Options(budget=wrong))
    single: Any = Window("02:00-03:00")
    with pytest.raises(DeclarationError, match=r"controller 'thing': windows=.* pass a list of Windows"):
        Controller(Thing, reconcile, options=Options(windows=single))


def test_closed_windows_name_the_next_opening() -> None:
    windows = [Window("Sat 02:00-08:00", zone="Europe/Berlin"), Window("Tue 03:00-04:00")]
    with pytest.raises(
        DisruptionDeferred, match=r"Tue 03:00-04:00 \(UTC\), which opens at 2026-03-03T03:00:00Z"
    ):
        check_windows(windows, START)
    check_windows(windows, datetime(2026, 3, 3, 3, 30, tzinfo=UTC))
    check_windows([], START)


def test_a_long_wait_ends_before_the_opening_whatever_the_queue_adds_to_it() -> None:
    with pytest.raises(DisruptionDeferred) as raised:
        check_windows([Window("Tue 03:00-03:30")], START)
    assert raised.value.after is not None
    assert raised.value.after * 1.1 <= timedelta(hours=39)
    with pytest.raises(DisruptionDeferred) as raised:
        check_windows([Window("Sun 12:01-12:30")], START + timedelta(seconds=30))
    assert raised.value.after == timedelta(seconds=30)


def test_slots_are_held_for_the_period_and_then_free() -> None:
    table = SlotTable(Budget(at_most=2, every="10m"))
    first = table.with_slot("a", "Thing x/a", START, 0.0)
    table.read(first, START, 0.0)
    both = table.with_slot("b", "Thing x/b", START + timedelta(minutes=4), 240.0)
    table.read(both, START + timedelta(minutes=4), 240.0)
    with pytest.raises(
        DisruptionDeferred, match=r"taken by Thing x/a, Thing x/b; the next one is free in 300 s"
    ):
        table.with_slot("c", "Thing x/c", START, 300.0)
    assert set(table.with_slot("c", "Thing x/c", START, 600.0)) == {"b", "c"}


def test_an_object_keeps_its_slot_and_holds_it_from_its_last_disruption_on() -> None:
    table = SlotTable(Budget(at_most=1, every="10m"))
    table.read(table.with_slot("a", "Thing x/a", START, 0.0), START, 0.0)
    later = START + timedelta(minutes=9)
    table.read(table.with_slot("a", "Thing x/a", later, 540.0), later, 540.0)
    with pytest.raises(DisruptionDeferred, match="free in 500 s"):
        table.with_slot("b", "Thing x/b", START, 640.0)


def test_a_wall_clock_that_is_changed_later_does_not_end_a_slot() -> None:
    table = SlotTable(Budget(at_most=1, every="10m"))
    entries = table.with_slot("a", "Thing x/a", START, 0.0)
    table.read(entries, START, 0.0)
    table.read(entries, START + timedelta(days=1), 60.0)
    with pytest.raises(DisruptionDeferred, match="free in 540 s"):
        table.with_slot("b", "Thing x/b", START + timedelta(days=1), 60.0)


def test_another_process_reads_the_age_of_a_slot() -> None:
    entries = SlotTable(Budget(at_most=1, every="10m")).with_slot("a", "Thing x/a", START, 1000.0)
    other = SlotTable(Budget(at_most=1, every="10m"))
    other.read(entries, START + timedelta(minutes=9), 5.0)
    with pytest.raises(DisruptionDeferred, match="free in 60 s"):
        other.with_slot("b", "Thing x/b", START, 5.0)
    ahead = SlotTable(Budget(at_most=1, every="10m"))
    ahead.read(entries, START - timedelta(days=1), 5.0)
    with pytest.raises(DisruptionDeferred, match="free in 600 s"):
        ahead.with_slot("b", "Thing x/b", START, 5.0)


def test_a_slot_that_was_seen_does_not_end_when_its_entry_is_removed_or_changed() -> None:
    """The ConfigMap was deleted or edited by hand, or restored from a backup."""
    table = SlotTable(Budget(at_most=2, every="10m"))
    entries = table.with_slot("a", "Thing x/a", START, 0.0)
    table.read(entries, START, 0.0)
    older = SlotTable(Budget(at_most=2, every="10m")).with_slot(
        "a", "Thing x/a", START - timedelta(hours=1), 0.0
    )
    for changed in ({}, older):
        table.read(changed, START, 60.0)
        both = table.with_slot("b", "Thing x/b", START, 60.0)
        assert set(both) == {"a", "b"}
    table.read(both, START, 60.0)
    with pytest.raises(DisruptionDeferred, match="free in 540 s"):
        table.with_slot("c", "Thing x/c", START, 60.0)
    assert set(table.with_slot("c", "Thing x/c", START, 601.0)) == {"b", "c"}


@pytest.mark.parametrize("text", ["", "nonsense", "{}", '{"object":"a","taken":"yesterday"}'])
def test_an_entry_that_cannot_be_read_is_held_for_one_period(text: str) -> None:
    table = SlotTable(Budget(at_most=1, every="10m"))
    table.read({"a": text}, START, 0.0)
    with pytest.raises(DisruptionDeferred, match="free in 600 s"):
        table.with_slot("b", "Thing x/b", START, 0.0)
    assert set(table.with_slot("b", "Thing x/b", START, 600.0)) == {"b"}


def test_the_rules_allow_the_config_map_of_each_budget_and_nothing_without_one() -> None:
    limited = Controller(Thing, reconcile, options=Options(budget=Budget(at_most=1, every="1m")))
    assert [rule.to_wire() for rule in disruption_rules(Operator(limited, name="shop"))] == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["create"]},
        {
            "apiGroups": [""],
            "resources": ["configmaps"],
            "resourceNames": ["shop-thing-disruption"],
            "verbs": ["get", "update"],
        },
    ]
    windowed = Controller(Thing, reconcile, options=Options(windows=[Window("02:00-03:00")]))
    assert disruption_rules(Operator(windowed, name="shop")) == []
