"""What the page shows of an object, whatever the object looks like."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Kind
from kubewright.ui.summaries import ObjectSummary, summarize


def kind(name: str, group: str = "") -> Kind:
    return Kind(group=group, version="v1", kind=name, plural=f"{name.lower()}s")


def summary(of: Kind, *, reconciled: bool = False, **document: Any) -> ObjectSummary:
    metadata = {"name": "a", "namespace": "n", "uid": "u", **document.pop("metadata", {})}
    return summarize({"metadata": metadata, **document}, of, scalable=False, reconciled=reconciled)


def waiting(reason: str) -> dict[str, Any]:
    return {
        "phase": "Pending",
        "containerStatuses": [{"ready": False, "state": {"waiting": {"reason": reason}}}],
    }


ONE = {"containers": [{"name": "c"}]}
READY = {"phase": "Running", "containerStatuses": [{"ready": True}]}
CRASHED = [{"ready": False, "state": {"terminated": {"exitCode": 2, "reason": "Error"}}}]


@pytest.mark.parametrize(
    ("status", "state", "text"),
    [
        (READY, "ready", "1/1 Running"),
        ({"phase": "Succeeded"}, "ready", "Completed"),
        ({"phase": "Failed", "reason": "Evicted"}, "failed", "Evicted"),
        (waiting("ContainerCreating"), "progressing", "0/1 ContainerCreating"),
        (waiting("ImagePullBackOff"), "failed", "0/1 ImagePullBackOff"),
        ({"phase": "Running", "containerStatuses": CRASHED}, "failed", "0/1 Error"),
        (
            {
                "phase": "Pending",
                "conditions": [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}],
            },
            "waiting",
            "0/1 Unschedulable",
        ),
        ({}, "unknown", "Unknown"),
    ],
)
def test_a_pod_has_the_state_that_kubectl_shows(status: Any, state: str, text: str) -> None:
    found = summary(kind("Pod"), spec=ONE, status=status)
    assert (found.state, found.state_text) == (state, text)


@pytest.mark.parametrize(
    ("status", "state", "text"),
    [
        ({"replicas": 3, "readyReplicas": 3, "updatedReplicas": 3}, "ready", "3/3 ready"),
        ({"replicas": 3, "readyReplicas": 1, "updatedReplicas": 3}, "progressing", "1/3 ready"),
        ({"replicas": 4, "readyReplicas": 3, "updatedReplicas": 1}, "progressing", "3/3 ready"),
        ({"observedGeneration": 1, "readyReplicas": 3}, "progressing", "3/3 ready"),
        (
            {
                "conditions": [
                    {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
                ]
            },
            "failed",
            "0/3 ProgressDeadlineExceeded",
        ),
    ],
)
def test_a_deployment_is_ready_once_all_replicas_are(status: Any, state: str, text: str) -> None:
    found = summary(
        kind("Deployment", "apps"), metadata={"generation": 2}, spec={"replicas": 3}, status=status
    )
    assert (found.state, found.state_text) == (state, text)


def condition(name: str, status: str, reason: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": name, "status": status, "reason": reason}]}


@pytest.mark.parametrize(
    ("status", "state", "text"),
    [
        (condition("Ready", "True", "AllGood"), "ready", "Ready: AllGood"),
        (condition("Ready", "False", "ReconcileFailed"), "failed", "Ready=False: ReconcileFailed"),
        (condition("Ready", "False", "WaitingForDatabase"), "waiting", "Ready=False: WaitingForDatabase"),
        (condition("Ready", "False", "Creating"), "progressing", "Ready=False: Creating"),
        (condition("Ready", "Unknown"), "progressing", "Ready=Unknown"),
        (condition("Degraded", "True", "DiskFull"), "failed", "Degraded: DiskFull"),
        (condition("Tasty", "True"), "unknown", "Tasty"),
        ({"phase": "ERROR: no such template"}, "failed", "ERROR: no such template"),
        ({"state": "RUNNING"}, "ready", "RUNNING"),
        ({"phase": "Brewing"}, "progressing", "Brewing"),
        ({}, "unknown", ""),
    ],
)
def test_a_custom_kind_has_a_state_by_conditions_or_phase(status: Any, state: str, text: str) -> None:
    found = summary(kind("Kettle", "example.com"), status=status)
    assert (found.state, found.state_text) == (state, text)


def test_deletion_and_pause_come_before_everything_else() -> None:
    paused = {"annotations": {"kubewright.dev/paused": "true"}}
    assert summary(kind("Pod"), reconciled=True, metadata=paused, spec=ONE, status=READY).state == "paused"
    deleted = {"deletionTimestamp": "2026-01-31T12:00:00Z", "finalizers": ["a/b"], **paused}
    found = summary(kind("Pod"), metadata=deleted, status=READY)
    assert (found.state, found.state_text) == ("deleting", "Terminating: a/b")
    assert found.deleting == "2026-01-31T12:00:00Z"


def test_an_object_without_a_controller_is_not_paused_by_the_annotation() -> None:
    paused = {"annotations": {"kubewright.dev/paused": "true"}}
    assert summary(kind("Pod"), metadata=paused, spec=ONE, status=READY).state == "ready"


def names(found: ObjectSummary) -> set[tuple[str, str, str]]:
    return {(each.kind, each.namespace, each.name) for each in found.references}


def test_a_pod_refers_to_what_its_fields_name() -> None:
    spec = {
        "serviceAccountName": "sa",
        "nodeName": "node-1",
        "imagePullSecrets": [{"name": "pull"}],
        "volumes": [
            {"name": "v", "configMap": {"name": "config"}},
            {"name": "w", "persistentVolumeClaim": {"claimName": "claim"}},
            {"name": "x", "projected": {"sources": [{"secret": {"name": "projected"}}]}},
        ],
        "containers": [
            {
                "name": "c",
                "env": [{"name": "E", "valueFrom": {"secretKeyRef": {"name": "key", "key": "k"}}}],
                "envFrom": [{"configMapRef": {"name": "env"}}],
            }
        ],
    }
    found = summary(kind("Pod"), spec=spec)
    assert names(found) == {
        ("ServiceAccount", "n", "sa"),
        ("Node", "", "node-1"),
        ("Secret", "n", "pull"),
        ("ConfigMap", "n", "config"),
        ("PersistentVolumeClaim", "n", "claim"),
        ("Secret", "n", "projected"),
        ("Secret", "n", "key"),
        ("ConfigMap", "n", "env"),
    }
    paths = {each.name: each.path for each in found.references}
    assert paths["key"] == "spec.containers[name=c].env[name=E].valueFrom.secretKeyRef"


def test_other_kinds_refer_to_what_they_name() -> None:
    ingress = {"rules": [{"http": {"paths": [{"backend": {"service": {"name": "web"}}}]}}]}
    assert names(summary(kind("Ingress", "networking.k8s.io"), spec=ingress)) == {("Service", "n", "web")}
    scaler = {"scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"}}
    found = summary(kind("HorizontalPodAutoscaler", "autoscaling"), spec=scaler)
    assert [(each.group, each.name) for each in found.references] == [("apps", "d")]
    binding = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "r"},
        "subjects": [{"kind": "ServiceAccount", "namespace": "other", "name": "sa"}],
    }
    assert names(summary(kind("RoleBinding", "rbac.authorization.k8s.io"), **binding)) == {
        ("ClusterRole", "", "r"),
        ("ServiceAccount", "other", "sa"),
    }


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *(
                        "metadata",
                        "spec",
                        "status",
                        "conditions",
                        "phase",
                        "replicas",
                        "containers",
                        "name",
                        "kind",
                    ),
                    *(
                        "ownerReferences",
                        "secretRef",
                        "state",
                        "waiting",
                        "annotations",
                        "finalizers",
                        "type",
                        "uid",
                    ),
                    *(
                        "containerStatuses",
                        "readyReplicas",
                        "observedGeneration",
                        "deletionTimestamp",
                        "generation",
                    ),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=30,
)


@given(document=st.dictionaries(st.sampled_from(["metadata", "spec", "status", "subjects"]), JSON))
@pytest.mark.parametrize("of", [kind("Pod"), kind("Deployment", "apps"), kind("Thing", "example.com")])
def test_an_object_of_any_shape_has_a_summary(of: Kind, document: dict[str, Any]) -> None:
    summarize(document, of, scalable=True, reconciled=True)
