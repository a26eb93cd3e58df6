from pathlib import Path

import pytest

from kubewright.api import Kind, Status, error_from_status, kind_of
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.client import Request, requests
from kubewright.client.recording import Access, Recording, access_of, read_recordings

PODS, NAMESPACES = kind_of(core_v1.Pod), kind_of(core_v1.Namespace)
DEPLOYMENTS: Kind = kind_of(apps_v1.Deployment)


@pytest.mark.parametrize(
    ("request_", "access"),
    [
        (requests.get(PODS, "a", "x"), Access("get", "", "pods", "x", "a")),
        (
            requests.get(DEPLOYMENTS, "a", "x", subresource="scale"),
            Access("get", "apps", "deployments/scale", "x", "a"),
        ),
        (requests.list_page(PODS), Access("list", "", "pods")),
        (requests.watch(DEPLOYMENTS, namespace="x"), Access("watch", "apps", "deployments", "x")),
        (requests.get(NAMESPACES, "x"), Access("get", "", "namespaces", "", "x")),
        (
            requests.get(NAMESPACES, "x", subresource="status"),
            Access("get", "", "namespaces/status", "", "x"),
        ),
        (requests.delete(PODS, "a", "x"), Access("delete", "", "pods", "x", "a")),
        (
            Request(method="DELETE", path="/api/v1/namespaces/x/pods", verb="delete"),
            Access("deletecollection", "", "pods", "x"),
        ),
        (
            Request(method="PUT", path="/api/v1/namespaces/x/pods/a", verb="replace"),
            Access("update", "", "pods", "x", "a"),
        ),
        (requests.get_path("/version"), None),
        (requests.get_path("/apis/apps/v1"), None),
    ],
)
def test_a_request_is_told_in_the_words_of_rbac(request_: Request, access: Access | None) -> None:
    assert access_of(request_) == access


def test_an_apply_that_creates_takes_both_rights() -> None:
    recording = Recording()
    patch = Request(method="PATCH", path="/api/v1/namespaces/x/pods/a", verb="apply")
    recording.observe(patch, 200, None)
    assert {access.verb for access in recording.accesses} == {"patch"}
    recording.observe(patch, 201, None)
    assert {access.verb for access in recording.accesses} == {"patch", "create"}


def test_a_refusal_counts_only_where_a_role_lacks_a_rule(tmp_path: Path) -> None:
    recording = Recording()
    patch = Request(method="PATCH", path="/apis/apps/v1/namespaces/x/deployments/a", verb="apply")
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
