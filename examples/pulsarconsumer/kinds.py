"""The kind PulsarConsumer."""

from typing import Annotated

import kubewright as kw


class ConsumerSpec(kw.Model):
    """PulsarConsumerSpec defines the desired state of PulsarConsumer"""

    server_address: Annotated[str, kw.Field(optional=False, description="Address of the pulsar server.")] = ""
    topic: Annotated[str, kw.Field(optional=False, description="Name of the topic to listen.")] = ""
    subscription_name: Annotated[str, kw.Field(optional=False, description="Name of the subscripton.")] = ""
    replicas: Annotated[int, kw.Field(optional=False, description="Number of replicas.")] = 0


class ConsumerStatus(kw.Model):
    """PulsarConsumerStatus defines the observed state of PulsarConsumer"""

    server: Annotated[str, kw.Field(optional=False, description="Server Address")] = ""
    topic: Annotated[str, kw.Field(optional=False, description="Name of the pulsar topic")] = ""
    subscription: Annotated[str, kw.Field(optional=False, description="Name of the subscription")] = ""
    replicas: Annotated[int, kw.Field(optional=False, description="Number of replicas")] = 0
    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=["type"])] = []


class PulsarConsumer(
    kw.Resource[ConsumerSpec, ConsumerStatus],
    group="pulsar.pulsarconsumer.krvarma.com",
    version="v1",
    columns=[
        kw.Column("Server", ".status.server"),
        kw.Column("Topic", ".status.topic"),
        kw.Column("Subscription", ".status.subscription"),
        kw.Column("Replicas", ".status.replicas", type="integer"),
    ],
):
    """PulsarConsumer is the Schema for the pulsarconsumers API"""

    # The definition that this kind comes from does not require a spec; its fields are empty then, as in Go.
    spec: Annotated[ConsumerSpec, kw.Field(optional=True)] = ConsumerSpec()
