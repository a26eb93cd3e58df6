"""One Deployment of consumers per PulsarConsumer, and a status that says what it consumes."""

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1
from pulsarconsumer.kinds import ConsumerStatus, PulsarConsumer

IMAGE = "pulsarconsumer:latest"
MARK = "pulsarcrd"


def deployment_name(consumer: PulsarConsumer) -> str:
    """Name the Deployment of a consumer."""
    return f"{consumer.metadata.name}-deployment"


def first_labels(consumer: PulsarConsumer) -> dict[str, str]:
    """Choose the labels of a Deployment that is not there yet; they stay for its life."""
    return {**consumer.metadata.labels, MARK: f"{consumer.metadata.name}-pulsarcrd"}


def lost_labels(consumer: PulsarConsumer, selector: dict[str, str]) -> list[str]:
    """List the labels that an immutable selector needs and the resource has no more."""
    return sorted(
        label
        for label, value in selector.items()
        if label != MARK and consumer.metadata.labels.get(label) != value
    )


def deployment_for(consumer: PulsarConsumer, labels: dict[str, str]) -> apps_v1.Deployment:
    """Say what the Deployment of a consumer looks like."""
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


def following(consumer: PulsarConsumer) -> ConsumerStatus:
    """Say in the status what the Deployment was given."""
    return ConsumerStatus(
        server=consumer.spec.server_address,
        topic=consumer.spec.topic,
        subscription=consumer.spec.subscription_name,
        replicas=consumer.spec.replicas,
        conditions=[kw.Condition(type="Ready", status="True", reason="Deployed")],
    )


def hindered(consumer: PulsarConsumer, reason: str, message: str) -> ConsumerStatus:
    """Keep what the status tells of the Deployment, which was not touched, and say why."""
    told = consumer.status
    told.conditions = [kw.Condition(type="Ready", status="False", reason=reason, message=message)]
    return told


@kw.controller(PulsarConsumer, owns=[apps_v1.Deployment])
async def consumers(consumer: PulsarConsumer, ctx: kw.Context) -> None:
    """Keep the Deployment as the resource says; report what keeps it from being so."""
    name = deployment_name(consumer)
    live = await ctx.find(apps_v1.Deployment, name)
    labels = first_labels(consumer) if live is None else live.spec.selector.match_labels
    if lost := lost_labels(consumer, labels):
        message = f"the selector of Deployment {name} cannot change and needs the label {', '.join(lost)}"
        await ctx.patch_status(consumer, hindered(consumer, "SelectorImmutable", message))
        return
    try:
        await ctx.apply(deployment_for(consumer, labels))
    except kw.KubewrightError as error:
        # The status says why; raising has it tried again, later and later.
        await ctx.patch_status(consumer, hindered(consumer, type(error).__name__, str(error)))
        raise
    await ctx.patch_status(consumer, following(consumer))


def operator() -> kw.Operator:
    """Declare the operator."""
    return kw.Operator(consumers, name="pulsarconsumer")
