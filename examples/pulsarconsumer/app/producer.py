"""Send one message: PULSAR_SERVER, PULSAR_TOPIC and PULSAR_MESSAGE say where and what."""

import sys
from typing import Any

import pulsar as pulsar_library
from environment import required

pulsar: Any = pulsar_library


def main() -> None:
    """Send what the environment names, and wait until the server has it."""
    server, topic, message = required("PULSAR_SERVER", "PULSAR_TOPIC", "PULSAR_MESSAGE")
    client = pulsar.Client(
        server, operation_timeout_seconds=10, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
    )
    try:
        producer = client.create_producer(topic, send_timeout_millis=10_000)
        producer.send(message.encode())
    except pulsar.PulsarException as error:
        sys.exit(f"{topic} at {server} did not take the message: {error}")
    finally:
        client.close()
    print(f"sent to {topic}: {message}")


if __name__ == "__main__":
    main()
