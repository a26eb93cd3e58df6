"""How answers are transferred: compressed, tagged, redirected, and watches that begin in the future or end."""

import json
from typing import Any

from conformance_exchange import Step

NAMESPACE = "transfers"
MAPS = f"/api/v1/namespaces/{NAMESPACE}/configmaps"
GZIP = {"Accept-Encoding": "gzip"}
ENCODING = ("content-encoding", "vary")
TAGS = ("etag", "cache-control", "last-modified", "vary")
FUTURE = "9000000000000000"
DOCUMENT = "/openapi/v3/apis/batch/v1"


def config_map(name: str, text: str = "") -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": {"size": "large" if text else "small"}},
        "data": {"text": text},
    }


def nothing(_body: Any, _values: Any) -> Any:
    """Compare status and headers alone."""
    return None


def read(body: Any) -> Any:
    """Read a document that is served as text."""
    return json.loads(body) if isinstance(body, str) else body


def title(body: Any, _: Any) -> Any:
    return read(body)["info"]["title"]


def document_tag(body: Any, _: Any) -> Any:
    return {"hash": read(body)["paths"]["apis/batch/v1"]["serverRelativeURL"].partition("hash=")[2]}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": NAMESPACE}}, compared=False),
    Step("small", "POST", MAPS, config_map("small"), compared=False),
    Step("large", "POST", MAPS, config_map("large", "x" * 300_000), compared=False),
    Step("large-list", "GET", MAPS, headers=GZIP, also=ENCODING, pick=nothing),
    Step("large-list-uncompressed", "GET", MAPS, also=ENCODING, pick=nothing),
    Step("large-list-any", "GET", MAPS, headers={"Accept-Encoding": "*"}, also=ENCODING, pick=nothing),
    Step(
        "large-list-several",
        "GET",
        MAPS,
        headers={"Accept-Encoding": "br, gzip;q=0.5"},
        also=ENCODING,
        pick=nothing,
    ),
    Step(
        "large-list-refused",
        "GET",
        MAPS,
        headers={"Accept-Encoding": "gzip;q=0"},
        also=ENCODING,
        pick=nothing,
    ),
    Step("large-object", "GET", f"{MAPS}/large", headers=GZIP, also=ENCODING, pick=nothing),
    Step("small-object", "GET", f"{MAPS}/small", headers=GZIP, also=ENCODING, pick=nothing),
    Step(
        "large-object-written",
        "PUT",
        f"{MAPS}/large",
        config_map("large", "y" * 300_000),
        GZIP,
        also=ENCODING,
        pick=nothing,
    ),
    Step(
        "large-watch",
        "GET",
        f"{MAPS}?watch=1&timeoutSeconds=1&labelSelector=size=large",
        headers=GZIP,
        also=ENCODING,
        pick=nothing,
    ),
    Step("documents", "GET", "/openapi/v3", save={"hash": "hash"}, pick=document_tag, compared=False),
    Step("documents-headers", "GET", "/openapi/v3", also=TAGS, pick=nothing),
    Step("document-of-no-hash", "GET", DOCUMENT, also=TAGS, pick=title),
    Step(
        "document-of-its-hash",
        "GET",
        DOCUMENT + "?hash={hash}",
        also=("cache-control", "vary", "etag"),
        pick=title,
    ),
    Step(
        "document-of-another-hash",
        "GET",
        f"{DOCUMENT}?hash=ABC",
        also=("cache-control", "vary", "etag"),
        pick=nothing,
    ),
    Step("swagger-headers", "GET", "/openapi/v2", also=TAGS, pick=nothing),
    Step(
        "future-watch-with-state",
        "GET",
        f"{MAPS}?watch=1&timeoutSeconds=10&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&resourceVersion={FUTURE}",
        waits=5,
    ),
    Step("future-list", "GET", f"{MAPS}?resourceVersion={FUTURE}", waits=5),
    Step("future-get", "GET", f"{MAPS}/small?resourceVersion={FUTURE}", waits=5),
]
