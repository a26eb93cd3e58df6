"""PulsarConsumer: a Deployment of consumers, written only when something really changes."""

from pulsarconsumer.controller import operator
from pulsarconsumer.kinds import ConsumerSpec, ConsumerStatus, PulsarConsumer

__all__ = ["ConsumerSpec", "ConsumerStatus", "PulsarConsumer", "operator"]
