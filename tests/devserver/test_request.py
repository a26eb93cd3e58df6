"""What paths mean."""

import pytest

from kubewright.devserver.request.info import request_info
from kubewright.http.server import Request, split_target

CASES = {
    "GET /api/v1/namespaces": ("list", "", "v1", "namespaces", "", "", ""),
    "GET /api/v1/namespaces/a": ("get", "", "v1", "namespaces", "a", "a", ""),
    "PUT /api/v1/namespaces/a/finalize": ("update", "", "v1", "namespaces", "a", "a", "finalize"),
    "GET /api/v1/namespaces/a/status": ("get", "", "v1", "namespaces", "a", "a", "status"),
    "GET /api/v1/namespaces/a/pods": ("list", "", "v1", "pods", "a", "", ""),
    "GET /api/v1/namespaces/a/pods?watch=1": ("watch", "", "v1", "pods", "a", "", ""),
    "GET /api/v1/namespaces/a/pods?watch=false": ("list", "", "v1", "pods", "a", "", ""),
    "GET /api/v1/namespaces/a/pods/p?watch=1": ("get", "", "v1", "pods", "a", "p", ""),
    "GET /api/v1/namespaces/a/pods/p/log": ("get", "", "v1", "pods", "a", "p", "log"),
    "DELETE /api/v1/namespaces/a/pods": ("deletecollection", "", "v1", "pods", "a", "", ""),
    "DELETE /api/v1/namespaces/a/pods/p": ("delete", "", "v1", "pods", "a", "p", ""),
    "POST /apis/apps/v1/namespaces/a/deployments": ("create", "apps", "v1", "deployments", "a", "", ""),
    "PATCH /apis/apps/v1/namespaces/a/deployments/d/scale": (
        "patch",
        "apps",
        "v1",
        "deployments",
        "a",
        "d",
        "scale",
    ),
    "GET /api/v1/watch/namespaces/a/pods": ("watch", "", "v1", "pods", "a", "", ""),
    "GET /api/v1/watch/pods": ("watch", "", "v1", "pods", "", "", ""),
    "GET /api/v1/nodes/a%20b": ("get", "", "v1", "nodes", "", "a b", ""),
    "GET /api/v1": ("get", "", "", "", "", "", ""),
    "GET /apis/apps/v1": ("get", "", "", "", "", "", ""),
    "GET /healthz": ("get", "", "", "", "", "", ""),
    "GET /": ("get", "", "", "", "", "", ""),
}


@pytest.mark.parametrize("line", CASES)
def test_a_path_is_read_as_verb_resource_and_name(line: str) -> None:
    method, target = line.split(" ")
    path, query = split_target(target)
    info = request_info(Request(method, path, query, {}, b""))
    found = (info.verb, info.group, info.version, info.resource, info.namespace, info.name, info.subresource)
    assert found == CASES[line]
