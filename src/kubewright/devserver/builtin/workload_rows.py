"""What kubectl shows of workloads."""

from typing import Any

from kubewright.devserver.builtin.cells import (
    AGE,
    NAME,
    NONE,
    containers,
    integer,
    labels_text,
    object_age,
    selector_text,
    wide,
)
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.devserver.strategy import Column

_WIDE = (wide("Containers"), wide("Images"), wide("Selector"))
DEPLOYMENT = (NAME, Column("Ready"), Column("Up-to-date"), Column("Available"), AGE, *_WIDE)
REPLICA_SET = (NAME, integer("Desired"), integer("Current"), integer("Ready"), AGE, *_WIDE)
STATEFUL_SET = (NAME, Column("Ready"), AGE, wide("Containers"), wide("Images"))
DAEMON_SET = (
    NAME,
    *(integer(name) for name in ("Desired", "Current", "Ready", "Up-to-date", "Available")),
    Column("Node Selector"),
    AGE,
    *_WIDE,
)
REVISION = (NAME, Column("Controller"), Column("Revision"), AGE)


def _counts(obj: JsonObject, *names: str) -> list[int]:
    status: JsonObject = section(obj, "status")
    return [status.get(name, 0) for name in names]


def deployment_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a Deployment's cells."""
    names, images = containers(section(obj["spec"], "template"))
    updated, available, ready = _counts(obj, "updatedReplicas", "availableReplicas", "readyReplicas")
    selector = selector_text(obj["spec"].get("selector"))
    shown = f"{ready}/{obj['spec'].get('replicas', 0)}"
    return [obj["metadata"]["name"], shown, updated, available, object_age(obj, now), names, images, selector]


def replica_set_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a ReplicaSet's cells."""
    return _replica_row(obj, now, selector_text(obj["spec"].get("selector")))


def replication_controller_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a ReplicationController's cells."""
    return _replica_row(obj, now, labels_text(obj["spec"].get("selector")))


def _replica_row(obj: JsonObject, now: float, selector: str) -> list[Any]:
    names, images = containers(section(obj["spec"], "template"))
    current, ready = _counts(obj, "replicas", "readyReplicas")
    wanted = obj["spec"].get("replicas", 0)
    return [obj["metadata"]["name"], wanted, current, ready, object_age(obj, now), names, images, selector]


def stateful_set_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a StatefulSet's cells."""
    names, images = containers(section(obj["spec"], "template"))
    (ready,) = _counts(obj, "readyReplicas")
    shown = f"{ready}/{obj['spec'].get('replicas', 0)}"
    return [obj["metadata"]["name"], shown, object_age(obj, now), names, images]


def daemon_set_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a DaemonSet's cells."""
    names, images = containers(section(obj["spec"], "template"))
    counts = _counts(
        obj,
        "desiredNumberScheduled",
        "currentNumberScheduled",
        "numberReady",
        "updatedNumberScheduled",
        "numberAvailable",
    )
    nodes = labels_text(obj["spec"]["template"]["spec"].get("nodeSelector"))
    selector = selector_text(obj["spec"].get("selector"))
    return [obj["metadata"]["name"], *counts, nodes, object_age(obj, now), names, images, selector]


def revision_row(obj: JsonObject, now: float) -> list[Any]:
    """Give a ControllerRevision's cells."""
    owners = [owner for owner in items(obj["metadata"], "ownerReferences") if owner.get("controller")]
    owner = NONE
    if owners:
        group = owners[0]["apiVersion"].rpartition("/")[0]
        kind = f"{owners[0]['kind'].lower()}.{group}" if group else owners[0]["kind"].lower()
        owner = f"{kind}/{owners[0]['name']}"
    return [obj["metadata"]["name"], owner, obj.get("revision", 0), object_age(obj, now)]
