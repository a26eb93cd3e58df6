"""Bad input gets an answer with the right status, and the server stays up and small."""

import json

import pytest
from devserver_http import APPLY, MERGE, Http
from hypothesis import HealthCheck, given, settings
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
async def test_a_bad_body_is_the_clients_mistake(name: str, http: Http) -> None:
    body, headers = BODIES[name]
    reply = await http.request("POST", P, body, headers)
    assert reply.status in (400, 415, 422), reply
    assert reply.json()["kind"] == "Status"
    assert (await http.request("GET", "/livez")).status == 200


async def test_patch_bombs_are_refused(http: Http) -> None:
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


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow])
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
