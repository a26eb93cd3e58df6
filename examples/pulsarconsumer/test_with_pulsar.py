"""PulsarConsumer with a real Apache Pulsar, which `scripts/external-systems pulsar` installs: no message is lost."""

import asyncio
import os
import shlex
import shutil
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pulsar as pulsar_library
import pytest
import pytest_asyncio

import kubewright as kw
from kubewright.api.builtin import apps_v1
from kubewright.testing import Cluster, eventually, find_binaries, free_port, isolated
from pulsarconsumer import ConsumerSpec, PulsarConsumer, operator

pulsar: Any = pulsar_library

PROVIDE = Path(__file__).parents[2] / "tools" / "external_systems" / "provide.py"
APP = Path(__file__).parent / "app"
START_SECONDS = 240.0
SEEN_SECONDS = 40.0
SUBSCRIPTION = "first-subscription"
JAVA = [
    "-Xmx256m",
    "-XX:MaxDirectMemorySize=256m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Djava.net.preferIPv4Stack=true",
]
SETTINGS = {
    "clusterName": "standalone",
    "bindAddress": "127.0.0.1",
    "advertisedAddress": "127.0.0.1",
    "managedLedgerDefaultEnsembleSize": 1,
    "managedLedgerDefaultWriteQuorum": 1,
    "managedLedgerDefaultAckQuorum": 1,
    "allowLoopback": "true",
    "listeningInterface": "lo",
}
LOGGING = """
rootLogger.level = warn
rootLogger.appenderRef.console.ref = console
appender.console.type = Console
appender.console.name = console
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d %p %c: %m%n
"""


class Server:
    """Apache Pulsar standalone on loopback, with its memory bounded."""

    def __init__(self, distribution: Path, folder: Path) -> None:
        self.port, self._web = free_port(), free_port()
        settings = SETTINGS | {"brokerServicePort": self.port, "webServicePort": self._web}
        (folder / "standalone.conf").write_text(
            "".join(f"{name}={value}\n" for name, value in settings.items())
        )
        (folder / "log4j2.properties").write_text(LOGGING)
        self._log = folder / "pulsar.log"
        self._command = [
            "java",
            "-cp",
            f"{folder}:{distribution}/lib/*",
            *JAVA,
            f"-Dlog4j.configurationFile={folder}/log4j2.properties",
            "org.apache.pulsar.PulsarStandaloneStarter",
            f"--config={folder}/standalone.conf",
            "--no-functions-worker",
            "--no-stream-storage",
            f"--metadata-dir={folder}/metadata",
            f"--bookkeeper-dir={folder}/bookkeeper",
        ]
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        return f"pulsar://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it and wait until it serves topics: its port opens before that."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self._log.parent
            )
        process = self._process
        try:
            asyncio.run(
                eventually(lambda: self._serves() or process.poll() is not None, timeout=START_SECONDS)
            )
            assert process.poll() is None, f"exited with {process.returncode}"
        except AssertionError as error:
            self.stop()
            raise RuntimeError(f"Pulsar does not serve:\n{self._log.read_text()[-3000:]}") from error

    def stop(self) -> None:
        if self._process is not None:
            with self._process as process:
                process.terminate()
                try:
                    process.wait(20)
                except subprocess.TimeoutExpired:
                    process.kill()
            self._process = None

    def _serves(self) -> bool:
        page = f"http://127.0.0.1:{self._web}/admin/v2/namespaces/public/default"
        try:
            with urllib.request.urlopen(page, timeout=5) as response:
                return bool(response.status == 200)
        except (urllib.error.URLError, OSError):
            return False


