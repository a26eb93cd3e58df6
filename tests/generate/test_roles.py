"""Roles for users of the kinds, and roles of an operator that is limited to namespaces."""

from typing import Any

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.generate import Names, Settings, manifests, rbac

JsonObject = dict[str, Any]


class Spec(kw.Model):
    size: int = 1


class Status(kw.Model):
    ready: int = 0


class Card(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A card."""


class Rack(kw.Resource[Spec, Status], group="example.com", version="v1", scope="Cluster"):
    """A rack."""


@kw.controller(Card, owns=[core_v1.ConfigMap], watches=[kw.watch(core_v1.Node, map=lambda node: [])])
async def cards(card: Card, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.controller(Rack)
async def racks(rack: Rack, ctx: kw.Context) -> None:
    """Do nothing."""


def roles(*controllers: kw.Controller[Any], namespaces: list[str]) -> dict[str, list[str]]:
    documents = rbac(kw.Operator(*controllers, name="cards"), Names("cards"), namespaces)
    return {
        f"{role['kind']}/{role['metadata'].get('namespace', '')}": sorted(
            resource for rule in role["rules"] for resource in rule["resources"]
        )
        for role in documents
        if role["metadata"]["name"] == "cards-manager-role"
    }


def test_kinds_without_a_namespace_stay_in_a_cluster_role() -> None:
    assert roles(cards, namespaces=["a"]) == {
        "Role/a": ["cards", "cards/finalizers", "cards/status", "configmaps", "events"],
        "ClusterRole/": ["nodes"],
    }


def test_events_about_objects_without_a_namespace_are_allowed_too() -> None:
    assert roles(racks, namespaces=["a"])["ClusterRole/"] == ["events", "racks", "racks/status"]


def test_an_operator_limited_to_namespaces_watches_only_those() -> None:
    settings = Settings(namespaces=["a", "b", "a"])
    documents = manifests(kw.Operator(cards, name="cards"), ["rbac", "deployment"], settings)
    (pod,) = (each["spec"]["template"]["spec"] for each in documents if each["kind"] == "Deployment")
    arguments = [each for each in pod["containers"][0]["args"] if each.startswith("--namespace")]
    assert arguments == ["--namespace=a", "--namespace=b"]


def test_user_roles_aggregate_to_the_default_roles() -> None:
    documents = manifests(kw.Operator(cards, racks, name="cards"), ["rbac"])
    found = {each["metadata"]["name"]: each for each in documents if each["kind"] == "ClusterRole"}
    aggregated = "rbac.authorization.k8s.io/aggregate-to-{}"
    for which, into in (("viewer", "view"), ("editor", "edit"), ("admin", "admin")):
        labels = found[f"cards-card-{which}-role"]["metadata"]["labels"]
        assert labels[aggregated.format(into)] == "true"
        assert not any(
            "aggregate" in name for name in found[f"cards-rack-{which}-role"]["metadata"]["labels"]
        )
    assert found["cards-card-viewer-role"]["rules"] == [
        {"apiGroups": ["example.com"], "resources": ["cards"], "verbs": ["get", "list", "watch"]},
        {"apiGroups": ["example.com"], "resources": ["cards/status"], "verbs": ["get"]},
    ]
