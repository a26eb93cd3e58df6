"""Which reconcile decides that an object fails."""

from datetime import UTC, datetime, timedelta

from kubewright.journal import ReconcileRecord
from kubewright.ui.reconciles import LastFailures, ReconcileSummary, summarize_reconcile

START = datetime(2026, 1, 31, 12, tzinfo=UTC)
ABOUT = ("example.com", "Shell", "n", "a")


def reconcile(
    second: int, error: str = "", *, operator: str = "o", controller: str = "shell", uid: str = "u"
) -> ReconcileSummary:
    return summarize_reconcile(
        operator,
        ReconcileRecord(
            id=f"{controller}-{second}",
            number=second,
            controller=controller,
            group="example.com",
            kind="Shell",
            namespace="n",
            name="a",
            uid=uid,
            started_at=START + timedelta(seconds=second),
            duration=0.1,
            outcome="error" if error else "success",
            error=error,
        ),
    )


def test_failures_in_a_row_are_counted_until_a_success() -> None:
    failures = LastFailures()
    assert not failures.add(reconcile(0))
    assert failures.add(reconcile(1, "first"))
    assert failures.add(reconcile(2, "second"))
    found = failures.find(ABOUT, "u")
    assert found is not None
    assert (found.error, found.failures) == ("second", 2)
    assert failures.add(reconcile(3))
    assert failures.find(ABOUT, "u") is None


def test_success_of_a_new_leader_counts_although_the_old_journal_is_read_later() -> None:
    failures = LastFailures()
    failures.add(reconcile(2, operator="new leader"))
    assert not failures.add(reconcile(1, "broken", operator="old leader"))
    assert failures.find(ABOUT, "u") is None


def test_success_of_another_controller_does_not_hide_a_failure() -> None:
    failures = LastFailures()
    failures.add(reconcile(1, "broken"))
    failures.add(reconcile(2, controller="other"))
    assert failures.find(ABOUT, "u") is not None


def test_a_failure_is_not_shown_for_another_object_of_the_same_name() -> None:
    failures = LastFailures()
    failures.add(reconcile(1, "broken"))
    assert failures.find(ABOUT, "another") is None
    failures.add(reconcile(2, "broken", uid="another"))
    failures.forget(ABOUT, "u")
    found = failures.find(ABOUT, "another")
    assert found is not None
    assert found.failures == 1


def test_objects_beyond_the_limit_are_forgotten() -> None:
    failures = LastFailures(limit=0)
    failures.add(reconcile(1, "broken"))
    assert failures.find(ABOUT, "u") is None