@pytest.fixture(scope="module")
def server(server_name: str, tmp_path_factory: pytest.TempPathFactory) -> Generator[Server, None, None]:
    if server_name == "embedded":
        pytest.skip("real Pulsar is tried with --server real")
    found = subprocess.run(
        [sys.executable, str(PROVIDE), "pulsar", "--cached"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(found.stderr.strip())
    folder = tmp_path_factory.mktemp("pulsar")
    running = Server(Path(found.stdout.strip()), folder)
    running.start()
    yield running
    running.stop()
    shutil.rmtree(folder, ignore_errors=True)


class Program:
    """The consumer as a process, with the environment that a Deployment describes."""

    def __init__(self, process: asyncio.subprocess.Process, output: Path) -> None:
        self.process = process
        self._output = output

    def messages(self) -> list[str]:
        lines = self._output.read_text().splitlines()
        prefix = "message received: "
        return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]

    def logged(self, text: str) -> bool:
        return text in self._output.read_text()

    async def ended(self, number: signal.Signals) -> int:
        self.process.send_signal(number)
        return await asyncio.wait_for(self.process.wait(), 20)


Launch = Callable[[dict[str, str]], Awaitable[Program]]


@pytest_asyncio.fixture
async def launch(tmp_path: Path) -> AsyncGenerator[Launch, None]:
    count = iter(range(100))
    async with AsyncExitStack() as stack:

        async def start(environment: dict[str, str]) -> Program:
            file = tmp_path / f"consumer-{next(count)}.log"
            with await asyncio.to_thread(file.open, "wb") as output:
                process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    str(APP / "consumer.py"),
                    stdout=output,
                    stderr=output,
                    env={**os.environ, **environment},
                )
            stack.push_async_callback(end, process)
            return Program(process, file)

        yield start


async def end(process: asyncio.subprocess.Process) -> None:
    if process.returncode is None:
        process.kill()
        await process.wait()


def send(url: str, topic: str, *messages: bytes) -> None:
    client = pulsar.Client(url, logger=pulsar.ConsoleLogger(pulsar.LoggerLevel.Error))
    producer = client.create_producer(topic)
    for message in messages:
        producer.send(message)
    client.close()


def numbered(first: int, last: int) -> list[bytes]:
    return [f"message {number}".encode() for number in range(first, last)]


def environment(url: str, topic: str) -> dict[str, str]:
    return {"PULSAR_SERVER": url, "PULSAR_TOPIC": topic, "PULSAR_SUBSCRIPTION_NAME": SUBSCRIPTION}


async def test_each_message_reaches_the_program_once_and_none_is_lost_when_it_is_killed(
    cluster: Cluster, server: Server, launch: Launch
) -> None:
    topic = f"persistent://public/default/{cluster.namespace}"
    spec = ConsumerSpec(server_address=server.url, topic=topic, subscription_name=SUBSCRIPTION, replicas=1)
    async with cluster.running(operator()):
        await cluster.create(PulsarConsumer(kw.Meta("sample"), spec=spec))
        deployment = await cluster.eventually(apps_v1.Deployment, "sample-deployment")
    (container,) = deployment.spec.template.spec.containers
    described = {variable.name: variable.value for variable in container.env}
    first = await launch(described)
    await eventually(
        lambda: first.logged("listening to"), timeout=SEEN_SECONDS, message="the consumer listens"
    )
    await asyncio.to_thread(send, server.url, topic, *numbered(0, 50))
    await eventually(lambda: len(first.messages()) >= 50, timeout=SEEN_SECONDS, message="50 messages seen")
    assert first.messages() == [text.decode() for text in numbered(0, 50)]
    await first.ended(signal.SIGKILL)
    await asyncio.to_thread(send, server.url, topic, *numbered(50, 60))
    second = await launch(described)
    await asyncio.to_thread(send, server.url, topic, *numbered(60, 70))
    wanted = {text.decode() for text in numbered(50, 70)}
    await eventually(
        lambda: wanted <= set(second.messages()),
        timeout=SEEN_SECONDS,
        message="what was sent meanwhile is seen",
    )
    assert await second.ended(signal.SIGTERM) == 0


async def test_a_consumer_that_is_terminated_acknowledges_its_messages(
    server: Server, launch: Launch
) -> None:
    first = await launch(environment(server.url, "ending"))
    await eventually(
        lambda: first.logged("listening to"), timeout=SEEN_SECONDS, message="the consumer listens"
    )
    await asyncio.to_thread(send, server.url, "ending", *numbered(0, 5))
    await eventually(lambda: len(first.messages()) == 5, timeout=SEEN_SECONDS, message="5 messages seen")
    assert await first.ended(signal.SIGTERM) == 0
    await asyncio.to_thread(send, server.url, "ending", b"one more")
    second = await launch(environment(server.url, "ending"))
    await eventually(second.messages, timeout=SEEN_SECONDS, message="the next message is seen")
    assert second.messages() == ["one more"]


