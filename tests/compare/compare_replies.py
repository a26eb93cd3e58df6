"""Responses of admission webhooks, drawn as the path of a URL so that a case holds and shrinks them.

A URL such as `https://{hook}/reply/deny/code=418/uid=other` says what the webhook responds: the first segment is a
valid response, each further one changes a part of it. The server keeps no state, so both API servers get the same
response to the same review. `compare_shrink` removes segments that a difference does not need.
"""

import base64
import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from conformance_hooks import Reply, Review, hook_server, wait_slowly

JSON = "application/json"
TEXTS = {
    "plain": "no",
    "quotes": 'say "no" \\ é',
    "lines": "one\ntwo",
    "control": "a\u0007b",
    "long": "x" * 300,
    "empty": "",
    "comma": "a, b",
}
VALUES: dict[str, Any] = {
    "text": "b",
    "one": "1",
    "number": 1,
    "null": None,
    "true": True,
    "float": 1.5,
    "large": 2**40,
    "map": {"a": "b"},
    "list": ["ex.io/f"],
    "nothing": {},
    "none": [],
    "bad": "not valid!",
    "long": "x" * 300,
    "container": {"name": "side", "image": "s"},
    "owner": {"apiVersion": "v1", "kind": "ConfigMap", "name": "o", "uid": "u"},
    "time": "2024-01-01T00:00:00Z",
}
PATHS = (
    *(
        "metadata.labels.mut",
        "metadata.labels.a",
        "metadata.labels",
        "metadata.annotations",
        "data.k",
        "data.new",
    ),
    *(
        "metadata.annotations.x",
        "data",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.replicas",
    ),
    *("metadata.resourceVersion", "metadata.finalizers", "metadata.ownerReferences", "metadata.generation"),
    *(
        "metadata.creationTimestamp",
        "metadata.deletionTimestamp",
        "metadata.managedFields",
        "kind",
        "apiVersion",
    ),
    *(
        "spec.template.spec.containers.-",
        "spec.template.spec.containers.0.image",
        "spec.selector",
        "nope",
        "",
    ),
    *(
        "spec.template.spec.containers.9",
        "metadata.generateName",
        "metadata",
        "immutable",
        "binaryData.b",
        "status",
    ),
    *("spec.template.metadata.labels.a", "metadata.finalizers.0", "metadata.ownerReferences.0", "data.a~1b"),
)
OPERATIONS = ("add", "add", "add", "add", "replace", "replace", "remove", "test", "copy", "move", "nope")
BODIES = {
    "garbage": "nope",
    "array": "[]",
    "null": "null",
    "empty": "",
    "number": "1",
    "truncated": '{"apiVersion":"admission.k8s.io/v1"',
    "object": "{}",
    "pod": '{"apiVersion":"v1","kind":"Pod"}',
    "absent": '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"}',
    "trailing": '{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview"} x',
    "status": '{"kind":"Status","apiVersion":"v1","status":"Failure","message":"own words","code":500}',
}
PATCHES = {
    "text": "nope",
    "none": "[]",
    "object": "{}",
    "null": "null",
    "numbers": "[1]",
    "empty": "[{}]",
    "pathless": '[{"op":"add","value":1}]',
    "valueless": '[{"op":"add","path":"/data"}]',
}
_CODES = (
    "200",
    "204",
    "301",
    "399",
    "400",
    "401",
    "403",
    "404",
    "409",
    "418",
    "422",
    "429",
    "500",
    "599",
    "0",
    "-1",
)
_REASONS = ("NotFound", "Invalid", "Forbidden", "Because", "AlreadyExists", "Conflict", "Timeout", "")
_HTTP = ("201", "400", "401", "403", "404", "409", "418", "429", "500", "503")
_TYPES = ("text", "number", "list", "null", "true", "map")


