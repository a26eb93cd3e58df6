"""List map keys of Kubernetes' own types, and defaults that satisfy the rules."""

from datetime import UTC, datetime
from typing import Annotated, Any

import pytest

from kubewright.api import Condition, DeclarationError, Field, Meta, Model, Resource, Rule, kind_of
from kubewright.api.builtin import core_v1
from kubewright.schema import crd, structural
from kubewright.testing import Cluster


class CodeSpec(Model, rules=[Rule("self.digits >= 4", message="at least 4 digits")]):
    digits: int = 6
    sidecars: list[core_v1.Container] = []
    ports: list[core_v1.ContainerPort] = []
    pull_secrets: list[core_v1.LocalObjectReference] = []
    plain: Annotated[list[core_v1.EnvVar], Field(list_type="atomic")] = []


class CodeStatus(Model):
    conditions: list[Condition] = []
    ports: list[core_v1.ContainerPort] = []


class Code(Resource[CodeSpec, CodeStatus], group="keys.example.com", version="v1"):
    """A code."""


def merge_of(schema: dict[str, Any]) -> tuple[str | None, list[str] | None]:
    return schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys")


def test_lists_of_built_in_types_have_the_keys_that_kubernetes_uses_everywhere() -> None:
    schema = structural(Code)["properties"]
    spec, status = schema["spec"]["properties"], schema["status"]["properties"]
    assert merge_of(status["conditions"]) == ("map", ["type"])
    assert merge_of(spec["sidecars"]) == ("map", ["name"])
    assert merge_of(spec["ports"]) == ("map", ["containerPort", "protocol"])
    assert spec["ports"]["items"]["properties"]["protocol"]["default"] == "TCP"
    assert merge_of(spec["pullSecrets"]) == (None, None), "Kubernetes keys it in one field and not in another"


def test_list_type_overrides_the_keys() -> None:
    assert merge_of(structural(Code)["properties"]["spec"]["properties"]["plain"]) == ("atomic", None)


def test_only_list_map_keys_keep_their_default_in_a_status() -> None:
    ports = structural(Code)["properties"]["status"]["properties"]["ports"]
    assert ports["items"]["properties"]["protocol"]["default"] == "TCP"


def test_lists_inside_built_in_types_merge_as_in_the_built_in_kinds() -> None:
    class PodHolder(Model):
        template: core_v1.PodTemplateSpec

    pod = structural(PodHolder)["properties"]["template"]["properties"]["spec"]["properties"]
    assert merge_of(pod["containers"]) == ("map", ["name"])
    assert merge_of(pod["containers"]["items"]["properties"]["env"]) == ("map", ["name"])


def test_descriptions_of_conditions_are_written_for_users_of_kubectl() -> None:
    shown = str(structural(Code)["properties"]["status"]["properties"]["conditions"])
    assert "Condition(" not in shown
    assert '="' not in shown


def test_the_default_of_a_spec_contains_the_defaults_of_its_fields() -> None:
    assert structural(Code)["properties"]["spec"]["default"] == {"digits": 6}


def test_the_error_for_a_default_that_fails_a_rule_suggests_a_fix() -> None:
    class ShortSpec(Model, rules=[Rule("self.digits >= 4", message="at least 4 digits")]):
        digits: int = 2

    class Short(Resource[ShortSpec, CodeStatus], group="keys.example.com", version="v1"):
        """A short code."""

    with pytest.raises(DeclarationError) as refusal:
        crd(Short)
    assert str(refusal.value) == (
        "Short: spec.default: Invalid value: at least 4 digits; the default comes from the Python defaults: change "
        "them or the rule, or make spec required with Annotated[..., kw.Field(optional=False)]"
    )


def test_the_error_for_a_rule_that_does_not_compile_shows_the_rule_and_not_the_default() -> None:
    class WrongSpec(Model, rules=[Rule("self.digit >= 4", message="at least 4 digits")]):
        digits: int = 6

    class Wrong(Resource[WrongSpec, CodeStatus], group="keys.example.com", version="v1"):
        """A code with a rule for a field that it does not have."""

    with pytest.raises(DeclarationError) as refusal:
        crd(Wrong)
    assert str(refusal.value) == (
        "Wrong: spec: the rule 'self.digit >= 4' does not compile: ERROR: <input>:1:5: undefined field 'digit'"
    )


def test_a_spec_is_required_if_its_fields_are_or_if_declared_so() -> None:
    class OpenSpec(Model):
        size: int

    class Open(Resource[OpenSpec, CodeStatus], group="keys.example.com", version="v1"):
        """Has a required field."""

    class Stated(Resource[CodeSpec, CodeStatus], group="keys.example.com", version="v1"):
        """Has a spec with defaults that is still required."""

        spec: Annotated[CodeSpec, Field(optional=False)]

    assert structural(Open)["required"] == ["spec"]
    assert structural(Stated)["required"] == ["spec"]
    assert "default" not in structural(Stated)["properties"]["spec"]
    assert "required" not in structural(Code)


async def test_the_server_fills_the_default_and_merges_conditions_by_type(cluster: Cluster) -> None:
    await cluster.install(Code)
    document = {
        "apiVersion": "keys.example.com/v1",
        "kind": "Code",
        "metadata": {"name": "a", "namespace": cluster.namespace},
    }
    made = await cluster.client.apply(document, field_manager="a", kind=kind_of(Code))
    assert made["spec"] == {"digits": 6}
    for manager, name in (("one", "Ready"), ("two", "Synced")):
        condition = Condition(type=name, status="True", reason="Done", last_transition_time=datetime.now(UTC))
        await cluster.client.apply(
            Code(Meta("a", namespace=cluster.namespace), status=CodeStatus(conditions=[condition])),
            field_manager=manager,
            subresource="status",
        )
    found = await cluster.get(Code, "a")
    assert [condition.type for condition in found.status.conditions] == ["Ready", "Synced"]