async def test_messages_that_cannot_be_processed_are_redelivered_and_then_set_aside(
    server: Server, launch: Launch
) -> None:
    program = await launch(environment(server.url, "broken"))
    await eventually(
        lambda: program.logged("listening to"), timeout=SEEN_SECONDS, message="the consumer listens"
    )
    await asyncio.to_thread(send, server.url, "broken", b"\xff\xfe", b"good")
    await eventually(
        lambda: program.messages() == ["good"], timeout=SEEN_SECONDS, message="the good message is seen"
    )
    aside = await launch(environment(server.url, f"persistent://public/default/broken-{SUBSCRIPTION}-DLQ"))
    await eventually(
        lambda: aside.logged("is given back"), timeout=SEEN_SECONDS, message="the broken message is set aside"
    )
    assert program.process.returncode is None


async def test_the_producer_sends_the_message_of_its_environment(server: Server, launch: Launch) -> None:
    program = await launch(environment(server.url, "produced"))
    variables = {
        **os.environ,
        "PULSAR_SERVER": server.url,
        "PULSAR_TOPIC": "produced",
        "PULSAR_MESSAGE": "hello",
    }
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, str(APP / "producer.py")],
        env=variables,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout) == (0, "sent to produced: hello\n"), done.stderr
    await eventually(
        lambda: program.messages() == ["hello"], timeout=SEEN_SECONDS, message="the message is seen"
    )


async def test_consumers_reconnect_after_an_outage_of_the_server(server: Server, launch: Launch) -> None:
    program = await launch(environment(server.url, "restarted"))
    await eventually(
        lambda: program.logged("listening to"), timeout=SEEN_SECONDS, message="the consumer listens"
    )
    await asyncio.to_thread(server.stop)
    late = await launch(environment(server.url, "restarted-too"))
    await eventually(
        lambda: late.logged("again in"),
        timeout=SEEN_SECONDS,
        message="a consumer without a server tries again",
    )
    await asyncio.to_thread(server.start)
    await asyncio.to_thread(send, server.url, "restarted", b"still there")
    await asyncio.to_thread(send, server.url, "restarted-too", b"there at last")
    await eventually(
        lambda: program.messages() == ["still there"],
        timeout=SEEN_SECONDS,
        message="the consumer came back by itself",
    )
    await eventually(
        lambda: late.messages() == ["there at last"], timeout=SEEN_SECONDS, message="the late one came too"
    )


async def test_consumed_messages_are_in_the_logs_of_the_pods(server: Server, tmp_path: Path) -> None:
    kubeconfig = tmp_path / "kubeconfig"
    stand_in = shlex.join([sys.executable, str(APP / "consumer.py")])
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()"),
        *("dev", "--pods=process", f"--kubeconfig={kubeconfig}", f"--run=pulsarconsumer:latest={stand_in}"),
        stdout=asyncio.subprocess.PIPE,
    )
    try:
        assert process.stdout is not None
        while b"is ready" not in (line := await process.stdout.readline()):
            assert line, "kubewright dev did not start"
        async with isolated("embedded", kubeconfig) as cluster, cluster.running(operator()):
            spec = ConsumerSpec(
                server_address=server.url, topic="logged", subscription_name=SUBSCRIPTION, replicas=2
            )
            await cluster.create(PulsarConsumer(kw.Meta("sample"), spec=spec))
            await cluster.eventually(
                apps_v1.Deployment, "sample-deployment", lambda it: it.status.ready_replicas == 2
            )
            await asyncio.to_thread(send, server.url, "logged", b"read me with kubectl logs")
            logged = "message received: read me with kubectl logs\n"

            async def printed() -> str | None:
                text = await logs(cluster)
                return text if logged in text else None

            text = await eventually(printed, timeout=SEEN_SECONDS)
            assert text.count(logged) == 1
    finally:
        process.terminate()
        await process.wait()


async def logs(cluster: Cluster) -> str:
    """Read what the consumer's Pods have printed."""
    program = shutil.which("kubectl") or f"{find_binaries()}/kubectl"
    done = await asyncio.create_subprocess_exec(
        *(program, f"--kubeconfig={cluster.kubeconfig}", f"--namespace={cluster.namespace}"),
        *("logs", "--selector=pulsarcrd=sample-pulsarcrd", "--tail=-1"),
        stdout=asyncio.subprocess.PIPE,
    )
    out, _ = await done.communicate()
    return out.decode()


@pytest.mark.parametrize("program", ["consumer.py", "producer.py"])
async def test_a_program_names_missing_environment_variables(program: str) -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("PULSAR_")}

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, str(APP / program)], env=bare, capture_output=True, text=True, check=False
        )

    done = await asyncio.to_thread(run)
    assert done.returncode == 1
    assert done.stderr.startswith("missing in the environment: PULSAR_SERVER, PULSAR_TOPIC, ")
