from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.generate import Names, crds, rbac, webhooks
from kubewright.schema import check_crd


class Spec(kw.Model):
    size: int = 1


class Status(kw.Model):
    ready: int = 0


class BoxV1Alpha1(kw.Object, kind="Box", group="example.com", version="v1alpha1"):
    """A box."""

    size: int = 1


class Box(kw.Resource[Spec, Status], group="example.com", version="v1", stored=True):
    """A box."""


@kw.controller(Box)
async def boxes(box: Box, ctx: kw.Context) -> None:
    """Do nothing."""


@kw.admission.validating_webhook(
    Box, on=["create", "delete"], match_conditions={"small": "object.spec.size < 5"}, timeout=3
)
def sensible(box: Box) -> None:
    """Find nothing."""


@kw.admission.validating_webhook(Box, failure_policy="Ignore", object_selector="tier in (b,a),!canary")
def also_sensible(box: Box) -> None:
    """Find nothing."""


@kw.admission.mutating_webhook(core_v1.Pod, reinvocation="IfNeeded", subresources=["status"])
def stamped(pod: core_v1.Pod) -> None:
    """Change nothing."""


conversion = kw.Conversion(
    Box,
    BoxV1Alpha1,
    up=lambda box: Box(spec=Spec(size=box.size)),
    down=lambda box: BoxV1Alpha1(size=box.spec.size),
)
OPERATOR = kw.Operator(boxes, webhooks=[sensible, also_sensible, stamped, conversion])
NAMES = Names("box")
JsonObject = dict[str, Any]


def documents() -> dict[str, JsonObject]:
    return {document["kind"]: document for document in webhooks(OPERATOR, NAMES)}


def test_an_operator_without_webhooks_has_no_documents() -> None:
    assert webhooks(kw.Operator(boxes), NAMES) == []


def test_the_validating_configuration_has_the_declared_rules() -> None:
    found = documents()["ValidatingWebhookConfiguration"]
    assert found["metadata"]["name"] == "box-validating-webhook-configuration"
    first, second = found["webhooks"]
    assert first == {
        "name": "sensible.boxes.example.com",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": "box-webhook-service",
                "namespace": "box-system",
                "path": "/validate-example-com-v1-box",
                "port": 443,
            }
        },
        "failurePolicy": "Fail",
        "matchPolicy": "Equivalent",
        "rules": [
            {
                "apiGroups": ["example.com"],
                "apiVersions": ["v1"],
                "operations": ["CREATE", "DELETE"],
                "resources": ["boxes"],
                "scope": "Namespaced",
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 3,
        "matchConditions": [{"name": "small", "expression": "object.spec.size < 5"}],
    }
    assert second["failurePolicy"] == "Ignore"
    assert second["clientConfig"]["service"]["path"] == "/validate-example-com-v1-box/also-sensible"
    assert second["objectSelector"] == {
        "matchExpressions": [
            {"key": "canary", "operator": "DoesNotExist"},
            {"key": "tier", "operator": "In", "values": ["a", "b"]},
        ]
    }


def test_the_mutating_configuration_keeps_away_from_the_operators_own_pods() -> None:
    (entry,) = documents()["MutatingWebhookConfiguration"]["webhooks"]
    assert entry["rules"][0]["resources"] == ["pods/status"]
    assert entry["reinvocationPolicy"] == "IfNeeded"
    assert entry["clientConfig"]["service"]["path"] == "/mutate--v1-pod"
    (expression,) = entry["namespaceSelector"]["matchExpressions"]
    assert expression == {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["box-system"]}


def test_the_service_selects_the_pods_and_the_secret_is_empty() -> None:
    service, secret = documents()["Service"], documents()["Secret"]
    assert service["spec"]["ports"][0]["targetPort"] == 9443
    assert service["spec"]["selector"] == NAMES.selector
    assert secret["metadata"]["name"] == "box-webhook-server-cert"
    assert "data" not in secret


def test_definitions_are_converted_through_the_service_of_a_deployed_operator_only() -> None:
    (deployed,) = crds(OPERATOR, NAMES)
    webhook = deployed["spec"]["conversion"]["webhook"]
    assert webhook["conversionReviewVersions"] == ["v1"]
    assert webhook["clientConfig"]["service"]["path"] == "/convert"
    assert [version["name"] for version in deployed["spec"]["versions"]] == ["v1", "v1alpha1"]
    assert check_crd(deployed) == []
    (alone,) = crds(OPERATOR)
    assert "conversion" not in alone["spec"]


@pytest.mark.parametrize("namespaces", [[], ["a"]])
def test_roles_are_get_and_patch_on_exactly_these_objects(namespaces: list[str]) -> None:
    roles = [document for document in rbac(OPERATOR, NAMES, namespaces) if document["kind"].endswith("Role")]
    named = {
        (role["kind"], resource): (rule["resourceNames"], rule["verbs"])
        for role in roles
        for rule in role["rules"]
        for resource in rule["resources"]
        if "resourceNames" in rule and resource != "leases"
    }
    verbs = ["get", "patch"]
    assert named == {
        ("ClusterRole", "mutatingwebhookconfigurations"): (["box-mutating-webhook-configuration"], verbs),
        ("ClusterRole", "validatingwebhookconfigurations"): (["box-validating-webhook-configuration"], verbs),
        ("ClusterRole", "customresourcedefinitions"): (["boxes.example.com"], verbs),
        ("Role", "secrets"): (["box-webhook-server-cert"], verbs),
    }


def test_an_invalid_match_condition_is_refused_with_the_message_of_the_server() -> None:
    @kw.admission.validating_webhook(Box, match_conditions={"wrong": "foo.bar"})
    def validated(box: Box) -> None:
        """Find nothing."""

    with pytest.raises(kw.errors.DeclarationError, match="undeclared reference to 'foo'"):
        webhooks(kw.Operator(boxes, webhooks=[validated]), NAMES)

    @kw.admission.validating_webhook(Box, match_conditions={"wrong": "1 + 1"})
    def counted(box: Box) -> None:
        """Find nothing."""

    with pytest.raises(kw.errors.DeclarationError, match="must evaluate to bool"):
        webhooks(kw.Operator(boxes, webhooks=[counted]), NAMES)
