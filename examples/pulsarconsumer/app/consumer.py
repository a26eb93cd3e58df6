"""The program in a PulsarConsumer's Pods: print each message, acknowledge it, until SIGTERM.

A message is acknowledged when it was dealt with: if a consumer dies before, another one receives it. One that cannot be dealt
with is given back, and after some tries set aside in the topic `<topic>-<subscription>-DLQ`.
"""

import logging
import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

import pulsar as pulsar_library
from environment import required

pulsar: Any = pulsar_library
log = logging.getLogger("consumer")

LOOK_MILLISECONDS = 500
"""Seconds between checks whether to stop."""
AGAIN_SECONDS = (1.0, 2.0, 5.0, 10.0)
"""Pauses between tries to reach the server; the last one is repeated."""
TRIES = 3


def show(message: Any) -> None:
    """Deal with a message: print its text."""
    print(f"message received: {message.data().decode()}", flush=True)


def consume(consumer: Any, stop: threading.Event, handle: Callable[[Any], None] = show) -> None:
    """Process messages until stopped; the library reconnects by itself."""
    while not stop.is_set():
        try:
            message = consumer.receive(timeout_millis=LOOK_MILLISECONDS)
        except pulsar.Timeout:
            continue
        try:
            handle(message)
        except Exception:
            log.exception("message %s is given back", message.message_id())
            consumer.negative_acknowledge(message)
        else:
            consumer.acknowledge(message)


def subscribe(client: Any, topic: str, subscription: str, stop: threading.Event) -> Any:
    """Subscribe as soon as the server can be reached; return None if stopped before that."""
    pauses = iter(AGAIN_SECONDS)
    pause = 0.0
    while not stop.wait(pause):
        try:
            return client.subscribe(
                topic,
                subscription,
                # Replicas share the messages between them.
                consumer_type=pulsar.ConsumerType.Shared,
                initial_position=pulsar.InitialPosition.Earliest,
                negative_ack_redelivery_delay_ms=1000,
                dead_letter_policy=pulsar.ConsumerDeadLetterPolicy(
                    max_redeliver_count=TRIES, initial_subscription_name=subscription
                ),
            )
        except pulsar.PulsarException as error:
            pause = next(pauses, AGAIN_SECONDS[-1])
            log.warning("%s cannot be subscribed to: %s; again in %.0f s", topic, error, pause)
    return None


def main() -> None:
    """Consume what the environment names."""
    logging.basicConfig(level=logging.INFO, format="%(levelname)s %(name)s: %(message)s")
    server, topic, subscription = required("PULSAR_SERVER", "PULSAR_TOPIC", "PULSAR_SUBSCRIPTION_NAME")
    stop = threading.Event()

    def end(number: int, frame: FrameType | None) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    client = pulsar.Client(
        server, operation_timeout_seconds=10, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Warn)
    )
    consumer = subscribe(client, topic, subscription, stop)
    if consumer is not None:
        log.info("listening to %s as %s", topic, subscription)
        consume(consumer, stop)
        # Sends what was acknowledged last.
        consumer.close()
    client.close()
    log.info("ended")


if __name__ == "__main__":
    main()
