"""Every verb is a pure function to a request value."""

from typing import Any
from urllib.parse import parse_qs, unquote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Kind, Meta, kind_of
from kubewright.api.builtin import core_v1
from kubewright.client import InvalidRequest, requests

POD = kind_of(core_v1.Pod)
NODE = kind_of(core_v1.Node)
FOO = Kind(group="example.com", version="v1", kind="Foo", plural="foos", status=True)


def query(request: requests.ApiRequest) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(request.query, keep_blank_values=True).items()}


def body(request: requests.ApiRequest) -> Any:
    return msgspec.json.decode(request.body)


def test_get_of_a_core_kind_has_a_path_below_api_v1() -> None:
    request = requests.get(POD, "web", "default")
    assert (request.method, request.path, request.query) == ("GET", "/api/v1/namespaces/default/pods/web", "")
    assert request.verb == "get"
    assert request.object == "pods default/web"
    assert request.retry_safe


def test_get_of_a_cluster_scoped_kind_has_no_namespace() -> None:
    assert requests.get(NODE, "n1").path == "/api/v1/nodes/n1"


def test_a_custom_kind_has_a_path_below_its_group() -> None:
    request = requests.get(FOO, "a", "default", subresource="status")
    assert request.path == "/apis/example.com/v1/namespaces/default/foos/a/status"
    assert request.object == "foos/status.example.com default/a"


def test_names_with_colons_stay_readable() -> None:
    kind = Kind(
        group="rbac.authorization.k8s.io",
        version="v1",
        kind="ClusterRole",
        plural="clusterroles",
        namespaced=False,
    )
    assert requests.get(kind, "system:node").path.endswith("/clusterroles/system:node")


@pytest.mark.parametrize("name", ["a/b", "a%2fb", ".", "..", ""])
def test_a_name_with_path_separators_is_refused(name: str) -> None:
    with pytest.raises(InvalidRequest, match="name"):
        requests.get(POD, name, "default")


@pytest.mark.parametrize("namespace", ["a/b", "%", ".."])
def test_a_namespace_with_path_separators_is_refused(namespace: str) -> None:
    with pytest.raises(InvalidRequest, match="namespace"):
        requests.get(POD, "web", namespace)


@pytest.mark.parametrize("subresource", ["a/b", "../../secrets", "%2e", "..", "status?watch=true#"])
def test_a_subresource_cannot_lead_to_another_path(subresource: str) -> None:
    try:
        path = requests.get(POD, "web", "default", subresource=subresource).path
    except InvalidRequest as error:
        assert "subresource" in str(error)  # noqa: PT017
    else:
        assert path.rpartition("/")[0] == "/api/v1/namespaces/default/pods/web"
        assert "?" not in path
        assert unquote(path.rpartition("/")[2]) == subresource


def test_a_namespaced_object_needs_a_namespace() -> None:
    with pytest.raises(InvalidRequest, match="Pod is namespaced: give a namespace"):
        requests.get(POD, "web")


def test_a_cluster_scoped_object_takes_no_namespace() -> None:
    with pytest.raises(InvalidRequest, match="Node is cluster-scoped"):
        requests.get(NODE, "n1", "default")


@given(
    st.text(min_size=1).filter(lambda text: "/" not in text and "%" not in text and text not in (".", ".."))
)
def test_any_other_name_is_quoted_reversibly_in_the_path(name: str) -> None:
    try:
        name.encode()
    except UnicodeEncodeError:
        return
    path = requests.get(POD, name, "default").path
    assert path.count("/") == 6
    assert unquote(path.rsplit("/", 1)[1]) == name


def test_a_list_of_all_namespaces_carries_selectors_and_limit() -> None:
    request = requests.list_page(POD, labels="app in (a, b)", fields="spec.nodeName=n1", limit=500)
    assert request.path == "/api/v1/pods"
    assert query(request) == {
        "labelSelector": "app in (a, b)",
        "fieldSelector": "spec.nodeName=n1",
        "limit": "500",
    }


