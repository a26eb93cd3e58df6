"""Conditions of a status."""

from datetime import UTC, datetime, timedelta

import pytest

from kubewright import conditions
from kubewright.api import Condition, to_wire

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def ready(status: str = "True", **more: object) -> Condition:
    return Condition(type="Ready", status=status, reason="Because", **more)  # type: ignore[arg-type]


def test_stamps_a_new_condition() -> None:
    held: list[Condition] = []
    assert conditions.set(held, ready(), now=NOON)
    assert held == [ready(last_transition_time=NOON)]


def test_moves_the_time_only_when_the_status_changes() -> None:
    held = [ready(last_transition_time=NOON)]
    later = NOON + timedelta(hours=1)
    assert conditions.set(held, ready(message="still"), now=later)
    assert held[0].last_transition_time == NOON
    assert conditions.set(held, ready("False"), now=later)
    assert held[0].last_transition_time == later


def test_reports_whether_a_condition_changed() -> None:
    held = [ready(last_transition_time=NOON, observed_generation=3)]
    assert not conditions.set(held, ready(observed_generation=3))
    assert conditions.set(held, ready(observed_generation=4))


def test_keeps_other_conditions_and_their_order() -> None:
    other = Condition(type="Other", status="Unknown", reason="Waiting", last_transition_time=NOON)
    held = [ready(last_transition_time=NOON), other]
    conditions.set(held, ready("False"))
    assert [condition.type for condition in held] == ["Ready", "Other"]
    assert conditions.find(held, "Other") is other
    assert conditions.is_false(held, "Ready")
    assert not conditions.is_true(held, "Missing")


def test_conditions_have_all_fields_that_the_api_requires() -> None:
    assert to_wire(ready(last_transition_time=NOON)) == {
        "type": "Ready",
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2024-01-01T12:00:00Z",
    }


def test_conditions_of_each_status_are_created() -> None:
    assert conditions.true("Ready", "Because") == ready()
    assert conditions.false("Ready", "Because", "why") == ready("False", message="why")
    assert conditions.unknown("Ready", "Because") == ready("Unknown")


def test_a_missing_condition_is_neither_true_nor_false() -> None:
    assert not conditions.is_true([], "Ready")
    assert not conditions.is_false([], "Ready")
    assert not conditions.is_false([ready("Unknown")], "Ready")
    assert conditions.find([], "Ready") is None


GOOD = conditions.true("Stored", "Written", "all is well")
BAD = conditions.false("Login", "SecretMissing", "Secret store does not exist")
WORSE = conditions.false("Volume", "Lost")
OPEN = conditions.unknown("Network", "NotObserved", "no answer yet")
DEGRADED = conditions.true("Degraded", "SlowDisk", "a disk is slow")


@pytest.mark.parametrize(
    ("several", "expected"),
    [
        ([GOOD], conditions.true("Ready", "AsExpected")),
        ([GOOD, OPEN], conditions.unknown("Ready", "NotObserved", "Network: no answer yet")),
        ([OPEN, GOOD, BAD], conditions.false("Ready", "SecretMissing", "Login: Secret store does not exist")),
        (
            [BAD, GOOD, WORSE],
            conditions.false("Ready", "SecretMissing", "Login: Secret store does not exist; Volume: Lost"),
        ),
        ([GOOD, DEGRADED], conditions.false("Ready", "SlowDisk", "Degraded: a disk is slow")),
        ([GOOD, conditions.false("Degraded", "Fine")], conditions.true("Ready", "AsExpected")),
        ([ready("False"), GOOD], conditions.true("Ready", "AsExpected")),
    ],
)
def test_aggregates_several_conditions_into_ready(several: list[Condition], expected: Condition) -> None:
    assert conditions.aggregate(several, negative=("Degraded",)) == expected


def test_a_condition_about_an_older_generation_is_unknown_in_the_aggregate() -> None:
    old = Condition(type="Stored", status="True", reason="Written", observed_generation=2)
    assert conditions.aggregate([old], generation=2).status == "True"
    found = conditions.aggregate([old], generation=3)
    assert (found.status, found.reason) == ("Unknown", "Outdated")
    assert found.message == "Stored: it is about generation 2, the object is at 3"
    assert conditions.aggregate([GOOD], generation=3).status == "True"


def test_an_empty_list_of_conditions_cannot_be_aggregated() -> None:
    with pytest.raises(ValueError, match="there are no conditions to aggregate"):
        conditions.aggregate([ready()])


def test_the_aggregate_has_the_given_type_reason_and_message() -> None:
    found = conditions.aggregate([GOOD], "Available", reason="Serving", message="3 replicas")
    assert found == conditions.true("Available", "Serving", "3 replicas")
