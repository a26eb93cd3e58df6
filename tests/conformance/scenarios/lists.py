"""Lists: chunks, revisions, selectors, tables."""

from conformance_exchange import Step

P = "/api/v1/namespaces/lists/configmaps"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io,application/json"}
PARTIAL = {"Accept": "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"}
PARTIALS = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
G = "labelSelector=g%3Dl"

FIELDS = {
    "pods-more": "spec.restartPolicy%3DAlways,spec.schedulerName%3Dx,spec.serviceAccountName%3Dx,spec.hostNetwork%3Dtrue,"
    "status.podIP%3D1.1.1.1,status.podIPs%3D1.1.1.1,status.nominatedNodeName%3Dx",
    "secrets": "type%3DOpaque",
    "services": "spec.clusterIP%3DNone,spec.type%3DClusterIP",
    "replicationcontrollers": "status.replicas%3D3",
}
ELSEWHERE = {
    "namespaces": "/api/v1/namespaces?fieldSelector=status.phase%3DTerminating,metadata.name%3Dlists",
    "nodes": "/api/v1/nodes?fieldSelector=spec.unschedulable%3Dtrue,metadata.name%3Dnone",
    "jobs": "/apis/batch/v1/namespaces/lists/jobs?fieldSelector=status.successful%3D1",
    "jobs-unknown": "/apis/batch/v1/namespaces/lists/jobs?fieldSelector=status.failed%3D1",
    "replicasets": "/apis/apps/v1/namespaces/lists/replicasets?fieldSelector=status.replicas%3D1",
    "events": "/api/v1/namespaces/lists/events?fieldSelector=involvedObject.kind%3DPod,reportingComponent%3Dx",
    "definitions": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions?fieldSelector=spec.group%3Dx",
}

