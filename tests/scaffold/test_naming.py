import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.scaffold import (
    domain_problem,
    group_problem,
    kind_problem,
    module_name,
    plural_problem,
    project_problem,
    version_problem,
)
from kubewright.scaffold.changes import changes_between, is_newer
from kubewright.scaffold.naming import controller_name, variable_name, version_class

KINDS = st.from_regex(r"[A-Z][A-Za-z0-9]{0,30}", fullmatch=True)


@pytest.mark.parametrize(
    "name", ["", "1shop", "My_Shop", "shop!", "operator", "json", "kubewright", "class", "-a", "test"]
)
def test_invalid_project_names_are_refused(name: str) -> None:
    assert "is not a valid project name" in project_problem(name)


@pytest.mark.parametrize("name", ["shop", "my-shop", "s3"])
def test_valid_project_names_are_accepted(name: str) -> None:
    assert project_problem(name) == ""


def test_invalid_names_are_reported_with_a_fix() -> None:
    assert kind_problem("cart") == "kind 'cart' is not in CamelCase: like Cart"
    assert kind_problem("video-rack") == "kind 'video-rack' is not in CamelCase: like VideoRack"
    assert kind_problem("Größe").endswith("letters from A to Z and digits, like VideoRack")
    assert "plural 'Video Racks': a DNS-1035 label" in plural_problem("Video Racks")
    assert "has no dot: use a full group such as shop.example.com" in group_problem("shop")
    assert "has no dot" in domain_problem("localhost")
    assert "for example v1, v1beta1" in version_problem("1")


@pytest.mark.parametrize("name", ["k8s.io", "shop.k8s.io", "shop.kubernetes.io"])
def test_groups_of_kubernetes_itself_are_refused(name: str) -> None:
    assert "is reserved for Kubernetes: use" in group_problem(name)
    assert "is reserved for Kubernetes: use" in domain_problem(name)
    assert group_problem(f"{name}.example.com") == group_problem("myk8s.io") == ""


@pytest.mark.parametrize(
    ("kind", "module", "variable", "controller"),
    [
        ("Cart", "cart", "cart", "carts"),
        ("VideoRack", "video_rack", "rack", "video_racks"),
        ("HTTPRoute", "http_route", "route", "http_routes"),
        ("Class", "class_kind", "class_", "classes"),
        ("List", "list", "list_", "lists"),
        ("Policy", "policy", "policy", "policies"),
    ],
)
def test_names_in_code_come_from_the_kind(kind: str, module: str, variable: str, controller: str) -> None:
    assert (module_name(kind), variable_name(kind), controller_name(kind)) == (module, variable, controller)


@given(KINDS)
def test_every_kind_gives_names_that_python_takes(kind: str) -> None:
    for name in (module_name(kind), variable_name(kind), controller_name(kind)):
        compile(f"{name} = 1", "x", "exec")


def test_a_further_version_has_a_class_of_its_own() -> None:
    assert version_class("Cart", "v2beta1") == "CartV2Beta1"


def test_lists_what_changed_since_an_older_project() -> None:
    changes = {"0.2.0": ["b"], "0.1.0": ["a"], "0.10.0": ["d"], "0.3.0": ["c"]}
    assert changes_between("0.1.0", "0.3.0", changes) == ["0.2.0: b", "0.3.0: c"]
    assert changes_between("0.3.0", "0.10.1", changes) == ["0.10.0: d"]
    assert is_newer("0.10.0", "0.9.0")
    assert not is_newer("0.9.0", "0.9.0")
