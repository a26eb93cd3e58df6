"""Patches of all four kinds, and who owns which field after them."""

from conformance_exchange import Step

P = "/api/v1/namespaces/patches/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}
JSON = {"Content-Type": "application/json-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}
APPLY = {"Content-Type": "application/apply-patch+yaml"}


def config(name: str, data: object, **meta: object) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, **meta}, "data": data}


STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "patches"}}, compared=False),
    Step("create", "POST", P, {"metadata": {"name": "a", "labels": {"x": "1"}}, "data": {"k": "v"}}),
    Step("merge-no-change", "PATCH", f"{P}/a", {"data": {"k": "v"}}, MERGE),
    Step("merge", "PATCH", f"{P}/a", {"data": {"k": None, "z": "1"}}, MERGE),
    Step("merge-stale", "PATCH", f"{P}/a", {"metadata": {"resourceVersion": "1"}, "data": {"z": "2"}}, MERGE),
    Step("merge-name", "PATCH", f"{P}/a", {"metadata": {"name": "b"}}, MERGE),
    Step("merge-namespace", "PATCH", f"{P}/a", {"metadata": {"namespace": "b"}}, MERGE),
    Step("merge-uid", "PATCH", f"{P}/a", {"metadata": {"uid": "b"}}, MERGE),
    Step("merge-missing", "PATCH", f"{P}/nope", {"data": {}}, MERGE),
    Step("merge-garbage", "PATCH", f"{P}/a", "garbage", MERGE),
    Step("merge-array", "PATCH", f"{P}/a", [], MERGE),
    Step("merge-null", "PATCH", f"{P}/a", "null", MERGE),
    Step("merge-empty", "PATCH", f"{P}/a", {}, MERGE),
    Step("merge-unknown-warns", "PATCH", f"{P}/a", {"bogus": 1}, MERGE),
    Step("merge-unknown-strict", "PATCH", f"{P}/a?fieldValidation=Strict", {"bogus": 1}, MERGE),
    Step("merge-wrong-type", "PATCH", f"{P}/a", {"data": {"n": 1}}, MERGE),
    Step("merge-force", "PATCH", f"{P}/a?force=true", {"data": {}}, MERGE),
    Step("merge-dry-run", "PATCH", f"{P}/a?dryRun=All", {"data": {"dry": "1"}}, MERGE),
    Step("merge-dry-run-left-nothing", "GET", f"{P}/a"),
    Step("merge-duplicate-warns", "PATCH", f"{P}/a", '{"data":{"z":"1","z":"1"}}', MERGE),
    Step("json-test-fails", "PATCH", f"{P}/a", [{"op": "test", "path": "/data/z", "value": "9"}], JSON),
    Step("json-test-passes", "PATCH", f"{P}/a", [{"op": "test", "path": "/data/z", "value": "1"}], JSON),
    Step("json-remove-missing", "PATCH", f"{P}/a", [{"op": "remove", "path": "/data/nope"}], JSON),
    Step(
        "json-replace-missing",
        "PATCH",
        f"{P}/a",
        [{"op": "replace", "path": "/data/nope/x", "value": 1}],
        JSON,
    ),
    Step("json-add-number", "PATCH", f"{P}/a", [{"op": "add", "path": "/data/n", "value": 1}], JSON),
    Step("json-object", "PATCH", f"{P}/a", {"op": "add"}, JSON),
    Step("json-add", "PATCH", f"{P}/a", [{"op": "add", "path": "/data/n", "value": "1"}], JSON),
    Step("json-move", "PATCH", f"{P}/a", [{"op": "move", "from": "/data/n", "path": "/data/m"}], JSON),
    Step("json-copy", "PATCH", f"{P}/a", [{"op": "copy", "from": "/data/m", "path": "/data/m2"}], JSON),
    Step(
        "json-escaped",
        "PATCH",
        f"{P}/a",
        [
            {"op": "add", "path": "/metadata/annotations", "value": {}},
            {"op": "add", "path": "/metadata/annotations/a~1b", "value": "c"},
        ],
        JSON,
    ),
    Step("json-unknown-op", "PATCH", f"{P}/a", [{"op": "nope", "path": "/data/z"}], JSON),
    Step("json-empty", "PATCH", f"{P}/a", [], JSON),
    Step("json-null", "PATCH", f"{P}/a", "null", JSON),
    Step("json-garbage", "PATCH", f"{P}/a", "garbage", JSON),
    Step("strategic-null", "PATCH", f"{P}/a", "null", STRATEGIC),
    Step("strategic-garbage", "PATCH", f"{P}/a", "garbage", STRATEGIC),
    Step("strategic-array", "PATCH", f"{P}/a", [], STRATEGIC),
    Step("strategic-after", "PATCH", f"{P}/a", "{}x", STRATEGIC),
    Step("strategic", "PATCH", f"{P}/a", {"data": {"s": "1", "m": None}}, STRATEGIC),
    Step("strategic-replace", "PATCH", f"{P}/a", {"data": {"$patch": "replace", "only": "1"}}, STRATEGIC),
    Step("strategic-bad-directive", "PATCH", f"{P}/a", {"data": {"$patch": "nope"}}, STRATEGIC),
    Step("apply-without-manager", "PATCH", f"{P}/s1", config("s1", {"a": "1"}), APPLY),
    Step(
        "apply-without-version",
        "PATCH",
        f"{P}/s1?fieldManager=m1",
        {"kind": "ConfigMap", "data": {"a": "1"}},
        APPLY,
    ),
    Step("apply-creates", "PATCH", f"{P}/s1?fieldManager=m1", config("s1", {"a": "1", "b": "1"}), APPLY),
    Step("apply-again", "PATCH", f"{P}/s1?fieldManager=m1", config("s1", {"a": "1", "b": "1"}), APPLY),
    Step("apply-conflict", "PATCH", f"{P}/s1?fieldManager=m2", config("s1", {"a": "2"}), APPLY),
    Step(
        "apply-two-conflicts", "PATCH", f"{P}/s1?fieldManager=m2", config("s1", {"a": "2", "b": "2"}), APPLY
    ),
    Step("apply-shared", "PATCH", f"{P}/s1?fieldManager=m2", config("s1", {"b": "1"}), APPLY),
    Step("apply-forced", "PATCH", f"{P}/s1?fieldManager=m2&force=true", config("s1", {"a": "2"}), APPLY),
    Step("apply-removes", "PATCH", f"{P}/s1?fieldManager=m1", config("s1", {}), APPLY),
    Step("apply-after-update", "PATCH", f"{P}/s1?fieldManager=upd", {"data": {"q": "1"}}, MERGE),
    Step(
        "apply-conflict-with-update",
        "PATCH",
        f"{P}/s1?fieldManager=m2",
        config("s1", {"q": "3", "a": "9"}),
        APPLY,
    ),
    Step(
        "apply-managed-fields", "PATCH", f"{P}/s1?fieldManager=m2", config("s1", {}, managedFields=[]), APPLY
    ),
    Step("apply-bad-yaml", "PATCH", f"{P}/s1?fieldManager=m2", "a: [", APPLY),
    Step(
        "apply-unknown-field",
        "PATCH",
        f"{P}/s1?fieldManager=m2",
        {**config("s1", {"a": "2"}), "bogus": 1},
        APPLY,
    ),
    Step("apply-wrong-type", "PATCH", f"{P}/s1?fieldManager=m2", config("s1", {"a": 2}), APPLY),
    Step("apply-wrong-name", "PATCH", f"{P}/s1?fieldManager=m2", config("zz", {"a": "2"}), APPLY),
    Step("apply-uid-of-nothing", "PATCH", f"{P}/none?fieldManager=m2", config("none", {}, uid="x"), APPLY),
    Step(
        "apply-stale",
        "PATCH",
        f"{P}/s1?fieldManager=m2",
        config("s1", {"a": "2"}, resourceVersion="1"),
        APPLY,
    ),
    Step("apply-dry-run", "PATCH", f"{P}/dry?fieldManager=m2&dryRun=All", config("dry", {"a": "2"}), APPLY),
    Step(
        "apply-labels",
        "PATCH",
        f"{P}/s1?fieldManager=m3",
        config("s1", {}, labels={"l": "1"}, finalizers=["x.io/f"]),
        APPLY,
    ),
    Step("apply-labels-gone", "PATCH", f"{P}/s1?fieldManager=m3", config("s1", {}), APPLY),
    Step(
        "get-before-reset", "GET", f"{P}/s1", save={"rv": "metadata.resourceVersion", "uid": "metadata.uid"}
    ),
    Step(
        "reset-managed-fields",
        "PUT",
        f"{P}/s1",
        config("s1", {"a": "2", "q": "1"}, managedFields=[{}], resourceVersion="{rv}", uid="{uid}"),
    ),
    Step("apply-after-reset", "PATCH", f"{P}/s1?fieldManager=m1", config("s1", {"a": "2"}), APPLY),
]
