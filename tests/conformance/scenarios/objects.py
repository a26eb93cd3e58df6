"""Creating, reading and replacing objects: names, versions, formats, errors."""

from conformance_exchange import Step

P = "/api/v1/namespaces/objects/configmaps"
CM = {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}
BASE = {"kind": "ConfigMap", "apiVersion": "v1", "data": {"k": "v"}}


def put(**meta: str) -> dict[str, object]:
    found = {
        "name": "a",
        "namespace": "objects",
        "uid": "{uid}",
        "resourceVersion": "{rv}",
        "labels": {"x": "1"},
    }
    return {**BASE, "metadata": {key: value for key, value in {**found, **meta}.items() if value}}


YAML = {"Content-Type": "application/yaml"}

STEPS = [
    Step("create-namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "objects"}}),
    Step("create", "POST", P, CM, save={"uid": "metadata.uid", "rv": "metadata.resourceVersion"}),
    Step("create-again", "POST", P, CM),
    Step("get", "GET", f"{P}/a"),
    Step("get-missing", "GET", f"{P}/nope"),
    Step("list-in-missing-namespace", "GET", "/api/v1/namespaces/nope/configmaps"),
    Step("create-in-missing-namespace", "POST", "/api/v1/namespaces/nope/configmaps", CM),
    Step("unknown-resource", "GET", "/api/v1/bogus"),
    Step("unknown-resource-in-namespace", "GET", "/api/v1/namespaces/objects/bogus/x"),
    Step("unknown-group", "GET", "/apis/nope/v1"),
    Step("unknown-group-resource", "GET", "/apis/nope/v1/things"),
    Step("unknown-path", "GET", "/nope"),
    Step("post-to-name", "POST", f"{P}/a", CM),
    Step("put-to-collection", "PUT", P, CM),
    Step("patch-collection", "PATCH", P, {}, {"Content-Type": "application/merge-patch+json"}),
    Step("create-without-namespace", "POST", "/api/v1/configmaps", CM),
    Step("get-without-namespace", "GET", "/api/v1/configmaps/a"),
    Step("cluster-scoped-in-namespace", "GET", "/api/v1/namespaces/objects/nodes"),
    Step("put-stale", "PUT", f"{P}/a", put(resourceVersion="1")),
    Step("put-bad-version", "PUT", f"{P}/a", put(resourceVersion="abc")),
    Step("put-other-uid", "PUT", f"{P}/a", put(uid="zzz")),
    Step("put-other-name", "PUT", f"{P}/a", put(name="b")),
    Step("put-other-namespace", "PUT", f"{P}/a", put(namespace="u")),
    Step("put-unknown-version", "PUT", f"{P}/a", {**put(), "apiVersion": "v2"}),
    Step("put-no-change", "PUT", f"{P}/a", put()),
    Step("put-without-version", "PUT", f"{P}/a", {**put(resourceVersion=""), "data": {"w": "1"}}),
    Step("put-missing", "PUT", f"{P}/zzz", {"metadata": {"name": "zzz"}, "data": {}}),
    Step(
        "put-missing-with-version", "PUT", f"{P}/zzz2", {"metadata": {"name": "zzz2", "resourceVersion": "1"}}
    ),
    Step("put-missing-with-uid", "PUT", f"{P}/zzz3", {"metadata": {"name": "zzz3", "uid": "abc"}}),
    Step("create-with-version", "POST", P, {"metadata": {"name": "c", "resourceVersion": "5"}}),
    Step("create-bad-name", "POST", P, {"metadata": {"name": "Bad_Name"}}),
    Step("create-long-name", "POST", P, {"metadata": {"name": "a" * 254}}),
    Step("create-without-name", "POST", P, {"metadata": {}}),
    Step("create-bad-label", "POST", P, {"metadata": {"name": "l", "labels": {"a b": "c"}}}),
    Step("create-bad-label-value", "POST", P, {"metadata": {"name": "l", "labels": {"a": "c d"}}}),
    Step("create-bad-annotation", "POST", P, {"metadata": {"name": "l", "annotations": {"a b": "c"}}}),
    Step("create-generated", "POST", P, {"metadata": {"generateName": "gen-"}}),
    Step("create-bad-generated", "POST", P, {"metadata": {"generateName": "Gen_"}}),
    Step("create-bad-json", "POST", P, "{bad json"),
    Step("create-empty", "POST", P, ""),
    Step("create-array", "POST", P, "[]"),
    Step("create-string", "POST", P, '"x"'),
    Step("create-cut", "POST", P, '{"metadata":{"name":"x"'),
    Step("create-trailing", "POST", P, '{"metadata":{"name":"trail"}} x'),
    Step("create-yaml-boolean", "POST", P, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: y}\n", YAML),
    Step(
        "create-yaml",
        "POST",
        P,
        'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: "yy"}\ndata: {a: "1"}\n',
        YAML,
    ),
    Step("get-yaml", "GET", f"{P}/yy", headers={"Accept": "application/yaml"}),
    Step("get-missing-yaml", "GET", f"{P}/nope", headers={"Accept": "application/yaml"}),
    Step("create-text", "POST", P, "x", {"Content-Type": "text/plain"}),
    Step("get-html", "GET", f"{P}/a", headers={"Accept": "text/html"}),
    Step("get-cbor", "GET", f"{P}/a", headers={"Accept": "application/cbor"}),
    Step("get-json-second", "GET", f"{P}/a", headers={"Accept": "text/html, application/json;q=0.5"}),
    Step("get-anything", "GET", f"{P}/a", headers={"Accept": "*/*"}),
    Step("get-any-application", "GET", f"{P}/a", headers={"Accept": "application/*"}),
    Step("get-pretty", "GET", f"{P}/a?pretty=true"),
    Step("patch-json", "PATCH", f"{P}/a", {"data": {"a": "b"}}, {"Content-Type": "application/json"}),
    Step("unknown-field-warns", "POST", P, {"metadata": {"name": "dup"}, "bogus": 1, "data": {"a": "b"}}),
    Step("duplicate-field-warns", "POST", P, '{"metadata":{"name":"dup4"},"data":{"a":"1","a":"2"}}'),
    Step(
        "strict",
        "POST",
        f"{P}?fieldValidation=Strict",
        '{"metadata":{"name":"dup2","name":"dup3"},"bogus":1}',
    ),
    Step(
        "strict-many",
        "POST",
        f"{P}?fieldValidation=Strict",
        '{"z":1,"metadata":{"name":"m","b":1,"labels":{"l":"1","l":"2"},"a":2,"name":"n"},"bogus":1,"data":{"k":"1","k":"2"},'
        '"binaryData":{},"immutable":true,"immutable":false,"A":1}',
    ),
    Step(
        "strict-many-deployment",
        "POST",
        "/apis/apps/v1/namespaces/objects/deployments?fieldValidation=Strict",
        {
            "zz": 1,
            "metadata": {"name": "m", "zz": 1},
            "spec": {
                "zz": 1,
                "template": {
                    "spec": {
                        "containers": [{"name": "c", "zz": 1, "aa": 1}, {"zz": 1}],
                        "volumes": [{"yy": 1}],
                    }
                },
                "selector": {"aa": 1, "matchLabels": {"a": "b"}},
            },
            "aa": 1,
        },
    ),
    Step("warn-many", "POST", P, '{"z":1,"metadata":{"name":"wm","b":1,"labels":{"l":"1","l":"2"}},"a":2}'),
    Step("ignore", "POST", f"{P}?fieldValidation=Ignore", {"metadata": {"name": "ign"}, "bogus": 1}),
    Step("bad-field-validation", "POST", f"{P}?fieldValidation=Foo", CM),
    Step(
        "wrong-case", "POST", P, {"Metadata": {"name": "x"}, "metadata": {"name": "case"}, "Data": {"a": "b"}}
    ),
    Step("dry-run", "POST", f"{P}?dryRun=All", {"metadata": {"name": "dry"}, "data": {"a": "b"}}),
    Step("dry-run-left-nothing", "GET", f"{P}/dry"),
    Step("dry-run-existing", "POST", f"{P}?dryRun=All", CM),
    Step("bad-dry-run", "POST", f"{P}?dryRun=Foo", {"metadata": {"name": "dry"}}),
    Step("long-manager", "POST", f"{P}?fieldManager={'m' * 129}", {"metadata": {"name": "man"}}),
    Step("number-for-string", "POST", P, {"metadata": {"name": "n1"}, "data": {"a": 1}}),
    Step("list-for-map", "POST", P, {"metadata": {"name": "n1"}, "data": []}),
    Step("string-for-object", "POST", P, {"metadata": "n1"}),
    Step("null-metadata", "POST", P, {"metadata": None}),
    Step(
        "system-fields-are-dropped",
        "POST",
        P,
        {
            "metadata": {
                "name": "sl",
                "selfLink": "/x",
                "uid": "u",
                "creationTimestamp": "2020-01-01T00:00:00Z",
                "generation": 7,
                "deletionTimestamp": "2020-01-01T00:00:00Z",
            }
        },
    ),
    Step("bad-time", "POST", P, {"metadata": {"name": "bt", "creationTimestamp": "yesterday"}}),
    Step("wrong-namespace-in-body", "POST", P, {"metadata": {"name": "wn", "namespace": "other"}}),
    Step("wrong-kind", "POST", P, {"kind": "Pod", "apiVersion": "v1", "metadata": {"name": "wk"}}),
    Step("unregistered-kind", "POST", P, {"kind": "Nope", "apiVersion": "v1", "metadata": {"name": "wk"}}),
    Step(
        "other-group", "POST", P, {"kind": "ConfigMap", "apiVersion": "apps/v1", "metadata": {"name": "wk"}}
    ),
    Step("binary-data", "POST", P, {"metadata": {"name": "bin"}, "binaryData": {"a": "AAEC"}}),
    Step("bad-binary-data", "POST", P, {"metadata": {"name": "bin2"}, "binaryData": {"a": "!"}}),
    Step(
        "owner-without-uid",
        "POST",
        P,
        {"metadata": {"name": "own", "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p"}]}},
    ),
    Step(
        "owners-twice",
        "POST",
        P,
        {
            "metadata": {
                "name": "own2",
                "ownerReferences": [{"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "1"}] * 2,
            }
        },
    ),
    Step(
        "two-controllers",
        "POST",
        P,
        {
            "metadata": {
                "name": "own3",
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": name, "controller": True}
                    for name in ("p", "q")
                ],
            }
        },
    ),
    Step("finalizer-unqualified", "POST", P, {"metadata": {"name": "f2", "finalizers": ["badfinalizer"]}}),
    Step(
        "finalizer-conflict",
        "POST",
        P,
        {"metadata": {"name": "f2", "finalizers": ["orphan", "foregroundDeletion"]}},
    ),
    Step("too-large", "POST", P, {"metadata": {"name": "big"}, "data": {"a": "x" * (3 * 1024 * 1024)}}),
    Step("get-future", "GET", f"{P}/a?resourceVersion=99999999", waits=3),
    Step("get-bad-version", "GET", f"{P}/a?resourceVersion=abc"),
    Step("get-any-version", "GET", f"{P}/a?resourceVersion=0"),
    Step("get-with-watch", "GET", f"{P}/a?watch=0"),
    Step(
        "lease-put-creates",
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/objects/leases/ll",
        {"metadata": {"name": "ll"}, "spec": {}},
    ),
    Step(
        "lease-put-unconditional",
        "PUT",
        "/apis/coordination.k8s.io/v1/namespaces/objects/leases/ll",
        {"metadata": {"name": "ll"}, "spec": {"holderIdentity": "me"}},
    ),
    Step(
        "lease-bad-time",
        "POST",
        "/apis/coordination.k8s.io/v1/namespaces/objects/leases",
        {"metadata": {"name": "l"}, "spec": {"renewTime": "2024-01-01T00:00:00Z"}},
    ),
]