def test_a_continue_token_excludes_the_resource_version() -> None:
    request = requests.list_page(
        POD, resource_version="5", resource_version_match="Exact", limit=2, continue_token="t"
    )
    assert query(request) == {"limit": "2", "continue": "t"}


def test_a_watch_requests_bookmarks() -> None:
    request = requests.watch(POD, namespace="default", resource_version="7", timeout_seconds=300)
    assert query(request) == {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "300",
    }


def test_a_watch_of_the_current_state_has_the_watch_list_parameters() -> None:
    asked = query(requests.watch(POD, initial_events=True))
    assert asked["sendInitialEvents"] == "true"
    assert asked["resourceVersionMatch"] == "NotOlderThan"


def test_create_posts_the_object_to_its_collection() -> None:
    config = core_v1.ConfigMap(Meta("a", namespace="default"), data={"x": "1"})
    request = requests.create(config, field_manager="me", dry_run=True, field_validation="Strict")
    assert (request.method, request.path) == ("POST", "/api/v1/namespaces/default/configmaps")
    assert query(request) == {"fieldManager": "me", "dryRun": "All", "fieldValidation": "Strict"}
    assert body(request)["kind"] == "ConfigMap"
    assert body(request)["data"] == {"x": "1"}


def test_create_is_never_repeated_unless_it_is_a_dry_run() -> None:
    config = core_v1.ConfigMap(Meta("a", namespace="default"))
    assert not requests.create(config).retry_safe
    assert requests.create(config, dry_run=True).retry_safe


def test_a_dictionary_is_completed_with_its_kind() -> None:
    request = requests.create({"metadata": {"name": "a", "namespace": "default"}}, FOO)
    assert body(request) == {
        "apiVersion": "example.com/v1",
        "kind": "Foo",
        "metadata": {"name": "a", "namespace": "default"},
    }


def test_a_dictionary_without_a_kind_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="needs its Kind"):
        requests.create({"metadata": {"name": "a"}})


def test_replace_is_repeatable_only_with_a_resource_version() -> None:
    config = core_v1.ConfigMap(Meta("a", namespace="default"))
    assert not requests.replace(config).retry_safe
    config.metadata.resource_version = "0"
    assert not requests.replace(config).retry_safe
    config.metadata.resource_version = "5"
    request = requests.replace(config)
    assert request.retry_safe
    assert (request.method, request.verb) == ("PUT", "update")


@pytest.mark.parametrize(
    ("kind", "content_type"),
    [
        ("json", "application/json-patch+json"),
        ("merge", "application/merge-patch+json"),
        ("strategic", "application/strategic-merge-patch+json"),
        ("apply", "application/apply-patch+yaml"),
    ],
)
def test_each_patch_has_its_content_type(kind: Any, content_type: str) -> None:
    request = requests.patch(POD, "web", "default", {}, type=kind, field_manager="me")
    assert request.content_type == content_type
    assert request.method == "PATCH"


VERSION = "/metadata/resourceVersion"
APPEND = {"op": "add", "path": "/items/-", "value": "1"}


