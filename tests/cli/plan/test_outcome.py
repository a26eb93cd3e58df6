"""Counts and texts of plans, from states and changes alone."""

from typing import Any

import pytest

from kubewright.cli.plan.changes import PlannedChange, changes, state_of
from kubewright.cli.plan.outcome import PlanResult, as_markdown, as_text, summary


def workload(kind: str, image: str, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": "app", "image": image}]}}
    metadata = {"name": "web", "namespace": "shop", "uid": "1"}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": metadata,
        "spec": {"replicas": 1, "template": template, **spec},
    }


@pytest.mark.parametrize(
    ("kind", "spec", "restarts"),
    [
        ("Deployment", {}, True),
        ("StatefulSet", {}, True),
        ("DaemonSet", {"updateStrategy": {"type": "RollingUpdate"}}, True),
        ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}}, False),
        ("Deployment", {"paused": True}, False),
        ("Deployment", {"replicas": 0}, False),
        ("ReplicaSet", {}, False),
    ],
)
def test_workloads_whose_pods_restart_are_counted(kind: str, spec: dict[str, Any], restarts: bool) -> None:
    before = state_of([workload(kind, "web:1", **spec)])
    after = state_of([workload(kind, "web:2", **spec)])
    (change,) = changes(before, after)
    assert change.restarts is restarts
    assert ("; Pods of 1 workload restart" in summary([change])) is restarts


def test_a_change_of_replicas_restarts_no_pods() -> None:
    before = state_of([workload("Deployment", "web:1")])
    after = state_of([workload("Deployment", "web:1", replicas=3)])
    (change,) = changes(before, after)
    assert not change.restarts
    assert not any(change.restarts for change in changes({}, after))


def test_the_counts_are_those_of_the_changes_that_are_shown() -> None:
    pending = [PlannedChange("change", "configmap/a", "x", ("+a",))]
    assert list(as_text(PlanResult(pending, None, []))) == [
        "+a",
        "plan: 0 to create, 1 to change, 0 to delete; nothing was written to the cluster",
    ]
    assert list(as_text(PlanResult(pending, [], []))) == [
        "# changes that the operator would make without the change",
        "+a",
        "# changes caused by the change",
        "without the change: 0 to create, 1 to change, 0 to delete",
        "plan: 0 to create, 0 to change, 0 to delete; nothing was written to the cluster",
    ]


def test_markdown_in_objects_does_not_end_the_diff() -> None:
    changed = [PlannedChange("change", "configmap/a", "x", ("+  text: ```", "+</details>"), restarts=True)]
    lines = list(as_markdown(PlanResult([], changed, ["a `bad` word\nin two lines"])))
    assert "````diff" in lines
    assert lines.count("````") == 1
    assert lines.index("````") > lines.index("+</details>")
    assert "- `` a `bad` word in two lines ``" in lines
    assert "Pods restart: `configmap/a in x`" in lines