def draw_reply(chance: random.Random, *, mutating: bool) -> str:
    """Draw the path of an admission webhook: mostly a valid response, otherwise one with a few mistakes."""
    kinds = ["allow", "deny", "deny", "echo"]
    if mutating:
        kinds += ["append=a", "append=b", "append=c", "change", "change", "change", "change"]
    segments = [chance.choice(kinds)]
    if segments[0] == "change":
        segments = ["allow", *(_operation(chance) for _ in range(chance.choice((1, 1, 2, 3))))]
    if segments[0] == "deny":
        segments += [text for text in _result(chance) if chance.random() < 0.5]
    if chance.random() < 0.25:
        segments.append(f"warn={chance.choice(list(TEXTS))}")
    if chance.random() < 0.1:
        segments.append(f"audit={chance.choice(list(TEXTS))}")
    if chance.random() < 0.35:
        segments.append(_mistake(chance, mutating=mutating))
    return "/".join(("reply", *segments))


def _operation(chance: random.Random) -> str:
    operation, path = chance.choice(OPERATIONS), chance.choice(PATHS)
    value = chance.choice(PATHS) if operation in ("copy", "move") else chance.choice(list(VALUES))
    return f"patch={operation}:{path}:{value}"


def _result(chance: random.Random) -> tuple[str, ...]:
    return (
        f"code={chance.choice(_CODES)}",
        f"reason={chance.choice(_REASONS)}",
        f"message={chance.choice(list(TEXTS))}",
        f"details={chance.choice(('causes', 'retry', 'name', 'text', 'list'))}",
        f"status={chance.choice(('Success', 'Failure', 'Odd', ''))}",
    )


def _mistake(chance: random.Random, *, mutating: bool) -> str:
    choices = [
        f"uid={chance.choice(('other', 'absent', 'number'))}",
        f"version={chance.choice(('v1beta1', 'v1', 'v2', 'absent', 'empty'))}",
        f"kind={chance.choice(('Pod', 'absent', 'empty'))}",
        f"http={chance.choice(_HTTP)}",
        f"body={chance.choice(list(BODIES))}",
        f"body={chance.choice(list(BODIES))}",
        f"type={chance.choice(('text:plain', 'text:html', 'application:yaml'))}",
        *(
            f"set={name}:{chance.choice(_TYPES)}"
            for name in (
                "allowed",
                "warnings",
                "auditAnnotations",
                "status",
                "response",
                "patch",
                "patchType",
                "extra",
            )
        ),
        f"raw={chance.choice(list(PATCHES))}",
        f"patchtype={chance.choice(('Merge', 'absent', 'empty', 'JSONPatch'))}",
    ]
    if chance.random() < 0.1:
        return "slow"
    return chance.choice(choices if mutating else choices[:-2] if chance.random() < 0.9 else choices)


def respond(segments: list[str], review: Review) -> Reply:
    """Return the response to a review that the segments of the path describe."""
    draft = _Draft(review)
    for segment in segments:
        draft.change(*segment.partition("=")[::2])
    return draft.reply()


@contextmanager
def reply_server() -> Iterator[dict[str, str]]:
    """Serve the drawn responses; gives the values that cases fill in."""
    with hook_server(respond) as values:
        yield values


