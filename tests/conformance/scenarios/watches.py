"""Watches: where they start, their events, how they end."""

from conformance_exchange import Step

P = "/api/v1/namespaces/watches/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
W = f"{P}?watch=1&timeoutSeconds=1"
L = "labelSelector=g%3Dl"


def quiet(
    name: str, method: str, path: str, body: object = None, headers: dict[str, str] | None = None
) -> Step:
    return Step(name, method, path, body, headers or {}, compared=False)


def life(name: str, first: dict[str, str], second: dict[str, str]) -> tuple[Step, ...]:
    """An object's life, in and out of a selector."""
    path = f"{P}/{name}"
    return (
        quiet(f"{name}-create", "POST", P, {"metadata": {"name": name, "labels": first}}),
        quiet(f"{name}-data", "PATCH", path, {"data": {"a": "1"}}, MERGE),
        quiet(f"{name}-leave", "PATCH", path, {"metadata": {"labels": second}}, MERGE),
        quiet(f"{name}-back", "PATCH", path, {"metadata": {"labels": first}}, MERGE),
        quiet(f"{name}-noop", "PATCH", path, {"data": {"a": "1"}}, MERGE),
        quiet(f"{name}-delete", "DELETE", path),
    )


STEPS = [
    quiet("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "watches"}}),
    Step(
        "first",
        "POST",
        P,
        {"metadata": {"name": "l0", "labels": {"g": "l"}}},
        save={"rv0": "metadata.resourceVersion"},
        compared=False,
    ),
    *(
        quiet(f"create-{index}", "POST", P, {"metadata": {"name": f"l{index}", "labels": {"g": "l"}}})
        for index in range(1, 3)
    ),
    Step("from-nothing", "GET", f"{W}&{L}"),
    Step("from-any", "GET", f"{W}&resourceVersion=0&{L}"),
    Step("after-a-version", "GET", f"{W}&resourceVersion={{rv0}}"),
    Step("now", "GET", f"{P}?limit=1", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step(
        "selected",
        "GET",
        f"{P}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}&labelSelector=q%3D1",
        during=life("w1", {"q": "1"}, {"q": "2"}),
    ),
    Step("now-again", "GET", f"{P}?limit=1", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step(
        "unselected",
        "GET",
        f"{P}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}",
        during=life("w2", {"q": "1"}, {"q": "2"}),
    ),
    Step(
        "by-name",
        "GET",
        f"{P}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}&fieldSelector=metadata.name%3Dw3",
        during=(*life("w3", {"q": "1"}, {"q": "2"}), *life("w4", {"q": "1"}, {"q": "2"})),
    ),
    Step(
        "watch-list",
        "GET",
        f"{W}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true&{L}",
    ),
    Step("initial-events-without-match", "GET", f"{W}&sendInitialEvents=true"),
    Step("initial-events-exact", "GET", f"{W}&sendInitialEvents=true&resourceVersionMatch=Exact"),
    Step("match-without-initial-events", "GET", f"{W}&resourceVersionMatch=NotOlderThan"),
    Step(
        "initial-events-without-bookmarks",
        "GET",
        f"{W}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&{L}",
    ),
    Step(
        "no-initial-events",
        "GET",
        f"{W}&sendInitialEvents=false&resourceVersionMatch=NotOlderThan&{L}",
    ),
    Step("bookmarks-from-any", "GET", f"{W}&resourceVersion=0&allowWatchBookmarks=true&{L}"),
    Step("bookmarks-from-nothing", "GET", f"{W}&allowWatchBookmarks=true&{L}"),
    Step("future", "GET", f"{W}&resourceVersion=9999999"),
    Step("bad-version", "GET", f"{W}&resourceVersion=abc"),
    Step("table", "GET", f"{W}&resourceVersion=0&{L}", headers=TABLE),
    Step("partial", "GET", f"{W}&resourceVersion=0&{L}", headers=PARTIAL),
    Step("yaml", "GET", f"{W}&resourceVersion=0&{L}", headers={"Accept": "application/yaml"}),
    Step(
        "old-path",
        "GET",
        f"/api/v1/watch/namespaces/watches/configmaps?timeoutSeconds=1&resourceVersion=0&{L}",
        stream=True,
    ),
    Step(
        "old-path-of-one",
        "GET",
        "/api/v1/watch/namespaces/watches/configmaps/l1?timeoutSeconds=1&resourceVersion=0",
        stream=True,
    ),
    Step("bad-labels", "GET", f"{W}&labelSelector=g%20in"),
    Step("bad-fields", "GET", f"{W}&fieldSelector=spec.x%3D1"),
    Step("named-with-watch", "GET", f"{P}/l1?watch=true"),
    Step(
        "table-of-changes",
        "GET",
        f"{P}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}&labelSelector=t%3D1&includeObject=None",
        headers=TABLE,
        during=life("w5", {"t": "1"}, {"t": "2"}),
    ),
    Step(
        "missing-namespace",
        "GET",
        "/api/v1/namespaces/nope/configmaps?watch=1&timeoutSeconds=1",
    ),
]
