"""Where an operator's rights are asked for: in the namespaces of its scopes, or in those it is run for."""

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.cli.doctor.rights import namespaces_of, questions
from kubewright.controller import rules_for


class Spec(kw.Model):
    size: int = 0


class Status(kw.Model):
    ready: int = 0


class Ward(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A ward."""


def asked(*namespaces: str, **options: object) -> set[str]:
    @kw.controller(
        Ward, owns=[core_v1.ConfigMap], watches=[kw.watch(core_v1.Node, map=lambda it: [])], **options
    )
    async def wards(ward: Ward, ctx: kw.Context) -> None:
        """Do nothing."""

    operator = kw.Operator(wards, name="wards")
    return {str(each) for each in questions(rules_for(operator), namespaces_of(operator, namespaces))}


def test_rights_are_checked_cluster_wide_without_namespaces() -> None:
    assert not any(" in " in question for question in asked())


def test_a_selector_limits_the_checked_rights_to_its_namespace() -> None:
    found = asked(selector=kw.Selector(namespace="a"))
    assert {
        "get wards.example.com in a",
        "create configmaps in a",
        "create events.events.k8s.io in a",
    } <= found
    assert "watch nodes" in found


def test_rights_are_checked_in_each_namespace_of_a_run() -> None:
    found = asked("a", "b")
    assert {"patch wards/status.example.com in a", "patch wards/status.example.com in b"} <= found
    assert "get wards.example.com" not in found
