from typing import Annotated, Any

import yaml

import kubewright as kw
from kubewright.api.builtin import apps_v1
from kubewright.generate import Names, crds, rbac, to_yaml


class Spec(kw.Model):
    size: Annotated[int, kw.Field(ge=0)] = 1


class Status(kw.Model):
    ready: int = 0


class Shell(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A shell."""


@kw.controller(Shell, owns=[apps_v1.Deployment])
async def shells(shell: Shell, ctx: kw.Context) -> None:
    """Do nothing."""


OPERATOR = kw.Operator(shells, name="shells")


def rules_of(documents: list[dict[str, Any]], kind: str) -> dict[str, list[str]]:
    role = next(document for document in documents if document["kind"] == kind)
    return {resource: rule["verbs"] for rule in role["rules"] for resource in rule["resources"]}


def test_each_kind_has_one_definition() -> None:
    assert [document["metadata"]["name"] for document in crds(OPERATOR)] == ["shells.example.com"]


def test_roles_have_the_rules_of_the_declarations_only() -> None:
    assert rules_of(rbac(OPERATOR, Names("shells")), "ClusterRole") == {
        "shells": ["get", "list", "watch"],
        "shells/status": ["patch"],
        "shells/finalizers": ["update"],
        "deployments": ["create", "get", "list", "patch", "watch"],
        "events": ["create", "patch"],
    }


def test_given_namespaces_make_roles_instead_of_cluster_roles() -> None:
    documents = rbac(OPERATOR, Names("shells"), ["a", "b"])
    assert not any(document["kind"].startswith("Cluster") for document in documents)
    manager = [document for document in documents if document["metadata"]["name"] == "shells-manager-role"]
    assert [document["metadata"]["namespace"] for document in manager] == ["a", "b"]


def test_bindings_name_the_created_service_account() -> None:
    documents = rbac(OPERATOR, Names("shells"))
    account = next(document for document in documents if document["kind"] == "ServiceAccount")["metadata"]
    bindings = [document for document in documents if document["kind"].endswith("Binding")]
    assert bindings
    for binding in bindings:
        (subject,) = binding["subjects"]
        assert (subject["name"], subject["namespace"]) == (account["name"], account["namespace"])


def test_the_same_declarations_give_the_same_text() -> None:
    def render() -> str:
        return to_yaml([*crds(OPERATOR), *rbac(OPERATOR, Names("shells"))])

    assert render() == render()
    assert "&id" not in render()
    assert len(list(yaml.safe_load_all(render()))) == 7