STEPS = [
    Step("namespace", "POST", "/api/v1/namespaces", {"metadata": {"name": "lists"}}, compared=False),
    *(
        Step(
            f"create-{index}",
            "POST",
            P,
            {"metadata": {"name": f"l{index}", "labels": {"g": "l", "n": str(index)}}},
            save={f"rv{index}": "metadata.resourceVersion"},
            compared=False,
        )
        for index in range(5)
    ),
    Step("other", "POST", P, {"metadata": {"name": "other"}}, compared=False),
    Step("all", "GET", P),
    Step("first-chunk", "GET", f"{P}?limit=2&{G}", save={"token": "metadata.continue"}),
    Step("second-chunk", "GET", f"{P}?limit=2&{G}&continue={{token}}", save={"token2": "metadata.continue"}),
    Step("last-chunk", "GET", f"{P}?limit=2&{G}&continue={{token2}}"),
    Step("chunk-of-all-selected", "GET", f"{P}?limit=5&{G}"),
    Step("chunk-of-the-unselected", "GET", f"{P}?limit=1&labelSelector=%21g"),
    Step("chunk-of-one-by-name", "GET", f"{P}?limit=1&fieldSelector=metadata.name=other"),
    Step("chunk-counts-the-rest", "GET", f"{P}?limit=2"),
    Step("limit-of-all", "GET", f"{P}?limit=6"),
    Step("rest-without-limit", "GET", f"{P}?{G}&continue={{token}}"),
    Step("bad-token", "GET", f"{P}?continue=garbage"),
    Step("token-and-version", "GET", f"{P}?limit=2&continue={{token}}&resourceVersion=5"),
    Step("token-and-match", "GET", f"{P}?limit=2&continue={{token}}&resourceVersionMatch=Exact"),
    Step("future", "GET", f"{P}?resourceVersion=99999999", waits=3),
    Step("any-ignores-limit", "GET", f"{P}?resourceVersion=0&limit=1"),
    Step("match-without-version", "GET", f"{P}?resourceVersionMatch=Exact"),
    Step("exact-zero", "GET", f"{P}?resourceVersionMatch=Exact&resourceVersion=0"),
    Step("exact-past", "GET", f"{P}?resourceVersionMatch=Exact&resourceVersion={{rv2}}"),
    Step("exact-by-limit", "GET", f"{P}?limit=10&resourceVersion={{rv1}}"),
    Step("exact-future", "GET", f"{P}?resourceVersionMatch=Exact&resourceVersion=99999999", waits=3),
    Step("not-older", "GET", f"{P}?resourceVersionMatch=NotOlderThan&resourceVersion=1"),
    Step("bad-match", "GET", f"{P}?resourceVersionMatch=Bogus&resourceVersion=1"),
    Step("bad-version", "GET", f"{P}?resourceVersion=abc"),
    Step("initial-events-on-list", "GET", f"{P}?sendInitialEvents=true"),
    Step("negative-limit", "GET", f"{P}?limit=-1"),
    Step("bad-limit", "GET", f"{P}?limit=x"),
    Step("labels-in", "GET", f"{P}?labelSelector=n%20in%20(1,3)"),
    Step("labels-not-in", "GET", f"{P}?labelSelector=n%20notin%20(1,3)"),
    Step("labels-not-equal", "GET", f"{P}?labelSelector=g!%3Dl"),
    Step("labels-exist", "GET", f"{P}?labelSelector=g,n%3E2"),
    Step("labels-absent", "GET", f"{P}?labelSelector=!g"),
    Step("labels-cut", "GET", f"{P}?labelSelector=g%20in"),
    Step("labels-bad-key", "GET", f"{P}?labelSelector=a%20b%20c"),
    Step("labels-bad-value", "GET", f"{P}?labelSelector=a%3Db!"),
    Step("fields-unknown", "GET", f"{P}?fieldSelector=spec.foo%3Dx"),
    Step("fields-name", "GET", f"{P}?fieldSelector=metadata.name%3Dl1"),
    Step("fields-both", "GET", f"{P}?fieldSelector=metadata.name%3Dl1,metadata.namespace!%3Dq"),
    Step("fields-not-name", "GET", f"{P}?fieldSelector=metadata.name!%3Dl1"),
    Step("fields-bad", "GET", f"{P}?fieldSelector=metadata.name"),
    Step("fields-of-pods", "GET", "/api/v1/namespaces/lists/pods?fieldSelector=spec.nope%3Dx"),
    Step(
        "fields-of-pods-known",
        "GET",
        "/api/v1/namespaces/lists/pods?fieldSelector=spec.nodeName%3Dx,status.phase%3DRunning",
    ),
    *(
        Step(
            f"fields-of-{kind}",
            "GET",
            f"/api/v1/namespaces/lists/{kind.removesuffix('-more')}?fieldSelector={fields}",
        )
        for kind, fields in FIELDS.items()
    ),
    *(Step(f"fields-in-{kind}", "GET", path) for kind, path in ELSEWHERE.items()),
    Step(
        "all-namespaces",
        "GET",
        "/api/v1/configmaps?fieldSelector=metadata.namespace%3Dlists&limit=3",
        save={"everywhere": "metadata.continue"},
    ),
    Step("table-of-one", "GET", f"{P}/l1", headers=TABLE),
    Step("table", "GET", f"{P}?limit=2", headers=TABLE),
    Step("table-with-objects", "GET", f"{P}/l1?includeObject=Object", headers=TABLE),
    Step("table-without-objects", "GET", f"{P}?includeObject=None", headers=TABLE),
    Step("table-bad-include", "GET", f"{P}?includeObject=Bogus", headers=TABLE),
    Step("table-of-none", "GET", "/api/v1/namespaces/lists/secrets", headers=TABLE),
    Step("table-missing", "GET", f"{P}/nope", headers=TABLE),
    Step("partial", "GET", f"{P}/l1", headers=PARTIAL),
    Step("partials", "GET", f"{P}?limit=1", headers=PARTIALS),
    Step("partial-for-list", "GET", f"{P}?limit=1", headers=PARTIAL),
    Step("list-yaml", "GET", f"{P}?limit=1", headers={"Accept": "application/yaml"}),
    Step("namespaces-table", "GET", "/api/v1/namespaces/lists", headers=TABLE),
]
