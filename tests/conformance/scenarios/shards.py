"""Lists and watches with a shardSelector; by uid only what matches all or none, because uids are random."""

import urllib.parse

from conformance_exchange import Step

MERGE = {"Content-Type": "application/merge-patch+json"}
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIALS = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
PROTOBUF = {"Accept": "application/vnd.kubernetes.protobuf"}
WIDGETS = "/apis/shards.example.com/v1"
# The hash of the first is in the lower half of all hashes, that of the second in the upper one.
SPACES = ("c-shards", "a-shards")
P, Q = (f"/api/v1/namespaces/{name}/configmaps" for name in SPACES)
EVERYWHERE = "/api/v1/configmaps?labelSelector=shards"
CRD = {
    "metadata": {"name": "widgets.shards.example.com"},
    "spec": {
        "group": "shards.example.com",
        "scope": "Namespaced",
        "names": {"plural": "widgets", "kind": "Widget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
                },
            }
        ],
    },
}
ZERO, ONE, HALF, END = (
    "0x0000000000000000",
    "0x0000000000000001",
    "0x8000000000000000",
    "0x10000000000000000",
)


def part(start: str, end: str, field: str = "uid") -> str:
    return f"shardRange(object.metadata.{field}, '{start}', '{end}')"


def query(selector: str) -> str:
    return "shardSelector=" + urllib.parse.quote(selector, safe="")


ALL = query(f"{part(ZERO, HALF)} || {part(HALF, END)}")
NONE = query(part(ZERO, ONE))
LOWER, UPPER = query(part(ZERO, HALF, "namespace")), query(part(HALF, END, "namespace"))

INVALID = {
    "blank": " ",
    "identifier": "x",
    "number": "1",
    "list": "[1]",
    "map": "{1: 2}",
    "field": "a.b",
    "struct": "A{}",
    "unknown-function": "f(object.metadata.uid)",
    "operator": f"{part(ZERO, HALF)} && {part(HALF, END)}",
    "negation": f"!{part(ZERO, HALF)}",
    "macro": "has(object.metadata)",
    "two-arguments": f"shardRange(object.metadata.uid, '{ZERO}')",
    "name": part(ZERO, HALF, "name"),
    "without-object": f"shardRange(metadata.uid, '{ZERO}', '{HALF}')",
    "index": f"shardRange(object['metadata'], '{ZERO}', '{HALF}')",
    "rooted": f"shardRange(.object.metadata.uid, '{ZERO}', '{HALF}')",
    "optional": f"shardRange(object.?metadata.uid, '{ZERO}', '{HALF}')",
    "call-as-bound": f"shardRange(object.metadata.uid, hex(0), '{HALF}')",
    "int-bound": "shardRange(object.metadata.uid, 0, 8)",
    "uint-bound": "shardRange(object.metadata.uid, 0u, 8u)",
    "double-bound": "shardRange(object.metadata.uid, 0.5, 8.5)",
    "bool-bound": "shardRange(object.metadata.uid, true, false)",
    "null-bound": "shardRange(object.metadata.uid, null, null)",
    "bytes-bound": f"shardRange(object.metadata.uid, b'{ZERO}', '{HALF}')",
    "without-prefix": "shardRange(object.metadata.uid, '0000000000000000', '8000000000000000')",
    "prefix-alone": f"shardRange(object.metadata.uid, '0x', '{HALF}')",
    "too-long": f"shardRange(object.metadata.uid, '0x000000000000000000', '{HALF}')",
    "seventeen-digits": part(ZERO, "0x20000000000000000"),
    "upper-case": part("0x000000000000000A", HALF),
    "short": part("0x0", HALF),
    "short-end": part(ZERO, "0xff"),
    "start-is-end": part(HALF, HALF),
    "start-after-end": part(HALF, ZERO),
    "mixed-fields": f"{part(ZERO, HALF)} || {part(HALF, END, 'namespace')}",
    "unclosed": "shardRange(object.metadata.uid",
    "two-expressions": "a b",
    "nothing-after-or": f"{part(ZERO, HALF)} ||",
}


def created(path: str, name: str, **more: object) -> Step:
    body = {"metadata": {"name": name, "labels": {"shards": ""}}, **more}
    return Step(f"create-{name}", "POST", path, body, compared=False)


def life(path: str, name: str) -> tuple[Step, ...]:
    """Return the life of an object, from its creation to its deletion."""
    return (
        created(path, name),
        Step(f"change-{name}", "PATCH", f"{path}/{name}", {"data": {"a": "1"}}, MERGE, compared=False),
        Step(f"delete-{name}", "DELETE", f"{path}/{name}", compared=False),
    )


W = "watch=1&timeoutSeconds=1"
INITIAL = f"{W}&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true"
CUSTOM = f"{WIDGETS}/namespaces/c-shards/widgets"

