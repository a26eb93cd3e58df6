"""One Deployment of consumers per PulsarConsumer, and a status that says what it consumes."""

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from pulsarconsumer.kinds import ConsumerStatus, PulsarConsumer

IMAGE = "pulsarconsumer:latest"
MARK = "pulsarcrd"


def deployment_name(consumer: PulsarConsumer) -> str:
    """Return the name of the Deployment of a consumer."""
    return f"{consumer.metadata.name}-deployment"


def first_labels(consumer: PulsarConsumer) -> dict[str, str]:
    """Return the labels for a new Deployment; its selector cannot change later."""
    return {**consumer.metadata.labels, MARK: f"{consumer.metadata.name}-pulsarcrd"}


def lost_labels(consumer: PulsarConsumer, selector: dict[str, str]) -> list[str]:
    """Return the labels that the immutable selector requires and the resource no longer has."""
    return sorted(
        label
        for label, value in selector.items()
        if label != MARK and consumer.metadata.labels.get(label) != value
    )


def deployment_for(consumer: PulsarConsumer, labels: dict[str, str]) -> apps_v1.Deployment:
    """Return the Deployment for a consumer."""
    env = {
        "PULSAR_SERVER": consumer.spec.server_address,
        "PULSAR_TOPIC": consumer.spec.topic,
        "PULSAR_SUBSCRIPTION_NAME": consumer.spec.subscription_name,
    }
    container = core_v1.Container(
        name="pulsarconsumer",
        image=IMAGE,
        env=[core_v1.EnvVar(name=name, value=value) for name, value in env.items()],
    )
    return apps_v1.Deployment(
        kw.Meta(deployment_name(consumer), labels=labels),
        spec=apps_v1.DeploymentSpec(
            replicas=consumer.spec.replicas,
            selector=meta_v1.LabelSelector(match_labels=labels),
            template=core_v1.PodTemplateSpec(
                metadata=kw.Meta(labels=labels), spec=core_v1.PodSpec(containers=[container])
            ),
        ),
    )


def deployed(consumer: PulsarConsumer) -> ConsumerStatus:
    """Return the status after the Deployment was applied."""
    return ConsumerStatus(
        server=consumer.spec.server_address,
        topic=consumer.spec.topic,
        subscription=consumer.spec.subscription_name,
        replicas=consumer.spec.replicas,
        conditions=[kw.Condition(type="Ready", status="True", reason="Deployed")],
    )


def not_ready(consumer: PulsarConsumer, reason: str, message: str) -> ConsumerStatus:
    """Return the present status, with the condition Ready set to False."""
    status = consumer.status
    status.conditions = [kw.Condition(type="Ready", status="False", reason=reason, message=message)]
    return status


@kw.controller(PulsarConsumer, owns=[apps_v1.Deployment])
async def consumers(consumer: PulsarConsumer, ctx: kw.Context) -> None:
    """Apply the Deployment, and report in the condition Ready why it cannot be applied."""
    name = deployment_name(consumer)
    live = await ctx.find(apps_v1.Deployment, name)
    labels = first_labels(consumer) if live is None else live.spec.selector.match_labels
    if lost := lost_labels(consumer, labels):
        message = f"the selector of Deployment {name} cannot change and needs the label {', '.join(lost)}"
        await ctx.patch_status(consumer, not_ready(consumer, "SelectorImmutable", message))
        return
    try:
        await ctx.apply(deployment_for(consumer, labels))
    except kw.KubewrightError as error:
        # Report the error in the status, then raise it for a retry with backoff.
        await ctx.patch_status(consumer, not_ready(consumer, type(error).__name__, str(error)))
        raise
    await ctx.patch_status(consumer, deployed(consumer))


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(consumers, name="pulsarconsumer")
