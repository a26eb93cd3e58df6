from pathlib import Path

import pytest

from kubewright.api import Kind, Status, error_from_status, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import ApiRequest, requests
from kubewright.client.recording import RecordedAccess, Recording, access_of, read_recordings

PODS, NAMESPACES = kind_of(core_v1.Pod), kind_of(core_v1.Namespace)
DEPLOYMENTS: Kind = kind_of(apps_v1.Deployment)


@pytest.mark.parametrize(
    ("request_", "access"),
    [
        (requests.get(PODS, "a", "x"), RecordedAccess("get", "", "pods", "x", "a")),
        (
            requests.get(DEPLOYMENTS, "a", "x", subresource="scale"),
            RecordedAccess("get", "apps", "deployments/scale", "x", "a"),
        ),
        (requests.list_page(PODS), RecordedAccess("list", "", "pods")),
        (requests.watch(DEPLOYMENTS, namespace="x"), RecordedAccess("watch", "apps", "deployments", "x")),
        (requests.get(NAMESPACES, "x"), RecordedAccess("get", "", "namespaces", "", "x")),
        (
            requests.get(NAMESPACES, "x", subresource="status"),
            RecordedAccess("get", "", "namespaces/status", "", "x"),
        ),
        (requests.delete(PODS, "a", "x"), RecordedAccess("delete", "", "pods", "x", "a")),
        (
            ApiRequest(method="DELETE", path="/api/v1/namespaces/x/pods", verb="delete"),
            RecordedAccess("deletecollection", "", "pods", "x"),
        ),
        (
            ApiRequest(method="PUT", path="/api/v1/namespaces/x/pods/a", verb="replace"),
            RecordedAccess("update", "", "pods", "x", "a"),
        ),
        (requests.get_path("/version"), None),
        (requests.get_path("/apis/apps/v1"), None),
    ],
)
def test_a_request_is_recorded_as_an_rbac_rule(request_: ApiRequest, access: RecordedAccess | None) -> None:
    assert access_of(request_) == access


def test_an_apply_that_creates_needs_create_and_patch() -> None:
    recording = Recording()
    patch = ApiRequest(method="PATCH", path="/api/v1/namespaces/x/pods/a", verb="apply")
    recording.observe(patch, 200, None)
    assert {access.verb for access in recording.accesses} == {"patch"}
    recording.observe(patch, 201, None)
    assert {access.verb for access in recording.accesses} == {"patch", "create"}


def test_a_refusal_counts_only_where_a_role_lacks_a_rule(tmp_path: Path) -> None:
    recording = Recording()
    patch = ApiRequest(method="PATCH", path="/apis/apps/v1/namespaces/x/deployments/a", verb="apply")
    text = 'deployments.apps is forbidden: User "u" cannot create resource "deployments" in API group "apps"'
    recording.observe(patch, 403, error_from_status(Status(reason="Forbidden", code=403, message=text)))
    gone = Status(reason="Forbidden", code=403, message="the namespace is being terminated")
    recording.observe(patch, 403, error_from_status(gone))
    path = tmp_path / "accesses"
    recording.append_to(path, "shop")
    recording.append_to(path, "other")
    found = list(read_recordings(path))
    assert [run.operator for run in found] == ["shop", "other"]
    assert [(access.verb, access.denied) for access in found[0].accesses] == [
        ("create", True),
        ("patch", False),
    ]
