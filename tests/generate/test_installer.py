"""The installer's roles: every object by name, and every permission that is granted on, no more."""

from typing import Any

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.generate import PARTS, Names, Settings, installer, manifests

JsonObject = dict[str, Any]


class Spec(kw.Model):
    size: int = 1


class Status(kw.Model):
    ready: int = 0


class Stamp(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A stamp."""


@kw.controller(Stamp, owns=[core_v1.ConfigMap])
async def stamps(stamp: Stamp, ctx: kw.Context) -> None:
    """Do nothing."""


OPERATOR = kw.Operator(stamps, name="stamps")


def roles(subject: str = "jane", *namespaces: str) -> dict[str, list[JsonObject]]:
    documents = installer(OPERATOR, subject, Settings(namespaces=namespaces))
    return {
        item["metadata"].get("namespace", ""): item["rules"] for item in documents if item["kind"] in ROLES
    }


ROLES = ("Role", "ClusterRole")


def test_the_installer_role_grants_each_object_by_name_in_its_namespace() -> None:
    found = roles()
    for document in manifests(OPERATOR, [part for part in PARTS if part != "samples"]):
        metadata = document["metadata"]
        assert any(
            metadata["name"] in rule.get("resourceNames", ()) and "patch" in rule["verbs"]
            for rule in found[metadata.get("namespace", "")]
        ), document


def test_the_installer_has_the_granted_permissions_and_no_escalate() -> None:
    found = roles()
    for document in manifests(OPERATOR):
        if document["kind"] in ROLES:
            held = found[document["metadata"].get("namespace", "")]
            assert all(rule in held for rule in document["rules"])
    assert not any({"escalate", "bind"} & set(rule["verbs"]) for rules in found.values() for rule in rules)


def test_an_operator_of_some_namespaces_needs_installer_rights_only_there() -> None:
    assert set(roles("jane", "a", "b")) == {"", "a", "b", "stamps-system"}


def test_the_namespace_comes_first_and_the_roles_are_not_found_by_the_operators_labels() -> None:
    namespace, *others = installer(OPERATOR, "jane")
    assert namespace["kind"] == "Namespace"
    assert all("labels" not in document["metadata"] for document in others)
    assert {document["metadata"]["name"] for document in others} == {Names("stamps").installer}


def test_the_installer_is_a_user_or_a_service_account() -> None:
    (user,) = installer(OPERATOR, "jane@example.com")[2]["subjects"]
    (account,) = installer(OPERATOR, "ci/deployer")[2]["subjects"]
    assert (user["kind"], user["name"]) == ("User", "jane@example.com")
    assert (account["kind"], account["namespace"], account["name"]) == ("ServiceAccount", "ci", "deployer")
