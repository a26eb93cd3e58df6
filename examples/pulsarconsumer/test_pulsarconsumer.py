"""PulsarConsumer, as its users see it."""

from collections.abc import Callable
from typing import Any

import pytest

import kubewright as kw
from kubewright.api.builtin import apps_v1, rbac_v1
from kubewright.manager import Manager
from kubewright.testing import Cluster, embedded, virtual_time
from pulsarconsumer import ConsumerSpec, PulsarConsumer, operator

DEPLOYMENT = "sample-deployment"
GARBAGE = 90.0
"""A real garbage collector looks for new kinds twice a minute."""


def consumer(
    name: str = "sample", *, labels: dict[str, str] | None = None, replicas: int = 1
) -> PulsarConsumer:
    return PulsarConsumer(
        kw.Meta(name, labels={"app": "consumer"} if labels is None else labels),
        spec=ConsumerSpec(
            server_address="pulsar://localhost:6650",
            topic="my-topic",
            subscription_name="first-subscription",
            replicas=replicas,
        ),
    )


def is_ready(status: str, reason: str = "") -> Callable[[PulsarConsumer], bool]:
    """Ask for a Ready condition that speaks of the newest generation."""

    def holds(it: PulsarConsumer) -> bool:
        return any(
            (found.type, found.status) == ("Ready", status)
            and found.observed_generation == it.metadata.generation
            and reason in ("", found.reason)
            for found in it.status.conditions
        )

    return holds


def environment(deployment: apps_v1.Deployment) -> dict[str, str]:
    (container,) = deployment.spec.template.spec.containers
    return {variable.name: variable.value for variable in container.env}


def is_rolled_out(deployment: apps_v1.Deployment) -> bool:
    """Return True if its controller has nothing left to write."""
    progress = [found.reason for found in deployment.status.conditions if found.type == "Progressing"]
    return deployment.status.ready_replicas == 1 and progress == ["NewReplicaSetAvailable"]


