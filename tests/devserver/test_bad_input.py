"""Bad input gets an answer with the right status, and the server stays up and small."""

import json

import pytest
from devserver_http import APPLY, MERGE, Http
from hypothesis import given, settings
from hypothesis import strategies as st

from kubewright.devserver import Server
from kubewright.testing.virtual_time import virtual_time

P = "/api/v1/namespaces/default/configmaps"
JSON_PATCH = {"Content-Type": "application/json-patch+json"}
YAML = {"Content-Type": "application/yaml"}
PROTOBUF = {"Content-Type": "application/vnd.kubernetes.protobuf"}

BODIES: dict[str, tuple[bytes, dict[str, str]]] = {
    "no JSON": (b"nonsense", {}),
    "nested 10,000 deep": (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, {}),
    "an array 10,000 deep": (b"[" * 10_000 + b"]" * 10_000, {}),
    "cut": (b'{"metadata":{"name":"x"', {}),
    "invalid UTF-8 in a key": (b'{"\xff\xfe":1}', {}),
    "NaN": (b'{"metadata":{"name":"nan"},"data":{"a":NaN}}', {}),
    "a huge number": (b'{"metadata":{"name":"n","generation":1e999}}', {}),
    "a list": (b"[]", {}),
    "a YAML bomb": (
        b"a: &a [x,x,x,x,x,x,x,x,x]\n"
        + b"".join(
            b"%c: &%c [%b]\n" % (98 + i, 98 + i, b",".join([b"*%c" % (97 + i)] * 9)) for i in range(9)
        ),
        YAML,
    ),
    "protobuf cut short": (b"k8s\x00\x0a\x0f\x0a\x02v1", PROTOBUF),
    "protobuf of nothing": (b"k8s\x00", PROTOBUF),
    "no protobuf": (b"\x00\x01\x02", PROTOBUF),
    "an unknown format": (b"x", {"Content-Type": "text/plain"}),
}


@pytest.mark.parametrize("name", BODIES)
async def test_a_malformed_body_is_a_client_error(name: str, http: Http) -> None:
    body, headers = BODIES[name]
    reply = await http.request("POST", P, body, headers)
    assert reply.status in (400, 415, 422), reply
    assert reply.json()["kind"] == "Status"
    assert (await http.request("GET", "/livez")).status == 200


async def test_exponentially_growing_patches_are_refused(http: Http) -> None:
    await http.create(P, {"metadata": {"name": "a"}, "data": {"a": "x" * 1000}})
    copies = [{"op": "copy", "from": "/data", "path": f"/data/n{index}"} for index in range(40)]
    assert (await http.request("PATCH", f"{P}/a", copies, JSON_PATCH)).status in (413, 422)
    many = [{"op": "test", "path": "/data/a", "value": "x"}] * 10_001
    reply = await http.request("PATCH", f"{P}/a", many, JSON_PATCH)
    assert (reply.status, reply.json()["reason"]) == (413, "RequestEntityTooLarge")


async def test_long_selectors_are_read_in_bounded_time(http: Http) -> None:
    terms = ",".join(f"k{index}%20in%20(a,b,c)" for index in range(500))
    assert (await http.request("GET", f"{P}?labelSelector={terms}")).status == 200
    assert (await http.request("GET", f"{P}?labelSelector={'(' * 5000}")).status == 400


async def test_a_body_of_4_mb_is_too_large(http: Http) -> None:
    body = {"metadata": {"name": "big"}, "data": {"a": "x" * (4 * 1024 * 1024)}}
    wire = await http.open()
    wire.send("POST", P, json.dumps(body).encode(), {"Content-Type": "application/json"})
    reply = await wire.reply()
    assert (reply.status, reply.json()["reason"]) == (413, "RequestEntityTooLarge")
    assert (await http.request("GET", f"{P}/big")).status == 404


async def test_repeated_keys_are_reported_however_many(http: Http) -> None:
    body = b'{"metadata":{"name":"twice"},"data":{' + b",".join([b'"a":"1"'] * 5000) + b"}}"
    assert (await http.request("POST", f"{P}?fieldValidation=Strict", body)).status == 400
    reply = await http.request("POST", P, body)
    assert (reply.status, reply.json()["data"]) == (201, {"a": "1"})
    assert 'duplicate field \\"data.a\\"' in reply.headers["warning"]


async def test_a_wrong_kind_for_the_path_is_refused(http: Http) -> None:
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": "AA=="}}
    assert (await http.request("POST", P, body)).status == 400


EXPLODING = ("^(a+)+$", "(a|aa)+$", "(a*)*b", "(.*)(.*)(.*)(.*)(.*)x", "(a?){60}a{60}")


def kind_with(**properties: object) -> dict[str, object]:
    """Define a kind whose spec has these properties."""
    spec = {"type": "object", "properties": properties}
    schema = {"type": "object", "properties": {"spec": spec}}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "bads", "kind": "Bad"}
    return {
        "metadata": {"name": "bads.ex.io"},
        "spec": {"group": "ex.io", "scope": "Cluster", "names": names, "versions": [version]},
    }


CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def bad(**spec: object) -> dict[str, object]:
    return {"apiVersion": "ex.io/v1", "kind": "Bad", "metadata": {"name": "b"}, "spec": spec}


@pytest.mark.parametrize("pattern", EXPLODING)
async def test_patterns_match_in_linear_time(pattern: str, http: Http) -> None:
    rule = {"rule": f"self.matches({json.dumps(pattern)})", "message": "does not match"}
    await http.create(
        CRDS,
        kind_with(
            a={"type": "string", "pattern": pattern},
            b={"type": "string", "maxLength": 10000, "x-kubernetes-validations": [rule]},
        ),
    )
    text = "a" * 5000 + "!"
    for spec in ({"a": text}, {"b": text}):
        reply = await http.request("POST", "/apis/ex.io/v1/bads?dryRun=All", bad(**spec))
        assert reply.status in (201, 422)


@pytest.mark.parametrize(
    "pattern", ["(((a{100}){100}){100}){100}", "a{1001}", "(" * 1100 + ")" * 1100, "(?<=a)b", r"(a)\1"]
)
async def test_patterns_that_the_real_server_cannot_compile_are_refused(pattern: str, http: Http) -> None:
    reply = await http.request("POST", CRDS, kind_with(a={"type": "string", "pattern": pattern}))
    assert reply.status == 422, reply


async def test_validation_rules_stop_at_their_cost_limit(http: Http) -> None:
    words = {"type": "array", "maxItems": 1000, "items": {"type": "string", "maxLength": 10}}
    nested = "self.all(x, self.all(y, self.all(z, self.all(w, x + y + z + w != 'x'))))"
    reply = await http.request(
        "POST", CRDS, kind_with(a={**words, "x-kubernetes-validations": [{"rule": nested}]})
    )
    assert reply.status == 422
    assert "cost" in reply.json()["message"]


async def test_admission_policies_stop_at_their_cost_limit(http: Http) -> None:
    """A policy knows no bounds of what it reads, so that only counting at run time stops it."""
    names = [f"n{index}" for index in range(2000)]
    nested = "object.data.all(a, object.data.all(b, object.data.all(c, a + b + c != 'x')))"
    registration = "/apis/admissionregistration.k8s.io/v1"
    rules = [
        {"apiGroups": [""], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["configmaps"]}
    ]
    policy = {
        "metadata": {"name": "endless"},
        "spec": {"matchConstraints": {"resourceRules": rules}, "validations": [{"expression": nested}]},
    }
    await http.create(f"{registration}/validatingadmissionpolicies", policy)
    binding = {"metadata": {"name": "b"}, "spec": {"policyName": "endless", "validationActions": ["Deny"]}}
    await http.create(f"{registration}/validatingadmissionpolicybindings", binding)
    body = {"metadata": {"name": "many"}, "data": dict.fromkeys(names, "v")}
    reply = await http.request("POST", P, body)
    assert reply.status == 422, reply
    assert "cost" in reply.json()["message"], reply.json()["message"]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "apiVersion": st.sampled_from(["v1", "apps/v1", "nope/v9"]) | VALUES,
        "kind": st.sampled_from(["ConfigMap", "Pod", "Nope"]) | VALUES,
        "metadata": VALUES
        | st.fixed_dictionaries(
            {},
            optional={
                "name": st.sampled_from(["a", "b"]) | VALUES,
                "labels": VALUES,
                "annotations": VALUES,
                "finalizers": VALUES,
                "ownerReferences": VALUES,
                "managedFields": VALUES,
                "resourceVersion": VALUES,
                "deletionTimestamp": VALUES,
            },
        ),
        "data": VALUES,
        "binaryData": VALUES,
    },
)
REQUESTS = st.tuples(
    st.sampled_from(["POST", "PUT", "PATCH", "DELETE"]),
    st.sampled_from(["", "/a", "/b", "/a/status"]),
    st.sampled_from([{}, MERGE, JSON_PATCH, APPLY, YAML]),
    OBJECTS | VALUES,
    st.sampled_from(["", "?fieldManager=m&force=true", "?dryRun=All", "?fieldValidation=Strict"]),
)


@settings(max_examples=40)
@given(st.lists(REQUESTS, min_size=1, max_size=12))
def test_no_request_makes_the_server_fail(
    requests: list[tuple[str, str, dict[str, str], object, str]],
) -> None:
    @virtual_time
    async def run() -> None:
        async with Server() as server, Http(server) as http:
            for method, name, headers, body, query in requests:
                reply = await http.request(method, f"{P}{name}{query}", json.dumps(body).encode(), headers)
                # 500 is what the real server says too, but only with these reasons.
                assert reply.status < 500 or "strconv" in reply.body.decode() or expected(reply.json()), reply

    run()


def expected(status: dict[str, str]) -> bool:
    message = status.get("message", "")
    return message.startswith(("resourceVersion should not be set", "failed to create typed patch object"))
