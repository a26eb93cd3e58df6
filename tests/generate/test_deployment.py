from typing import Any

import kubewright as kw
from kubewright.generate import Names, deployment


class Spec(kw.Model):
    size: int = 1


class Status(kw.Model):
    ready: int = 0


class Shell(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A shell."""


@kw.controller(Shell)
async def shells(shell: Shell, ctx: kw.Context) -> None:
    """Do nothing."""


NAMES = Names("shells")


def rendered(*env: kw.packaging.Env, replicas: int = 1) -> dict[str, Any]:
    operator = kw.Operator(shells, name="shells", env=env)
    documents = deployment(operator, NAMES, image="registry.example/shells:1", replicas=replicas)
    return {f"{document['kind']}/{document['metadata']['name']}": document for document in documents}


def manager(documents: dict[str, Any]) -> dict[str, Any]:
    (container,) = documents["Deployment/shells-controller-manager"]["spec"]["template"]["spec"]["containers"]
    return container


def test_the_pod_keeps_to_the_restricted_security_standard() -> None:
    pod = rendered()["Deployment/shells-controller-manager"]["spec"]["template"]["spec"]
    assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
    assert pod["containers"][0]["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }


def test_kubernetes_waits_longer_than_the_manager_drains() -> None:
    assert (
        rendered()["Deployment/shells-controller-manager"]["spec"]["template"]["spec"][
            "terminationGracePeriodSeconds"
        ]
        > 30
    )


def test_declared_environment_becomes_values_and_references() -> None:
    container = manager(
        rendered(
            kw.packaging.Env("A", value="1"),
            kw.packaging.Env("B", secret="creds"),
            kw.packaging.Env("C", config_map="cm", key="c", optional=True),
        )
    )
    assert container["env"] == [
        {"name": "A", "value": "1"},
        {"name": "B", "valueFrom": {"secretKeyRef": {"name": "creds", "key": "B"}}},
        {"name": "C", "valueFrom": {"configMapKeyRef": {"name": "cm", "key": "c", "optional": True}}},
    ]


def test_several_replicas_have_a_budget_and_anti_affinity() -> None:
    documents = rendered(replicas=2)
    pod = documents["Deployment/shells-controller-manager"]["spec"]["template"]["spec"]
    assert "podAntiAffinity" in pod["affinity"]
    assert documents["PodDisruptionBudget/shells-controller-manager"]["spec"]["minAvailable"] == 1
    assert "PodDisruptionBudget/shells-controller-manager" not in rendered()


def test_services_select_the_pods() -> None:
    documents = rendered()
    labels = documents["Deployment/shells-controller-manager"]["spec"]["template"]["metadata"]["labels"]
    selector = documents["Service/shells-controller-manager-metrics-service"]["spec"]["selector"]
    assert selector.items() <= labels.items()


def test_an_operator_that_writes_depend_on_has_two_replicas_and_a_budget() -> None:
    @kw.admission.validating_webhook(Shell)
    def strict(shell: Shell) -> None:
        """Find nothing."""

    @kw.admission.validating_webhook(Shell, failure_policy="Ignore")
    def lenient(shell: Shell) -> None:
        """Find nothing."""

    def kinds_and_replicas(operator: kw.Operator) -> tuple[set[str], int]:
        documents = deployment(operator, NAMES, image="a")
        return {document["kind"] for document in documents}, documents[0]["spec"]["replicas"]

    kinds, replicas = kinds_and_replicas(kw.Operator(shells, name="shells", webhooks=[strict]))
    assert (replicas, "PodDisruptionBudget" in kinds) == (2, True)
    kinds, replicas = kinds_and_replicas(kw.Operator(shells, name="shells", webhooks=[lenient]))
    assert (replicas, "PodDisruptionBudget" in kinds) == (1, False)
    declared = kw.packaging.Workload(replicas=1)
    kinds, replicas = kinds_and_replicas(
        kw.Operator(shells, name="shells", webhooks=[strict], workload=declared)
    )
    assert (replicas, "PodDisruptionBudget" in kinds) == (1, False)


def test_the_manager_has_no_cpu_limit() -> None:
    assert manager(rendered())["resources"]["limits"] == {"memory": "256Mi"}