async def test_the_sample_gets_its_deployment_and_columns(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(consumer())
        current = await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        deployment = await cluster.eventually(
            apps_v1.Deployment, DEPLOYMENT, lambda it: it.status.ready_replicas == 1
        )
    labels = {"app": "consumer", "pulsarcrd": "sample-pulsarcrd"}
    assert deployment.metadata.labels == labels
    assert deployment.spec.selector.match_labels == labels
    assert deployment.spec.template.metadata.labels == labels
    assert deployment.spec.template.spec.containers[0].name == "pulsarconsumer"
    assert environment(deployment) == {
        "PULSAR_SERVER": "pulsar://localhost:6650",
        "PULSAR_TOPIC": "my-topic",
        "PULSAR_SUBSCRIPTION_NAME": "first-subscription",
    }
    (owner,) = deployment.metadata.owner_references
    assert (owner.uid, owner.controller) == (made.metadata.uid, True)
    status = current.status
    shown = (status.server, status.topic, status.subscription, status.replicas)
    assert shown == ("pulsar://localhost:6650", "my-topic", "first-subscription", 1)


async def test_one_patch_is_one_generation(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(consumer())
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        before = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        await cluster.client.patch(made, {"spec": {"replicas": 3, "topic": "t2"}})
        await cluster.eventually(PulsarConsumer, "sample", lambda it: it.status.topic == "t2")
        await cluster.eventually(apps_v1.Deployment, DEPLOYMENT, lambda it: it.status.ready_replicas == 3)
        await cluster.settled(apps_v1.Deployment, PulsarConsumer)
        after = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        current = await cluster.get(PulsarConsumer, "sample")
    assert after.metadata.generation == before.metadata.generation + 1
    assert environment(after)["PULSAR_TOPIC"] == "t2"
    assert current.status.replicas == 3


async def test_zero_replicas_are_applied(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(consumer(replicas=0))
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        deployment = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        current = await cluster.get(PulsarConsumer, "sample")
    assert (deployment.spec.replicas, current.status.replicas) == (0, 0)


async def test_writes_nothing_for_a_change_that_the_deployment_does_not_need(cluster: Cluster) -> None:
    async with cluster.running(operator()) as manager:
        made = await cluster.create(consumer())
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        await cluster.eventually(apps_v1.Deployment, DEPLOYMENT, is_rolled_out)
        await cluster.settled(apps_v1.Deployment, PulsarConsumer)
        before = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        seen = reconciles(manager)
        await cluster.client.patch(made, {"metadata": {"annotations": {"note": "changed"}}})
        await cluster.client.patch(made, {"metadata": {"labels": {"added": "later"}}})
        await cluster.settled(apps_v1.Deployment, PulsarConsumer)
        after = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
    assert reconciles(manager) > seen
    assert after.metadata.resource_version == before.metadata.resource_version


async def test_deployment_deleted_or_scaled_by_hand_is_restored(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(consumer())
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        before = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        await cluster.client.scale(apps_v1.Deployment, DEPLOYMENT, cluster.namespace, replicas=4)
        await cluster.eventually(
            apps_v1.Deployment,
            DEPLOYMENT,
            lambda it: it.spec.replicas == 1 and it.metadata.generation >= before.metadata.generation + 2,
        )
        await cluster.client.delete(before)
        await cluster.eventually(
            apps_v1.Deployment, DEPLOYMENT, lambda it: it.metadata.uid != before.metadata.uid
        )


@virtual_time
async def test_a_deployment_deleted_by_hand_is_back_within_five_seconds() -> None:
    async with embedded() as cluster, cluster.running(operator()):
        await cluster.create(consumer())
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        before = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        await cluster.client.delete(before)
        await cluster.eventually(
            apps_v1.Deployment, DEPLOYMENT, lambda it: it.metadata.uid != before.metadata.uid, timeout=5
        )


async def test_works_without_labels(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        await cluster.create(consumer(labels={}))
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        deployment = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
    assert deployment.spec.selector.match_labels == {"pulsarcrd": "sample-pulsarcrd"}


@pytest.mark.parametrize("value", ["other", None])
async def test_reports_a_missing_selector_label_and_writes_nothing(
    cluster: Cluster, value: str | None
) -> None:
    async with cluster.running(operator()) as manager:
        made = await cluster.create(consumer())
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
        await cluster.eventually(apps_v1.Deployment, DEPLOYMENT, is_rolled_out)
        await cluster.settled(apps_v1.Deployment, PulsarConsumer)
        before = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        await cluster.client.patch(made, {"metadata": {"labels": {"app": value}}, "spec": {"topic": "t2"}})
        current = await cluster.eventually(PulsarConsumer, "sample", is_ready("False", "SelectorImmutable"))
        await cluster.settled(apps_v1.Deployment, PulsarConsumer)
        seen = reconciles(manager)
        after = await cluster.get(apps_v1.Deployment, DEPLOYMENT)
        assert after.metadata.resource_version == before.metadata.resource_version
        assert current.status.topic == "my-topic"
        assert "label app" in current.status.conditions[0].message
        await cluster.client.patch(made, {"metadata": {"labels": {"app": "consumer"}}})
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))
    assert seen < 12


async def test_reports_and_retries_a_deployment_that_is_invalid(cluster: Cluster) -> None:
    name = "a" * 60  # its label value is longer than labels may be
    async with cluster.running(operator()):
        made = await cluster.create(consumer(name))
        current = await cluster.eventually(PulsarConsumer, name, is_ready("False", "Invalid"))
        await cluster.client.delete(made)
        await cluster.eventually_gone(PulsarConsumer, name)
    assert "must be no more than 63" in current.status.conditions[0].message


async def test_reports_a_forbidden_deployment_and_creates_it_once_allowed(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        role = await cluster.client.get(rbac_v1.ClusterRole, f"{cluster.namespace}-pulsarconsumer-manager")
        rules = role.rules
        kept = [rule for rule in rules if "deployments" not in rule.resources]
        reading = rbac_v1.PolicyRule(
            api_groups=["apps"], resources=["deployments"], verbs=["get", "list", "watch"]
        )
        await cluster.client.update(role, lambda it: set_rules(it, [*kept, reading]))
        await wait_denied(cluster, "create")
        await cluster.create(consumer())
        current = await cluster.eventually(PulsarConsumer, "sample", is_ready("False", "Forbidden"))
        assert "deployments.apps" in current.status.conditions[0].message
        assert current.status.server == ""
        role = await cluster.client.get(rbac_v1.ClusterRole, role.metadata.name)
        await cluster.client.update(role, lambda it: set_rules(it, rules))
        await cluster.eventually(PulsarConsumer, "sample", is_ready("True"))


async def test_deletion_removes_the_deployment(cluster: Cluster) -> None:
    async with cluster.running(operator()):
        made = await cluster.create(consumer())
        await cluster.eventually(apps_v1.Deployment, DEPLOYMENT, lambda it: it.status.ready_replicas == 1)
        await cluster.client.delete(made)
        await cluster.eventually_gone(PulsarConsumer, "sample")
        await cluster.eventually_gone(apps_v1.Deployment, DEPLOYMENT, timeout=GARBAGE)


def reconciles(manager: Manager) -> int:
    return sum(sum(controller.outcomes.values()) for controller in manager.statistics().controllers)


def set_rules(role: rbac_v1.ClusterRole, rules: list[rbac_v1.PolicyRule]) -> None:
    role.rules = rules


async def wait_denied(cluster: Cluster, verb: str) -> None:
    """Wait until the server's own watch of roles has seen the change."""
    review: dict[str, Any] = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {
            "user": f"system:serviceaccount:{cluster.namespace}:pulsarconsumer-manager",
            "resourceAttributes": {
                "group": "apps",
                "resource": "deployments",
                "verb": verb,
                "namespace": cluster.namespace,
            },
        },
    }
    while (await cluster.client.create(review))["status"]["allowed"]:
        pass
