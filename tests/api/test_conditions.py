"""Conditions of a status."""

from datetime import UTC, datetime, timedelta

from kubewright.api import Condition, get_condition, is_condition, set_condition, to_wire

NOON = datetime(2024, 1, 1, 12, tzinfo=UTC)


def ready(status: str = "True", **more: object) -> Condition:
    return Condition(type="Ready", status=status, reason="Because", **more)  # type: ignore[arg-type]


def test_stamps_a_new_condition() -> None:
    conditions: list[Condition] = []
    assert set_condition(conditions, ready(), now=NOON)
    assert conditions == [ready(last_transition_time=NOON)]


def test_moves_the_time_only_when_the_status_changes() -> None:
    conditions = [ready(last_transition_time=NOON)]
    later = NOON + timedelta(hours=1)
    assert set_condition(conditions, ready(message="still"), now=later)
    assert conditions[0].last_transition_time == NOON
    assert set_condition(conditions, ready("False"), now=later)
    assert conditions[0].last_transition_time == later


def test_says_when_nothing_changed() -> None:
    conditions = [ready(last_transition_time=NOON, observed_generation=3)]
    assert not set_condition(conditions, ready(observed_generation=3))
    assert set_condition(conditions, ready(observed_generation=4))


def test_keeps_others_and_their_order() -> None:
    other = Condition(type="Other", status="Unknown", reason="Waiting", last_transition_time=NOON)
    conditions = [ready(last_transition_time=NOON), other]
    set_condition(conditions, ready("False"))
    assert [condition.type for condition in conditions] == ["Ready", "Other"]
    assert get_condition(conditions, "Other") is other
    assert is_condition(conditions, "Ready", "False")
    assert not is_condition(conditions, "Missing")


def test_sends_what_the_api_requires() -> None:
    assert to_wire(ready(last_transition_time=NOON)) == {
        "type": "Ready",
        "status": "True",
        "reason": "Because",
        "message": "",
        "lastTransitionTime": "2024-01-01T12:00:00Z",
    }
