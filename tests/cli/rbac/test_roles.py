"""Hand-written roles compared with recorded permissions."""

from typing import Any

import pytest

from kubewright.cli.rbac.roles import (
    GrantedRole,
    RoleError,
    RoleVerification,
    choose_user,
    compare_roles,
    read_roles,
)
from kubewright.envtest.recording import UserAccess


def cluster_role(*rules: dict[str, Any]) -> GrantedRole:
    return GrantedRole("ClusterRole", "manager", "", rules)


def rule(resource: str, *verbs: str, group: str = "", names: tuple[str, ...] = ()) -> dict[str, Any]:
    found: dict[str, Any] = {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    return found | ({"resourceNames": list(names)} if names else {})


def used(verb: str, resource: str, **more: Any) -> UserAccess:
    return UserAccess("operator", verb, resource=resource, **more)


def missing(result: RoleVerification) -> list[tuple[str, str]]:
    return [(access.verb, access.resource) for access in result.missing]


def test_a_verb_that_reads_is_missing_by_itself_but_unused_only_with_the_others() -> None:
    role = cluster_role(rule("pods", "get", "list"))
    result = compare_roles([role], [used("list", "pods"), used("watch", "pods")])
    assert missing(result) == [("watch", "pods")]
    assert result.unused == []


def test_a_role_grants_in_its_namespace_only() -> None:
    role = GrantedRole("Role", "manager", "system", [rule("leases", "get", group="coordination.k8s.io")])
    accesses = [
        used("get", "leases", group="coordination.k8s.io", namespace=name) for name in ("system", "other")
    ]
    assert [access.namespace for access in compare_roles([role], accesses).missing] == ["other"]


def test_a_rule_with_names_grants_only_these() -> None:
    role = cluster_role(rule("secrets", "get", names=("login", "other")))
    result = compare_roles(
        [role], [used("get", "secrets", name="login"), used("get", "secrets", name="third")]
    )
    assert missing(result) == [("get", "secrets")]
    assert [(right.verb, right.name) for right in result.unused] == [("get", "other")]


def test_a_wildcard_is_used_by_any_matching_request() -> None:
    role = cluster_role(rule("*", "*", group="*"))
    assert compare_roles([role], [used("delete", "pods")]).proved
    assert not compare_roles([role], []).proved


def test_a_subresource_needs_its_own_rule() -> None:
    result = compare_roles([cluster_role(rule("pods", "get"))], [used("get", "pods", subresource="log")])
    assert missing(result) == [("get", "pods")]


def test_discovery_and_reviews_of_oneself_need_no_rule() -> None:
    accesses = [
        UserAccess("operator", "get", path="/apis/apps/v1"),
        used("create", "selfsubjectaccessreviews", group="authorization.k8s.io"),
    ]
    assert compare_roles([], accesses).proved


def test_several_names_of_a_missing_rule_are_one_line() -> None:
    accesses = [used("create", "pods", namespace="default", name=name) for name in ("a", "b")]
    assert len(compare_roles([], accesses).missing) == 1


def test_an_aggregated_role_is_refused() -> None:
    document = {
        "kind": "ClusterRole",
        "metadata": {"name": "all"},
        "aggregationRule": {"clusterRoleSelectors": []},
    }
    with pytest.raises(RoleError, match="ClusterRole all is aggregated"):
        read_roles([document], "default")


def test_a_rule_of_the_wrong_shape_is_an_error() -> None:
    with pytest.raises(RoleError, match="Expected `array`"):
        read_roles([{"kind": "Role", "rules": [{"verbs": "get"}]}], "default")


def test_the_only_user_that_is_not_an_administrator_is_chosen() -> None:
    admin = UserAccess("admin", "get", resource="pods", unrestricted=True)
    accesses = [admin, used("get", "pods"), UserAccess("system:anonymous", "get", path="/healthz")]
    assert choose_user(accesses, None) == "operator"
    assert choose_user(accesses, "admin") == "admin"
    with pytest.raises(RoleError, match="--user: recorded are ann, operator"):
        choose_user([*accesses, UserAccess("ann", "get", resource="pods")], None)
    with pytest.raises(RoleError, match="no recorded request of user 'bob'"):
        choose_user(accesses, "bob")
