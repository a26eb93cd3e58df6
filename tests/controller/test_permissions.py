import pytest

from kubewright.api import DeclarationError, PolicyRule, kind_of, lease_rules, review_rules
from kubewright.api.builtin import core_v1
from kubewright.controller import (
    Context,
    Controller,
    Operator,
    Permissions,
    UndeclaredAccess,
    needs,
    owned,
    rules_for,
    watch,
)

from .kinds import Note, Shell, Zone


async def reconcile(shell: Shell, ctx: Context) -> None:
    pass


class Finalizing:
    async def reconcile(self, shell: Shell, ctx: Context) -> None:
        pass

    async def finalize(self, shell: Shell, ctx: Context) -> None:
        pass


def rule(resource: str, *verbs: str, group: str = "shells.example.com") -> dict[str, object]:
    return {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}


def wire(operator: Operator) -> list[dict[str, object]]:
    return [found.to_wire() for found in rules_for(operator)]


EVENTS = rule("events", "create", "patch", group="events.k8s.io")


def test_a_controller_alone_may_read_its_kind_and_patch_its_status() -> None:
    assert wire(Operator(Controller(Shell, reconcile))) == [
        EVENTS,
        rule("shells", "get", "list", "watch"),
        rule("shells/status", "patch"),
    ]


def test_children_finalizers_watches_and_needs_add_only_the_rules_they_use() -> None:
    declared = Controller(
        Shell,
        Finalizing(),
        finalizer="example.com/x",
        owns=[Note],
        watches=[watch(Zone, map=lambda zone: [])],
        needs=[needs(Note, "delete"), needs(Zone, "create", subresource="eviction")],
    )
    assert wire(Operator(declared)) == [
        EVENTS,
        rule("notes", "create", "delete", "get", "list", "patch", "watch"),
        rule("shells", "get", "list", "patch", "watch"),
        rule("shells/finalizers", "update"),
        rule("shells/status", "patch"),
        rule("zones", "get", "list", "watch"),
        rule("zones/eviction", "create"),
    ]


def test_a_lease_is_limited_by_name_wherever_that_works() -> None:
    assert [found.to_wire() for found in lease_rules("shells")] == [
        rule("leases", "create", group="coordination.k8s.io"),
        {
            "apiGroups": ["coordination.k8s.io"],
            "resources": ["leases"],
            "resourceNames": ["shells"],
            "verbs": ["get", "update"],
        },
    ]
    assert {found.resources for found in review_rules()} == {("tokenreviews",), ("subjectaccessreviews",)}


def test_undeclared_access_is_refused_with_the_line_to_add() -> None:
    permissions = Permissions(Controller(Shell, reconcile, owns=[Note]))
    permissions.require(kind_of(Note), "get", "create", "patch")
    with pytest.raises(UndeclaredAccess, match=r'add needs=\[kw.needs\(Note, "delete"\)\]'):
        permissions.require(kind_of(Note), "delete")
    with pytest.raises(UndeclaredAccess, match=r'kw.needs\(Note, "patch", subresource="status"\)'):
        permissions.require(kind_of(Note), "patch", subresource="status")
    with pytest.raises(UndeclaredAccess, match="controller 'shell' does not declare get of zones"):
        permissions.require(kind_of(Zone), "get")


def test_the_advice_for_an_undeclared_write_names_owns_first() -> None:
    permissions = Permissions(Controller(Shell, reconcile))
    with pytest.raises(UndeclaredAccess) as refusal:
        permissions.require(kind_of(core_v1.ConfigMap), "get", "create", "patch")
    assert f"get/create/patch of configmaps (called at {__file__}:" in str(refusal.value)
    owned, _, shared = str(refusal.value).partition("; or ")
    assert "add owns=[core_v1.ConfigMap] to its declaration" in owned
    assert shared.startswith('needs=[kw.needs(core_v1.ConfigMap, "get", "create", "patch")] if it is shared')


def test_the_advice_for_a_read_names_owns_too() -> None:
    with pytest.raises(UndeclaredAccess) as refusal:
        Permissions(Controller(Shell, reconcile)).require(kind_of(core_v1.Secret), "get")
    assert str(refusal.value).endswith(
        'add needs=[kw.needs(core_v1.Secret, "get")] to its declaration, '
        "or owns=[core_v1.Secret] if this controller creates it"
    )


def test_a_child_that_is_only_created_needs_no_patch() -> None:
    creates = Controller(Shell, reconcile, owns=[owned(Note, verbs=["create"])])
    assert rule("notes", "create", "get", "list", "watch") in wire(Operator(creates))
    with pytest.raises(UndeclaredAccess, match="does not declare patch of notes"):
        Permissions(creates).require(kind_of(Note), "get", "create", "patch")
    with pytest.raises(DeclarationError, match=r"owned\(Note\): unknown verb 'delete'; use create, patch"):
        owned(Note, verbs=["delete"])
    with pytest.raises(DeclarationError, match=r"owned\(Note\): finalizer= needs the verb patch"):
        owned(Note, verbs=["create"], finalizer="example.com/note")


def test_a_rule_without_names_has_no_resource_names() -> None:
    assert PolicyRule(("",), ("secrets",), ("get",)).to_wire() == {
        "apiGroups": [""],
        "resources": ["secrets"],
        "verbs": ["get"],
    }
