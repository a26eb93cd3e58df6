"""Make answers of two servers comparable: what differs by nature is replaced by its role."""

import re
from typing import Any

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
AGE = re.compile(r"(<unknown>|(\d+[smhdy]){1,2})")
SUFFIX = re.compile(r"\b([Gg]en[-_][a-z-]*)[bcdfghjklmnpqrstvwxz2456789]{5}\b")
TOKEN = re.compile(r"\beyJ[\w-]+\.[\w-]+\.[\w-]+")
ADDRESS = re.compile(r"\b10\.0\.\d+\.\d+\b")
ROLE_ERRORS = re.compile(r"RBAC: \[([^\]]*)\]")
ERRORS = re.compile(r"\): errors:(?:\n  [^\n]+)+")
_LINE = re.compile(r"\n  [^\n]+")
LISTED = re.compile(r"\[([^\]]*)\]")
IN_TEXT = (
    # The difference of two Go structs, of which the embedded server has none.
    (re.compile(r"\n@@ .*", re.DOTALL), ""),
    (re.compile(r"(resource version: )\d+( \()\d+"), r"\1RV\2RV"),
    (re.compile(r"(resource version: \d+, current: )\d+"), r"\1RV"),
    (re.compile(r"(ResourceVersion in (?:record|the precondition) \()\d+"), r"\1RV"),
    (re.compile(r'(resourceVersion\\?"?:\\?")\d+'), r"\1RV"),
    (re.compile(r'((?:nodePort|healthCheckNodePort)\\*"?:)3\d{4}'), r"\1PORT"),
    (re.compile(r"((?:^|\.nodePort: )Duplicate value: )3\d{4}$"), r"\1PORT"),
    (re.compile(r'in scheme "[^"]*"'), 'in scheme "SCHEME"'),
    (re.compile(r"(not decodable revision=)\d+"), r"\1RV"),
    (re.compile(r"127\.0\.0\.1:\d+"), "HOST"),
    # The fingerprint of the certificate that the request was sent with.
    (re.compile(r"X509SHA256=[0-9a-f]{64}"), "X509SHA256=FINGERPRINT"),
)
_MANAGER_ORDER = ("operation", "manager", "apiVersion", "subresource")


def _is_sorted_by_time(entries: Any) -> bool:
    """Return True if managedFields are in the order in which kube-apiserver writes them."""
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        return False
    first, *rest = _MANAGER_ORDER
    keys = [[entry.get(name, "") for name in (first, "time", *rest)] for entry in entries]
    return keys == sorted(keys)


class Normal:
    """Normalise the answers of one scenario; identities are numbered in the order they are first seen."""

    def __init__(self) -> None:
        self._uids: dict[str, str] = {}
        self._revisions: dict[str, dict[str, str]] = {}

    def value(self, value: Any, key: str = "") -> Any:
        """Normalise a JSON value."""
        if isinstance(value, dict):
            return self._object(value)
        if isinstance(value, list):
            return [self.value(item, key) for item in value]
        if isinstance(value, str):
            return self._text(value, key)
        if key in ("nodePort", "healthCheckNodePort"):
            return "PORT"
        return value

    def _object(self, value: dict[str, Any]) -> dict[str, Any]:
        found = self._parts(value)
        causes = found.get("details", {}).get("causes", ()) if found.get("kind") == "Status" else ()
        if len(causes) > 1:
            # The real server walks maps in no fixed order: several complaints are a set.
            found["details"]["causes"] = sorted(causes, key=str)
            found["message"] = found["message"].partition(": [")[0]
        return found

    def _parts(self, value: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, item in value.items():
            if name == "metadata" and isinstance(item, dict):
                found[name] = self._meta(item)
            elif name == "userInfo" and isinstance(item, dict):
                found[name] = self.value({key: part for key, part in item.items() if key != "uid"})
            elif name == "cells" and isinstance(item, list):
                found[name] = [self._cell(cell) for cell in item]
            elif name == "columnDefinitions" and isinstance(item, list):
                found[name] = [{**column, "description": "TEXT"} for column in item]
            else:
                # Keys of list elements in managedFields have uids in them.
                found[self._identities(name)] = self.value(item, name)
        return found

    def _meta(self, metadata: dict[str, Any]) -> dict[str, Any]:
        found = {name: self.value(item, name) for name, item in metadata.items()}
        if found.get("managedFields"):
            found["managedFields"] = self._managers(metadata["managedFields"])
        if found.get("continue"):
            found["continue"] = "CONTINUE"
        if "resourceVersion" in found:
            uid = found.get("uid")
            found["resourceVersion"] = self._revision(uid, metadata["resourceVersion"]) if uid else "RV"
        return found

    def _managers(self, entries: Any) -> Any:
        """Put entries that are sorted by time into an order that does not depend on the moment.

        kube-apiserver sorts them by operation, time in whole seconds, manager, version and subresource: two writes
        fall into the same second, or not. Entries in any other order stay in that order, so that it is seen.
        """
        normal = self.value(entries)
        if not _is_sorted_by_time(entries):
            return normal
        return sorted(normal, key=lambda entry: [entry.get(name, "") for name in _MANAGER_ORDER])

    def _revision(self, uid: str, revision: str) -> str:
        known = self._revisions.setdefault(uid, {})
        return known.setdefault(revision, f"RV{len(known) + 1}")

    def _cell(self, cell: Any) -> Any:
        if isinstance(cell, str) and AGE.fullmatch(cell):
            return "AGE"
        return self.value(cell)

    def _identities(self, text: str) -> str:
        return UUID.sub(lambda found: self._uids.setdefault(found[0], f"UID{len(self._uids) + 1}"), text)

    def _text(self, text: str, key: str) -> str:
        text = self._identities(text)
        text = TIME.sub("TIME", text)
        text = TOKEN.sub("TOKEN", text)
        text = SUFFIX.sub(r"\1XXXXX", text)
        text = ADDRESS.sub("ADDRESS", text)
        for pattern, replacement in IN_TEXT:
            text = pattern.sub(replacement, text)
        # The real server visits role bindings in no fixed order.
        text = ROLE_ERRORS.sub(lambda found: f"RBAC: [{', '.join(sorted(found[1].split(', ')))}]", text)
        # Nor the fields of an applied object.
        text = ERRORS.sub(lambda found: "): errors:" + "".join(sorted(_LINE.findall(found[0]))), text)
        if key == "evaluationError":
            text = LISTED.sub(lambda found: f"[{', '.join(sorted(found[1].split(', ')))}]", text)
        return "HASH" if key == "etag" else text
