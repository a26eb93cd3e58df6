"""Field ownership agrees with what a real server answered, write by write (data/ownership.json)."""

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from kubewright.api import GroupVersionKind
from kubewright.devserver.merge import (
    ApplyConflicts,
    ApplyError,
    FieldWrite,
    MergeSchema,
    apply,
    keep_timestamps,
    merge_schema_of_crd,
    resets_ownership,
    update_managed_fields,
)
from kubewright.devserver.wire import load_types, untyped

JsonObject = dict[str, Any]

TYPES = load_types()
CORPUS = json.loads((Path(__file__).parent / "data" / "ownership.json").read_bytes())
SCHEMAS = {
    crd["spec"]["names"]["kind"]: crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    for crd in CORPUS["crds"]
}
# The fields that each endpoint does not change, so that they get no owner there.
STATUS_LEAVES = {
    "ClusterRole": [],
    "CustomResourceDefinition": [("metadata",), ("spec",)],
    "Deployment": [("spec",), ("metadata", "labels")],
    "Ingress": [("spec",)],
    "Node": [("spec",)],
    "Pod": [("spec",), ("metadata", "deletionTimestamp"), ("metadata", "ownerReferences")],
    "Service": [("spec",)],
    "StatefulSet": [("spec",)],
    "Thing": [("apiVersion",), ("kind",), ("metadata",), ("spec",)],
}
# Admission and storage add these to a new Pod after ownership was noted.
ADDED_LATER = {"spec": ("tolerations", "priority", "preemptionPolicy"), "status": ("phase", "qosClass")}


class Replay:
    """One scenario, replayed without a server: the live object is always what the real one answered last."""

    def __init__(self, scenario: JsonObject) -> None:
        body = next(step["body"] for step in scenario["steps"] if "kind" in step["body"])
        self.gvk = GroupVersionKind.parse(body["apiVersion"], body["kind"])
        self.custom = self.gvk.kind in SCHEMAS
        self.empty: JsonObject = {"apiVersion": self.gvk.api_version, "kind": self.gvk.kind}
        if not self.custom:
            self.empty = TYPES.zero(self.gvk)
        self.live: JsonObject | None = None

    @property
    def schema(self) -> MergeSchema:
        return merge_schema_of_crd(SCHEMAS[self.gvk.kind]) if self.custom else TYPES.merge_schema(self.gvk)

    def round_trip(self, value: JsonObject) -> JsonObject:
        return untyped(value) if self.custom else TYPES.decode(self.gvk, value)[0]

    def write(self, step: JsonObject, answer: JsonObject) -> JsonObject:
        entries = answer["body"]["metadata"].get("managedFields", [])
        latest = max([entry.get("time", "") for entry in entries], default="")
        write = FieldWrite(step["manager"], self.gvk.api_version, latest, step.get("subresource", ""))
        base = self.live or self.empty
        if step["verb"] == "apply":
            force = step.get("force", False)
            leaves = self.leaves(step)
            new = apply(
                self.schema, base, step["body"], write, force=force, empty=self.empty, reset_fields=leaves
            )
        else:
            new = self._update(base, step, answer, write)
        return self.round_trip(keep_timestamps(new, base))

    def leaves(self, step: JsonObject) -> list[tuple[str, ...]]:
        if step.get("subresource"):
            return STATUS_LEAVES[self.gvk.kind]
        return [("status",)] if self.gvk.kind in STATUS_LEAVES else []

    def _update(
        self, base: JsonObject, step: JsonObject, answer: JsonObject, write: JsonObject
    ) -> JsonObject:
        new = self.round_trip(bare(answer["body"]))
        if step["verb"] == "create" and self.gvk.kind == "Pod":
            for part, names in ADDED_LATER.items():
                new[part] = {key: item for key, item in new[part].items() if key not in names}
        if step["verb"] == "replace":
            sent = answer["sent"]["metadata"].get("managedFields")
            new["metadata"] |= {"managedFields": sent} if sent else {}
        if self.live is not None:
            new["metadata"]["uid"] = self.live["metadata"]["uid"]
        reset = resets_ownership(answer["sent"])
        return update_managed_fields(
            self.schema, base, new, write, reset_fields=self.leaves(step), reset=reset
        )


def bare(value: JsonObject) -> JsonObject:
    """Take off what the server itself writes."""
    value = copy.deepcopy(value)
    for key in ("uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"):
        value["metadata"].pop(key, None)
    return value


def differing(ours: Any, real: Any, path: str = "") -> list[str]:
    """List paths of ours that the real answer has not or has otherwise; it may have defaults besides."""
    if isinstance(ours, dict) and isinstance(real, dict):
        return [
            found
            for key in ours
            for found in (
                differing(ours[key], real[key], f"{path}.{key}") if key in real else [f"{path}.{key}"]
            )
        ]
    if isinstance(ours, list) and isinstance(real, list) and len(ours) == len(real):
        pairs = enumerate(zip(ours, real, strict=True))
        return [found for n, (mine, theirs) in pairs for found in differing(mine, theirs, f"{path}[{n}]")]
    return [] if ours == real or path.endswith(".targetPort") else [path]


@pytest.mark.parametrize(
    "scenario", CORPUS["scenarios"], ids=lambda scenario: scenario["title"].replace(" ", "-")
)
def test_ownership_is_what_the_real_server_notes(scenario: JsonObject) -> None:
    replay = Replay(scenario)
    for number, (step, answer) in enumerate(zip(scenario["steps"], scenario["answers"], strict=True)):
        replay.live = answer.get("before", replay.live)
        real, place = answer["body"], f"write {number}: {step['verb']} by {step['manager']}"
        if answer["status"] in {200, 201}:
            ours = replay.write(step, answer)
            noted = ours["metadata"].get("managedFields", [])
            assert json.dumps(noted) == json.dumps(real["metadata"].get("managedFields", [])), place
            kept = {key: item for key, item in bare(ours).items() if (key,) not in replay.leaves(step)}
            assert differing(kept, real) == [], place
            replay.live = real
        elif answer["status"] == 409:
            with pytest.raises(ApplyConflicts) as conflicts:
                replay.write(step, {"body": {"metadata": {}}})
            assert str(conflicts.value) == real["message"], place
            causes = [{"message": c.message, "field": c.field} for c in conflicts.value.conflicts]
            assert causes == [{k: c[k] for k in ("message", "field")} for c in real["details"]["causes"]], (
                place
            )
        elif answer["status"] == 500:
            with pytest.raises(ApplyError) as problem:
                replay.write(step, {"body": {"metadata": {}}})
            assert str(problem.value) == real["message"], place
        else:
            assert answer["status"] == 422, place  # refused by validation, which comes after ownership
