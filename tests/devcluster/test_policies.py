"""The status of ValidatingAdmissionPolicies, on the embedded and on the real control plane."""

import re
import secrets

from kubewright.api import Meta
from kubewright.api.builtin import admissionregistration_v1 as admission_v1
from kubewright.testing import Cluster

MESSAGE = "string(object.spec.nope)"
EXPRESSIONS = (
    "object.spec.nope == 1",
    "object.spec.replicas == 'a'",
    "object.spec.replicas > 1 && object.metadata.labels['a'] == 'b'",
    "object.spec.template.spec.containers.all(c, c.image.startsWith(c.ports))",
    "variables.count > 'a'",
    "object.spec.strategy.rollingUpdate.maxSurge == 1",
    "oldObject.metadata.nope == 1",
)


def policy(*resources: str, group: str = "apps") -> admission_v1.ValidatingAdmissionPolicy:
    rule = admission_v1.NamedRuleWithOperations(
        api_groups=[group], api_versions=["v1"], resources=[*resources], operations=["CREATE"]
    )
    validations = [admission_v1.Validation(expression=text) for text in EXPRESSIONS]
    validations[2].message_expression = MESSAGE
    return admission_v1.ValidatingAdmissionPolicy(
        Meta(f"types-{secrets.token_hex(3)}"),
        spec=admission_v1.ValidatingAdmissionPolicySpec(
            match_constraints=admission_v1.MatchResources(resource_rules=[rule]),
            variables=[admission_v1.Variable(name="count", expression="object.spec.replicas")],
            validations=validations,
        ),
    )


async def warnings(cluster: Cluster, created: admission_v1.ValidatingAdmissionPolicy) -> dict[str, str]:
    """Create a policy and return the warnings by field, when they are written."""
    made = await cluster.client.create(created)
    found = await cluster.eventually(
        admission_v1.ValidatingAdmissionPolicy,
        made.metadata.name,
        lambda item: item.status.observed_generation == item.metadata.generation,
    )
    await cluster.client.delete(admission_v1.ValidatingAdmissionPolicy, made.metadata.name)
    assert found.status.type_checking is not None
    return {
        # The real server appends the time to the names of types.
        item.field_ref: re.sub(r"(Deployment)\d+", r"\1", item.warning)
        for item in found.status.type_checking.expression_warnings
    }


def undefined(kind: str, field: str, column: int, text: str) -> str:
    dots = "." * (column - 1)
    return (
        f"apps/v1, Kind={kind}: ERROR: <input>:1:{column}: undefined field '{field}'\n | {text}\n | {dots}^\n"
    )


def unmatched(function: str, types: str, column: int, text: str) -> str:
    dots = "." * (column - 1)
    problem = f"found no matching overload for '{function}' applied to '{types}'"
    return f"apps/v1, Kind=Deployment: ERROR: <input>:1:{column}: {problem}\n | {text}\n | {dots}^\n"


async def test_a_policy_reports_expressions_that_do_not_fit_the_matched_kind(cluster: Cluster) -> None:
    ports = "string.(list(Deployment.spec.template.spec.containers.@idx.ports.@idx))"
    assert await warnings(cluster, policy("deployments")) == {
        "spec.validations[0].expression": undefined("Deployment", "nope", 12, EXPRESSIONS[0]),
        "spec.validations[1].expression": unmatched("_==_", "(int, string)", 22, EXPRESSIONS[1]),
        "spec.validations[2].messageExpression": undefined("Deployment", "nope", 19, MESSAGE),
        "spec.validations[3].expression": unmatched("startsWith", ports, 63, EXPRESSIONS[3]),
        "spec.validations[4].expression": unmatched("_>_", "(int, string)", 17, EXPRESSIONS[4]),
        "spec.validations[6].expression": undefined("Deployment", "nope", 19, EXPRESSIONS[6]),
    }


async def test_a_policy_for_several_kinds_reports_each_of_them(cluster: Cluster) -> None:
    found = await warnings(cluster, policy("statefulsets", "deployments", "deployments/scale", "*/scale"))
    assert found["spec.validations[0].expression"] == "\n".join(
        undefined(kind, "nope", 12, EXPRESSIONS[0]) for kind in ("Deployment", "StatefulSet")
    )


async def test_a_policy_with_a_wildcard_is_not_checked(cluster: Cluster) -> None:
    assert await warnings(cluster, policy("deployments", group="*")) == {}