@pytest.mark.parametrize(
    ("document", "kind", "safe"),
    [
        ({"data": {}}, "merge", False),
        ({"metadata": {"resourceVersion": "5"}}, "merge", True),
        ({"metadata": {"resourceVersion": "0"}}, "merge", False),
        ({"metadata": {"uid": "u"}}, "merge", False),
        ({"metadata": {"uid": "u"}}, "strategic", False),
        ([{"op": "add", "path": "/data/a", "value": "1"}], "json", False),
        ([{"op": "test", "path": "/metadata/uid", "value": "u"}, APPEND], "json", False),
        ([{"op": "replace", "path": "/metadata/uid", "value": "u"}, APPEND], "json", False),
        ([{"op": "replace", "path": VERSION, "value": "5"}, APPEND], "json", True),
        ([{"op": "add", "path": VERSION, "value": "5"}, APPEND], "json", True),
        ([{"op": "test", "path": VERSION, "value": "5"}, APPEND], "json", True),
        ([{"op": "replace", "path": VERSION, "value": ""}, APPEND], "json", False),
        ([{"op": "replace", "path": VERSION, "value": "0"}, APPEND], "json", False),
        ([{"op": "remove", "path": VERSION}, APPEND], "json", False),
        (
            [{"op": "replace", "path": VERSION, "value": "5"}, {"op": "remove", "path": VERSION}],
            "json",
            False,
        ),
        (
            [
                {"op": "replace", "path": VERSION, "value": "5"},
                {"op": "test", "path": VERSION, "value": "5"},
                {"op": "remove", "path": VERSION},
            ],
            "json",
            False,
        ),
        (
            [
                {"op": "replace", "path": VERSION, "value": "5"},
                {"op": "replace", "path": "/metadata", "value": {}},
            ],
            "json",
            False,
        ),
        ({"data": {}}, "apply", True),
    ],
)
def test_a_patch_is_repeatable_when_a_late_copy_cannot_harm(document: Any, kind: Any, safe: bool) -> None:
    assert requests.patch(POD, "web", "default", document, type=kind, field_manager="me").retry_safe is safe


def test_an_unknown_patch_type_is_an_error() -> None:
    wrong: Any = "three-way"
    with pytest.raises(InvalidRequest, match="type='three-way': use json, merge, strategic, apply"):
        requests.patch(FOO, "a", "default", {}, type=wrong)


def test_apply_without_a_field_manager_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="field manager"):
        requests.patch(POD, "web", "default", {}, type="apply")


def test_apply_forces_by_default_and_leaves_out_read_only_metadata() -> None:
    pod = core_v1.Pod(Meta("web", namespace="default"), spec=core_v1.PodSpec(containers=[]))
    request = requests.apply(pod, field_manager="me")
    assert query(request) == {"fieldManager": "me", "force": "true"}
    assert "status" not in body(request)
    wire = {"metadata": {"name": "a", "namespace": "default", "managedFields": [{}]}}
    assert "managedFields" not in body(requests.apply(wire, FOO, field_manager="me"))["metadata"]
    assert "managedFields" in wire["metadata"]


def test_apply_without_force_has_no_force_parameter() -> None:
    request = requests.apply(
        core_v1.ConfigMap(Meta("a", namespace="default")), field_manager="me", force=False
    )
    assert query(request) == {"fieldManager": "me"}


def test_apply_to_the_status_sends_the_status_alone() -> None:
    pod = core_v1.Pod(Meta("web", namespace="default"), spec=core_v1.PodSpec(containers=[]))
    pod.status.phase = "Running"
    request = requests.apply(pod, field_manager="me", subresource="status")
    assert request.path.endswith("/pods/web/status")
    assert set(body(request)) == {"apiVersion", "kind", "metadata", "status"}
    assert body(request)["status"]["phase"] == "Running"


def test_delete_carries_its_preconditions_and_options() -> None:
    request = requests.delete(
        POD, "web", "default", uid="u", resource_version="5", propagation="Foreground", grace_period_seconds=0
    )
    assert body(request) == {
        "apiVersion": "v1",
        "kind": "DeleteOptions",
        "preconditions": {"uid": "u", "resourceVersion": "5"},
        "propagationPolicy": "Foreground",
        "gracePeriodSeconds": 0,
    }
    assert request.retry_safe
    assert not requests.delete(POD, "web", "default").retry_safe


def test_delete_collection_selects_within_a_namespace() -> None:
    request = requests.delete_collection(POD, namespace="default", labels="a=b", dry_run=True)
    assert (request.method, request.path) == ("DELETE", "/api/v1/namespaces/default/pods")
    assert query(request) == {"labelSelector": "a=b"}
    assert body(request)["dryRun"] == ["All"]


def test_delete_collection_of_all_namespaces_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="namespaced"):
        requests.delete_collection(POD)


def test_an_eviction_does_not_wait_for_the_budget() -> None:
    assert not requests.post_subresource(
        POD, "web", "default", "eviction", {}, honor_retry_after=False
    ).honor_retry_after
