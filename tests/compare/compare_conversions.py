"""Responses of a conversion webhook: good ones, and the mistakes that the path of its URL and labels of objects name.

Versions whose name ends with 2 have `spec.dimensions.size` where the others have `spec.size`. A segment of the path
(`https://{hook}/reply/result=Failure`) changes each response; the label `break` of an object changes that object, or
the response of each review that contains it.
"""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from compare_case import copy
from conformance_hooks import Reply, Review, hook_server

JsonObject = dict[str, Any]


def _set(**fields: Any) -> Callable[[JsonObject], None]:
    return lambda obj: obj.update(fields)


def _meta(**fields: Any) -> Callable[[JsonObject], None]:
    return lambda obj: obj["metadata"].update(fields)


OBJECT_MISTAKES: dict[str, Callable[[JsonObject], None]] = {
    "name": _meta(name="other"),
    "namespace": _meta(namespace="other"),
    "uid": _meta(uid="other"),
    "labels": _meta(labels={"bad key!": "x"}),
    "annotations": _meta(annotations={"converted": "yes"}),
    "finalizers": _meta(finalizers=["ex.io/mine"]),
    "generation": _meta(generation=77),
    "revision": _meta(resourceVersion="1"),
    "owners": _meta(ownerReferences=[{"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"}]),
    "created": _meta(creationTimestamp="2001-01-01T00:00:00Z"),
    "fields": _meta(managedFields=[]),
    "label-type": _meta(labels="text"),
    "version": _set(apiVersion="ex.io/v9"),
    "group": lambda obj: obj.update(apiVersion=f"other.{obj['apiVersion']}"),
    "kind": _set(kind="Other"),
    "kindless": lambda obj: obj.pop("kind"),
    "metadata": lambda obj: obj.pop("metadata"),
    "metadata-type": _set(metadata=[]),
    "spec": _set(spec="text"),
    "extra": _set(extra={"a": 1}),
    "large": lambda obj: obj["spec"].update(size=2**70),
}
"""What a label `break` does to the converted object."""
RESPONSE_MISTAKES: dict[str, Callable[[JsonObject], None]] = {
    "count": lambda body: body["response"].update(convertedObjects=[]),
    "more": lambda body: body["response"]["convertedObjects"].append({}),
    "null": lambda body: body["response"].update(convertedObjects=None),
    "item-null": lambda body: body["response"].update(convertedObjects=[None]),
    "item-text": lambda body: body["response"].update(convertedObjects=["text"]),
    "fail": lambda body: body["response"].update(result={"status": "Failure", "message": "cannot do that"}),
    "fail-silent": lambda body: body["response"].update(result={"status": "Failure"}),
    "fail-reason": lambda body: body["response"].update(
        result={"status": "Failure", "reason": "NotFound", "code": 404, "message": "gone"}
    ),
    "result": lambda body: body["response"].update(result={"status": "Odd", "message": "what"}),
    "result-absent": lambda body: body["response"].pop("result"),
    "uid": lambda body: body["response"].update(uid="other"),
    "uid-absent": lambda body: body["response"].pop("uid"),
    "response": lambda body: body.pop("response"),
    "review-version": _set(apiVersion="apiextensions.k8s.io/v1beta1"),
    "review-kind": _set(kind="AdmissionReview"),
    "review-kindless": lambda body: body.pop("kind"),
}
"""What a segment of the path, or the label `break` with the prefix `all-`, does to the response."""
HTTP_MISTAKES: dict[str, Reply] = {
    "http-500": (500, "text/plain", b"it broke"),
    "http-404": (404, "text/plain", b"404 page not found"),
    "http-201": (201, "application/json", b"{}"),
    "garbage": (200, "application/json", b"nope"),
    "empty": (200, "application/json", b""),
    "object": (200, "application/json", b"{}"),
    "array": (200, "application/json", b"[]"),
}
"""The HTTP response in place of a review, named like the others."""


def convert(segments: list[str], review: Review) -> Reply:
    """Return the response to a ConversionReview."""
    request = review["request"]
    labels = [_break_label(obj) for obj in request["objects"]]
    mistakes = [name for name in segments if name != "good"]
    mistakes += [label.removeprefix("all-") for label in labels if label.startswith("all-")]
    for name in mistakes:
        if name in HTTP_MISTAKES:
            return HTTP_MISTAKES[name]
    converted = [
        _converted(obj, request["desiredAPIVersion"], label)
        for obj, label in zip(request["objects"], labels, strict=True)
    ]
    response = {"uid": request["uid"], "convertedObjects": converted, "result": {"status": "Success"}}
    body: JsonObject = {"apiVersion": review["apiVersion"], "kind": "ConversionReview", "response": response}
    for name in mistakes[:1]:
        RESPONSE_MISTAKES[name](body)
    return 200, "application/json", json.dumps(body).encode()


def _break_label(obj: JsonObject) -> str:
    return ((obj.get("metadata") or {}).get("labels") or {}).get("break", "")


def _converted(obj: JsonObject, version: str, label: str) -> JsonObject:
    made = copy(obj)
    spec = made.setdefault("spec", {})
    if version.endswith("2") and "size" in spec:
        spec["dimensions"] = {"size": spec.pop("size")}
    elif not version.endswith("2") and "dimensions" in spec:
        spec["size"] = (spec.pop("dimensions") or {}).get("size")
    made["apiVersion"] = version
    if label in OBJECT_MISTAKES:
        OBJECT_MISTAKES[label](made)
    return made


@contextmanager
def conversion_server() -> Iterator[dict[str, str]]:
    """Serve conversions; gives the values that cases fill in."""
    with hook_server(convert) as values:
        yield values
