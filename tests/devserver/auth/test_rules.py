from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.auth.rules import allows, compact, describe, uncovered
from kubewright.devserver.request.identity import AuthorizationAttributes

GROUPS, RESOURCES, VERBS = ["", "apps"], ["pods", "pods/log", "deployments"], ["get", "list", "create"]
RULES = st.fixed_dictionaries(
    {
        "apiGroups": st.lists(st.sampled_from([*GROUPS, "*"]), min_size=1, unique=True),
        "resources": st.lists(st.sampled_from([*RESOURCES, "*", "*/log"]), min_size=1, unique=True),
        "verbs": st.lists(st.sampled_from([*VERBS, "*"]), min_size=1, unique=True),
    }
)
REQUESTS = st.builds(
    lambda verb, group, resource: AuthorizationAttributes(
        verb, group, "v1", *(resource.split("/") if "/" in resource else (resource, ""))
    ),
    st.sampled_from(VERBS),
    st.sampled_from(GROUPS),
    st.sampled_from(RESOURCES),
)


def rule(
    verbs: str = "get", groups: str = "", resources: str = "pods", **more: list[str]
) -> dict[str, list[str]]:
    return {"verbs": verbs.split(), "apiGroups": [groups], "resources": resources.split(), **more}


def test_a_rule_allows_its_verb_on_its_resource_only() -> None:
    assert allows(rule(), AuthorizationAttributes("get", "", "v1", "pods"))
    assert not allows(rule(), AuthorizationAttributes("list", "", "v1", "pods"))
    assert not allows(rule(), AuthorizationAttributes("get", "apps", "v1", "pods"))
    assert not allows(rule(), AuthorizationAttributes("get", "", "v1", "pods", "log"))


def test_a_star_subresource_covers_it_on_every_resource() -> None:
    assert allows(rule(resources="*/log"), AuthorizationAttributes("get", "", "v1", "pods", "log"))
    assert not allows(rule(resources="*/log"), AuthorizationAttributes("get", "", "v1", "pods"))


def test_resource_names_limit_a_rule() -> None:
    named = rule(resourceNames=["a"])
    assert allows(named, AuthorizationAttributes("get", "", "v1", "pods", "", "ns", "a"))
    assert not allows(named, AuthorizationAttributes("get", "", "v1", "pods", "", "ns", "b"))
    assert not allows(named, AuthorizationAttributes("get", "", "v1", "pods"))


def test_paths_match_exactly_or_by_prefix() -> None:
    paths = {"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]}
    assert allows(paths, AuthorizationAttributes("get", path="/healthz"))
    assert allows(paths, AuthorizationAttributes("get", path="/apis/apps"))
    assert not allows(paths, AuthorizationAttributes("get", path="/healthz/etcd"))


@given(st.lists(RULES, max_size=3), st.lists(RULES, max_size=3), REQUESTS)
def test_rules_that_cover_others_allow_all_they_allow(
    owned: list[dict[str, list[str]]], wanted: list[dict[str, list[str]]], request: AuthorizationAttributes
) -> None:
    if not uncovered(owned, wanted) and any(allows(one, request) for one in wanted):
        assert any(allows(one, request) for one in owned)


@given(st.lists(RULES, max_size=3))
def test_rules_cover_themselves(rules: list[dict[str, list[str]]]) -> None:
    assert uncovered(rules, rules) == []


def test_missing_permissions_are_listed_as_one_rule_per_resource() -> None:
    missing = compact(uncovered([rule("get")], [rule("get list create")]))
    assert [describe(one) for one in missing] == [
        '{APIGroups:[""], Resources:["pods"], Verbs:["list", "create"]}'
    ]
