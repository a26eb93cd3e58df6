"""Reviews as an API server sends them."""

import base64
import json
from typing import Any

from kubewright.api import Object, json_patch, kind_of, to_wire

JsonObject = dict[str, Any]


def admission_review(
    obj: Object | JsonObject | None,
    old: Object | JsonObject | None = None,
    *,
    operation: str = "CREATE",
    uid: str = "u-1",
    **changes: Any,
) -> JsonObject:
    shown = obj if obj is not None else old
    assert shown is not None
    wire = shown if isinstance(shown, dict) else to_wire(shown)
    group, _, version = wire["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": wire["kind"]}
    plural = kind_of(shown).plural if isinstance(shown, Object) else f"{wire['kind'].lower()}s"
    resource = {"group": group, "version": version, "resource": plural}
    request = {
        "uid": uid,
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": wire["metadata"].get("name", ""),
        "namespace": wire["metadata"].get("namespace", ""),
        "operation": operation,
        "userInfo": {"username": "alice", "uid": "a", "groups": ["dev", "system:authenticated"]},
        "object": to_wire(obj) if isinstance(obj, Object) else obj,
        "oldObject": to_wire(old) if isinstance(old, Object) else old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1"},
    }
    return {"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": {**request, **changes}}


def conversion_review(desired: str, *objects: Object | JsonObject, uid: str = "c-1") -> JsonObject:
    wires = [to_wire(obj) if isinstance(obj, Object) else obj for obj in objects]
    request = {"uid": uid, "desiredAPIVersion": desired, "objects": wires}
    return {"kind": "ConversionReview", "apiVersion": "apiextensions.k8s.io/v1", "request": request}


def body(document: Any) -> bytes:
    return json.dumps(document).encode()


def patched(raw: JsonObject, response: JsonObject) -> JsonObject:
    return json_patch(raw, operations(response))


def operations(response: JsonObject) -> list[JsonObject]:
    return json.loads(base64.b64decode(response["patch"]))
