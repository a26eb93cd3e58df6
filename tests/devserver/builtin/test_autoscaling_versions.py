"""Autoscalers between their versions."""

from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import GroupVersionKind
from kubewright.devserver.builtin.autoscaling import convert

V1 = GroupVersionKind("autoscaling", "v1", "HorizontalPodAutoscaler")
V2 = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
AMOUNTS = st.sampled_from(["1", "30", "500m", "2Gi"])
METRICS = st.one_of(
    st.builds(
        lambda name, value: {
            "type": "Resource",
            "resource": {"name": name, "target": {"type": "AverageValue", "averageValue": value}},
        },
        st.sampled_from(["memory", "cpu"]),
        AMOUNTS,
    ),
    st.builds(
        lambda value: {
            "type": "Pods",
            "pods": {"metric": {"name": "rps"}, "target": {"type": "AverageValue", "averageValue": value}},
        },
        AMOUNTS,
    ),
    st.builds(
        lambda value: {
            "type": "External",
            "external": {
                "metric": {"name": "queue", "selector": {"matchLabels": {"q": "a"}}},
                "target": {"type": "Value", "value": value},
            },
        },
        AMOUNTS,
    ),
    st.builds(
        lambda value: {
            "type": "Object",
            "object": {
                "describedObject": {"kind": "Service", "name": "s", "apiVersion": "v1"},
                "metric": {"name": "hits"},
                "target": {"type": "Value", "value": value},
            },
        },
        AMOUNTS,
    ),
)


@given(metrics=st.lists(METRICS, min_size=1, max_size=4), percent=st.none() | st.integers(1, 100))
def test_autoscalers_survive_conversion_to_v1_and_back(metrics: list[object], percent: int | None) -> None:
    if percent is not None:
        target = {"type": "Utilization", "averageUtilization": percent}
        metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}, *metrics]
    scaler = {
        "apiVersion": V2.api_version,
        "kind": V2.kind,
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3, "metrics": metrics},
        "status": {"desiredReplicas": 0, "currentMetrics": None},
    }
    assert convert(convert(scaler, V1), V2) == scaler


def test_the_empty_result_of_a_metric_that_cannot_be_read_is_kept_in_version_1() -> None:
    """The real controller writes such results while a metric is missing."""
    used: dict[str, object] = {"averageUtilization": 20}
    resource = {"name": "cpu", "current": used}
    current = [{"type": ""}, {"type": "Resource", "resource": resource}, {"type": "Unknown"}]
    scaler = {
        "apiVersion": V2.api_version,
        "kind": V2.kind,
        "metadata": {"name": "h"},
        "spec": {"maxReplicas": 3},
        "status": {"desiredReplicas": 0, "currentMetrics": current},
    }
    older = convert(scaler, V1)
    flat = '{"name":"cpu","currentAverageUtilization":20,"currentAverageValue":"0"}'
    assert older["metadata"]["annotations"] == {
        "autoscaling.alpha.kubernetes.io/current-metrics": (
            '[{"type":""},{"type":"Resource","resource":' + flat + '},{"type":"Unknown"}]'
        )
    }
    # A quantity of version 1 cannot be missing, so it comes back as 0.
    used["averageValue"] = "0"
    assert convert(older, V2) == scaler