class _Draft:
    """A response to an AdmissionReview while the segments of the path change it."""

    def __init__(self, review: Review) -> None:
        self._request = review["request"]
        self._response: Any = {"uid": self._request["uid"], "allowed": True}
        self._review = {
            "apiVersion": review["apiVersion"],
            "kind": "AdmissionReview",
            "response": self._response,
        }
        self._http: dict[str, Any] = {"status": 200, "type": JSON, "body": None}
        self._patch: list[Any] | None = None
        self._changes: dict[str, Callable[[str], None]] = {
            "allow": lambda value: None,
            "deny": lambda value: self._response.update(allowed=False),
            "echo": self._echo,
            "append": self._append,
            "patch": self._operation,
            "code": lambda value: self._result(code=int(value)),
            "reason": lambda value: self._result(reason=value),
            "message": lambda value: self._result(message=TEXTS[value]),
            "status": lambda value: self._result(status=value),
            "details": lambda value: self._result(details=_DETAILS[value]),
            "warn": lambda value: self._response.update(warnings=["first", TEXTS[value]]),
            "audit": lambda value: self._response.update(
                auditAnnotations={"k": TEXTS[value], "bad key/": "v"}
            ),
            "uid": lambda value: _put(self._response, "uid", {"other": "other", "number": 1}.get(value)),
            "version": self._version,
            "kind": lambda value: _put(self._review, "kind", {"Pod": "Pod", "empty": ""}.get(value)),
            "http": lambda value: self._http.update(status=int(value)),
            "body": lambda value: self._http.update(body=BODIES[value]),
            "type": lambda value: self._http.update(type=value.replace(":", "/")),
            "set": self._set,
            "raw": lambda value: self._response.update(patch=_encoded(PATCHES[value]), patchType="JSONPatch"),
            "patchtype": self._patch_type,
            "slow": lambda value: wait_slowly(),
        }

    def change(self, name: str, value: str) -> None:
        """Change the part of the response that a segment names."""
        self._changes[name](value)

    def reply(self) -> Reply:
        """Return the response."""
        body = self._http["body"]
        text = json.dumps(self._review) if body is None else body
        return self._http["status"], self._http["type"], text.encode()

    def _result(self, **fields: Any) -> None:
        if isinstance(result := self._response.setdefault("status", {}), dict):
            result.update(fields)

    def _echo(self, value: str) -> None:
        shown = {key: item for key, item in self._request.items() if key not in ("uid", "userInfo")}
        shown["user"] = self._request["userInfo"]["username"]
        self._response["allowed"] = False
        self._result(message=json.dumps(shown, separators=(",", ":"), ensure_ascii=False))

    def _append(self, value: str) -> None:
        """Append a letter to an annotation: the object shows which webhooks were called, and in which order."""
        metadata = (self._request.get("object") or {}).get("metadata") or {}
        annotations = dict(metadata.get("annotations") or {})
        annotations["seen"] = annotations.get("seen", "") + value
        self._add({"op": "add", "path": "/metadata/annotations", "value": annotations})

    def _operation(self, value: str) -> None:
        operation, path, more = value.split(":")
        made = {"op": operation, "path": _pointer(path)}
        if operation in ("copy", "move"):
            made["from"] = _pointer(more)
        elif operation != "remove":
            made["value"] = VALUES[more]
        self._add(made)

    def _add(self, operation: Any) -> None:
        self._patch = [*(self._patch or ()), operation]
        self._response.update(patch=_encoded(json.dumps(self._patch)), patchType="JSONPatch")

    def _version(self, value: str) -> None:
        group = "admission.k8s.io/"
        _put(self._review, "apiVersion", {"absent": None, "empty": ""}.get(value, group + value))

    def _patch_type(self, value: str) -> None:
        _put(self._response, "patchType", {"absent": None, "empty": ""}.get(value, value))

    def _set(self, value: str) -> None:
        name, _, made = value.partition(":")
        (self._review if name == "response" else self._response)[name] = VALUES[made]


_DETAILS: dict[str, Any] = {
    "causes": {
        "name": "x",
        "kind": "ConfigMap",
        "causes": [{"reason": "FieldValueInvalid", "message": "Invalid value", "field": "data.a"}],
    },
    "retry": {"retryAfterSeconds": 3},
    "name": {"name": "other", "group": "g", "uid": "u"},
    "text": "text",
    "list": [],
}


def _put(target: dict[str, Any], name: str, value: Any) -> None:
    """Set a field; None removes it."""
    target.pop(name, None)
    if value is not None:
        target[name] = value


def _pointer(path: str) -> str:
    return f"/{path.replace('.', '/')}" if path else ""


def _encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
