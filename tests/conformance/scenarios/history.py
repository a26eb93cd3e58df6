"""What is left of the past: one revision for all, and how a server says that it has forgotten."""

import base64
import json
from collections.abc import Mapping
from typing import Any

from conformance_exchange import Step

P = "/api/v1/namespaces/history/configmaps"
S = "/api/v1/namespaces/history/secrets"
MERGE = {"Content-Type": "application/merge-patch+json"}


def token(revision: int, start: str) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": revision, "start": f"{start}\x00"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def rising(body: Any, values: Mapping[str, str]) -> Any:
    """Return the order of the revisions of two kinds and of a list."""
    first, second = int(values["first"]), int(values["second"])
    listed = int(body["metadata"]["resourceVersion"])
    return {
        "rises over kinds": second > first,
        "list is no older": listed >= second,
        "text": isinstance(body["metadata"]["resourceVersion"], str),
        "items": [int(item["metadata"]["resourceVersion"]) <= listed for item in body["items"]],
    }


def same(body: Any, values: Mapping[str, str]) -> Any:
    return body["metadata"]["resourceVersion"] == values["changed"]


def read_token(body: Any, values: Mapping[str, str]) -> Any:
    """Read the token with which a client may go on at the present."""
    text = body.get("metadata", {}).pop("continue", "")
    found = json.loads(base64.urlsafe_b64decode(text + "=="))
    return {**found, "rv": min(found["rv"], 1), "message": body.get("message", "")}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "history"}}, compared=False),
    *(
        Step(f"create-{name}", "POST", P, {"metadata": {"name": name}}, compared=False)
        for name in ("h0", "h1", "h2")
    ),
    Step("now", "GET", f"{P}/h2", save={"first": "metadata.resourceVersion"}, compared=False),
    Step(
        "secret",
        "POST",
        S,
        {"metadata": {"name": "s"}},
        save={"second": "metadata.resourceVersion"},
        compared=False,
    ),
    Step("one-revision", "GET", P, pick=rising),
    Step(
        "change",
        "PATCH",
        f"{P}/h0",
        {"data": {"a": "1"}},
        MERGE,
        save={"changed": "metadata.resourceVersion"},
        compared=False,
    ),
    Step("no-change", "PATCH", f"{P}/h0", {"data": {"a": "1"}}, MERGE, pick=same),
    Step("first-page", "GET", f"{P}?limit=1", pick=read_token),
    Step("first-page-selected", "GET", f"{P}?limit=1&labelSelector=!none", pick=read_token),
    Step(
        "first-page-everywhere",
        "GET",
        "/api/v1/configmaps?limit=1&fieldSelector=metadata.namespace%3Dhistory",
        pick=read_token,
    ),
    Step("first-page-cluster", "GET", "/apis/apiregistration.k8s.io/v1/apiservices?limit=1", pick=read_token),
    Step("exact", "GET", f"{P}?resourceVersion={{first}}&resourceVersionMatch=Exact"),
    Step(
        "expired-watch",
        "GET",
        f"{P}?watch=1&timeoutSeconds=3&resourceVersion=1",
        forgets=True,
        # A server that begins refuses watches until it holds the kind.
        until=lambda status, _: status != 429,
    ),
    Step("expired-list", "GET", f"{P}?resourceVersion=1&resourceVersionMatch=Exact"),
    Step("expired-page", "GET", f"{P}?limit=1&continue={token(1, 'h0')}", pick=read_token),
    Step("page-from-now-on", "GET", f"{P}?limit=1&continue={token(-1, 'h0')}"),
    Step("not-older-than-forgotten", "GET", f"{P}?resourceVersion=1"),
]