STEPS = [
    *(
        Step(f"namespace-{name}", "POST", "/api/v1/namespaces", {"metadata": {"name": name}}, compared=False)
        for name in SPACES
    ),
    *(created(P, f"a{number}") for number in range(3)),
    *(created(Q, f"c{number}") for number in range(2)),
    Step("all", "GET", f"{P}?{ALL}"),
    Step("none", "GET", f"{P}?{NONE}"),
    Step("whole-range", "GET", f"{P}?{query(part(ZERO, END))}"),
    Step("lower-namespaces", "GET", f"{EVERYWHERE}&{LOWER}"),
    Step("upper-namespaces", "GET", f"{EVERYWHERE}&{UPPER}"),
    Step("another-namespace", "GET", f"{P}?{UPPER}"),
    Step("chunk", "GET", f"{P}?limit=2&{ALL}", save={"token": "metadata.continue"}),
    Step("next-chunk", "GET", f"{P}?limit=2&{ALL}&continue={{token}}"),
    Step("chunk-of-none", "GET", f"{P}?limit=2&{NONE}"),
    Step("by-name", "GET", f"{P}?fieldSelector=metadata.name%3Da1&{ALL}"),
    Step("by-name-of-none", "GET", f"{P}?fieldSelector=metadata.name%3Da1&{NONE}"),
    Step("from-any", "GET", f"{P}?resourceVersion=0&{ALL}"),
    Step("of-cluster-scoped", "GET", f"/api/v1/namespaces?{NONE}"),
    Step("cluster-scoped-by-namespace", "GET", f"/api/v1/namespaces?limit=1&{LOWER}"),
    Step("table", "GET", f"{P}?{ALL}", headers=TABLE),
    Step("partial", "GET", f"{P}?{ALL}", headers=PARTIALS),
    Step("partial-of-none", "GET", f"{P}?{NONE}", headers=PARTIALS),
    Step("protobuf", "GET", f"{P}?{ALL}", headers=PROTOBUF),
    Step("yaml", "GET", f"{P}?{ALL}", headers={"Accept": "application/yaml"}),
    Step("empty-selector", "GET", f"{P}?shardSelector="),
    Step("spaces-and-brackets", "GET", f"{P}?{query(f'  ( {part(ZERO, ONE)} )  ')}"),
    Step(
        "with-a-target",
        "GET",
        f"{P}?{query(f'a.{part(ZERO, ONE)}')}",
    ),
    Step("quoted-field", "GET", f"{P}?{query(part(ZERO, ONE, '`uid`'))}"),
    Step("one-object", "GET", f"{P}/a1?{NONE}"),
    *(Step(f"invalid-{name}", "GET", f"{P}?{query(text)}") for name, text in INVALID.items()),
    Step("invalid-and-bad-version", "GET", f"{P}?resourceVersion=abc&{query('x')}"),
    Step("invalid-and-bad-labels", "GET", f"{P}?labelSelector=g%20in&{query('x')}"),
    Step("invalid-and-bad-fields", "GET", f"{P}?fieldSelector=spec.x%3D1&{query('x')}"),
    Step("watch-invalid", "GET", f"{P}?{W}&{query('x')}"),
    Step("watch-invalid-and-bad-version", "GET", f"{P}?{W}&resourceVersion=abc&{query('x')}"),
    Step("watch-all", "GET", f"{P}?{W}&{ALL}"),
    Step("watch-none", "GET", f"{P}?{W}&{NONE}"),
    Step("watch-lower", "GET", f"{EVERYWHERE}&{W}&resourceVersion=0&{LOWER}"),
    Step("initial-events", "GET", f"{P}?{INITIAL}&{ALL}"),
    Step("initial-events-of-none", "GET", f"{P}?{INITIAL}&{NONE}"),
    Step("initial-events-of-upper", "GET", f"{EVERYWHERE}&{INITIAL}&{UPPER}"),
    Step("now", "GET", f"{P}?limit=1", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step(
        "changes-of-lower",
        "GET",
        f"{EVERYWHERE}&watch=1&timeoutSeconds=2&resourceVersion={{rv}}&{LOWER}",
        during=(*life(P, "a8"), *life(Q, "c8")),
    ),
    Step("now-again", "GET", f"{P}?limit=1", save={"rv": "metadata.resourceVersion"}, compared=False),
    Step(
        "changes-of-none",
        "GET",
        f"{P}?watch=1&timeoutSeconds=2&resourceVersion={{rv}}&{NONE}",
        during=life(P, "a9"),
    ),
    Step(
        "definition",
        "POST",
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        CRD,
        compared=False,
    ),
    Step("served", "GET", CUSTOM, until=lambda status, body: status == 200, compared=False),
    *(
        Step(
            f"create-custom-{number}",
            "POST",
            CUSTOM,
            {
                "apiVersion": "shards.example.com/v1",
                "kind": "Widget",
                "metadata": {"name": f"w{number}"},
            },
            until=lambda status, body: status in (201, 409),
            compared=False,
        )
        for number in range(2)
    ),
    Step("custom-all", "GET", f"{CUSTOM}?{ALL}"),
    Step("custom-none", "GET", f"{CUSTOM}?{NONE}"),
    Step("custom-lower", "GET", f"{WIDGETS}/widgets?{LOWER}"),
    Step("custom-upper", "GET", f"{WIDGETS}/widgets?{UPPER}"),
    Step("custom-chunk", "GET", f"{CUSTOM}?limit=1&{ALL}"),
    Step("custom-invalid", "GET", f"{CUSTOM}?{query('x')}"),
    Step("custom-initial-events", "GET", f"{CUSTOM}?{INITIAL}&{LOWER}"),
    Step("custom-initial-events-of-none", "GET", f"{CUSTOM}?{INITIAL}&{NONE}"),
    Step("delete-none", "DELETE", f"{P}?{NONE}"),
    Step("delete-another-namespace", "DELETE", f"{P}?{UPPER}"),
    Step("still-there", "GET", P),
    Step("delete-invalid", "DELETE", f"{P}?{query('x')}"),
    Step("delete-all", "DELETE", f"{P}?{LOWER}"),
    Step("gone", "GET", P),
]
