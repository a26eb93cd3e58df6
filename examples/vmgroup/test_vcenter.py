"""VmGroup on a vCenter: govmomi's simulator, which `scripts/outside vcenter` builds, behind a wire that can be cut."""

import asyncio
import gc
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable, Generator
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

import pytest
import pytest_asyncio

import kubewright as kw
from kubewright.testing import DEFAULT_TIMEOUT, Cluster
from vmgroup import VmGroup, VmGroupSpec, controller, operator, vcenter_session
from vmgroup.inventory import find_template
from vmgroup.provider import Machine, Provider, ProviderError, provider

# pyVmomi leaves the sockets of connections that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

TEMPLATE = "vm-operator-template"
USER, PASSWORD = "operator@vsphere.local", "right"
PROVIDE = Path(__file__).parents[2] / "tools" / "outside" / "provide.py"


class VCenter:
    """The simulator as a process; faults are asked for over its standard input."""

    def __init__(self, program: str) -> None:
        self._process = subprocess.Popen(
            [program, "-user", USER, "-password", PASSWORD, "-template", TEMPLATE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        served = self._answer()
        self.address: str = served["address"]
        self.certificate: str = served["certificate"]

    def fail(self, method: str, message: str = "", *, times: int = 1, unauthorized: bool = False) -> None:
        """Have the next calls of a method fail."""
        self._arrange({"method": method, "message": message, "times": times, "unauthorized": unauthorized})

    def slow_down(self, task: str, milliseconds: int) -> None:
        """Have the tasks of a name take their time."""
        self._arrange({"task": task, "milliseconds": milliseconds})

    def close(self) -> None:
        with self._process as process:
            assert process.stdin is not None
            process.stdin.close()
            process.wait(10)

    def _arrange(self, wanted: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(wanted) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        answer: dict[str, Any] = json.loads(self._process.stdout.readline())
        return answer


class Wire:
    """A connection to vCenter that can be cut and mended."""

    def __init__(self, address: str) -> None:
        self._there = address.split(":")
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.open = asyncio.Event()
        self.open.set()

    async def mend(self) -> Self:
        self._server = await asyncio.start_server(self._join, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def cut(self) -> None:
        if self._server is not None:
            self._server.close()
        for end in list(self._ends):
            end.transport.abort()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await asyncio.open_connection(self._there[0], int(self._there[1]))
        self._ends |= {writer, far_writer}
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._carry(reader, far_writer))
                group.create_task(self._carry(far_reader, writer))
        finally:
            self._ends -= {writer, far_writer}

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while data := await reader.read(65536):
                await self.open.wait()
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()


@pytest.fixture(scope="module")
def vcenter() -> Generator[VCenter, None, None]:
    found = subprocess.run(
        [sys.executable, str(PROVIDE), "vcenter", "--cached"], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(found.stderr.strip())
    running = VCenter(found.stdout.strip())
    yield running
    running.close()


@pytest_asyncio.fixture
async def wire(vcenter: VCenter, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Wire, None]:
    """Lead the provider to vCenter over a wire, with everything right that is needed to log in."""
    wire = await Wire(vcenter.address).mend()
    for name, value in {
        "VMGROUP_PROVIDER": "vcenter",
        "VC_HOST": f"127.0.0.1:{wire.port}",
        "VC_USER": USER,
        "VC_PASS": PASSWORD,
        "VC_FOLDER": "operators/vms",
        "SSL_CERT_FILE": vcenter.certificate,
    }.items():
        monkeypatch.setenv(name, value)
    yield wire
    await wire.cut()


@pytest.fixture
def collected() -> Generator[None, None, None]:
    """Have what a failed connection leaves collected here and not in another test."""
    yield
    gc.collect()


@pytest_asyncio.fixture
async def outside(wire: Wire) -> AsyncGenerator[Provider, None]:
    async with provider("vcenter") as found:
        yield found


async def clone(outside: Provider, folder: str, name: str, cpu: int = 2) -> None:
    await outside.clone(folder, name, template=TEMPLATE, cpu=cpu, memory=3)


async def test_a_clone_has_its_template_and_size_and_is_on(outside: Provider) -> None:
    await outside.create_folder("cloning")
    await outside.create_folder("cloning")
    await clone(outside, "cloning", "one")
    assert await outside.machines("cloning") == [Machine("one", True, 2, 3, TEMPLATE)]


async def test_machines_are_switched_off_and_on_and_removed_and_then_their_folder(outside: Provider) -> None:
    await outside.create_folder("leaving")
    await clone(outside, "leaving", "one")
    await outside.power_off("leaving", "one")
    assert [found.powered_on for found in await outside.machines("leaving")] == [False]
    await outside.power_on("leaving", "one")
    assert [found.powered_on for found in await outside.machines("leaving")] == [True]
    await outside.delete_folder("leaving")
    assert len(await outside.machines("leaving")) == 1
    await outside.power_off("leaving", "one")
    await outside.destroy("leaving", "one")
    await outside.delete_folder("leaving")
    await outside.delete_folder("leaving")
    assert await outside.machines("leaving") == []


async def test_only_a_template_is_one(outside: Provider) -> None:
    assert await outside.has_template(TEMPLATE)
    assert not await outside.has_template("no-such-template")
    await outside.create_folder("templates")
    await clone(outside, "templates", "a-machine")
    assert not await outside.has_template("a-machine")


@pytest.mark.parametrize("method", ["CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task"])
async def test_a_clone_that_failed_anywhere_is_completed_by_the_next(
    outside: Provider, vcenter: VCenter, method: str
) -> None:
    folder = f"failing-{method}"
    await outside.create_folder(folder)
    vcenter.fail(method, "the datastore is busy")
    with pytest.raises(ProviderError, match="the datastore is busy"):
        await clone(outside, folder, "one")
    await clone(outside, folder, "one")
    assert await outside.machines(folder) == [Machine("one", True, 2, 3, TEMPLATE)]


async def test_a_session_that_has_run_out_is_renewed(outside: Provider, vcenter: VCenter) -> None:
    vcenter.fail("CreateContainerView", unauthorized=True)
    assert await outside.has_template(TEMPLATE)


@pytest.mark.usefixtures("collected")
async def test_a_connection_lost_in_a_clone_makes_no_second_machine(
    outside: Provider, vcenter: VCenter, wire: Wire
) -> None:
    await outside.create_folder("lost")
    vcenter.slow_down("CloneVm", 2000)
    async with provider("vcenter") as witness, asyncio.TaskGroup() as group:
        group.create_task(cut_when_begun(wire, witness))
        broken = await failure(clone(outside, "lost", "one"))
    vcenter.slow_down("CloneVm", 0)
    assert isinstance(broken, ProviderError)
    await wire.mend()
    await until(lambda: outside.machines("lost"))
    left = await outside.machines("lost")
    assert [(found.name, found.complete) for found in left] == [("one", False)]
    await clone(outside, "lost", "one")
    assert await outside.machines("lost") == [Machine("one", True, 2, 3, TEMPLATE)]


async def failure(work: Any) -> Exception | None:
    try:
        await work
    except ProviderError as error:
        return error
    return None


async def cut_when_begun(wire: Wire, witness: Any) -> None:
    """Cut the wire as soon as the witness sees a task run."""
    await until(lambda: witness._ask(is_cloning))
    await wire.cut()


def is_cloning(content: Any) -> bool:
    tasks = [task.info for task in find_template(content, TEMPLATE).recentTask]
    return any(info.state in ("running", "queued") for info in tasks)


@pytest.mark.usefixtures("collected")
async def test_a_wrong_password_is_told_at_the_start(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VC_PASS", "wrong")
    with pytest.raises(
        kw.errors.ConfigError, match=r"does not let operator@vsphere\.local in: check VC_USER and VC_PASS"
    ):
        async with provider("vcenter"):
            pass


@pytest.mark.usefixtures("collected")
async def test_a_certificate_of_strangers_is_trusted_only_when_told_so(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(kw.errors.ConfigError, match=r"cannot be trusted: .*SSL_CERT_FILE.* VC_INSECURE=true"):
        async with provider("vcenter"):
            pass
    monkeypatch.setenv("VC_INSECURE", "true")
    async with provider("vcenter") as outside:
        assert await outside.has_template(TEMPLATE)


async def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VC_USER", USER)
    with pytest.raises(kw.errors.ConfigError, match="needs VC_HOST, VC_PASS in its environment"):
        async with provider("vcenter"):
            pass


@pytest.mark.usefixtures("collected")
async def test_an_absent_vcenter_is_waited_for(wire: Wire) -> None:
    await wire.cut()
    async with provider("vcenter") as outside:
        with pytest.raises(ProviderError, match=r"vCenter 127\.0\.0\.1: "):
            await outside.has_template(TEMPLATE)
        await wire.mend()
        assert await outside.has_template(TEMPLATE)


@pytest.mark.usefixtures("collected")
async def test_a_vcenter_that_says_nothing_holds_nobody_up(
    wire: Wire, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vcenter_session, "REQUEST_SECONDS", 2.0)
    async with provider("vcenter") as outside:
        wire.open.clear()
        with pytest.raises(ProviderError, match="timed out"):
            await outside.has_template(TEMPLATE)
        wire.open.set()
        assert await outside.has_template(TEMPLATE)


def group(replicas: int) -> VmGroup:
    spec = VmGroupSpec(cpu=1, memory=2, replicas=replicas, template=TEMPLATE)
    return VmGroup(kw.Meta("vg-1"), spec=spec)


def is_running(replicas: int) -> Callable[[VmGroup], bool]:
    return lambda it: it.status.phase == "RUNNING" and it.status.current_replicas == replicas


async def test_a_group_lives_on_vcenter(
    cluster: Cluster, outside: Provider, vcenter: VCenter, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = f"{cluster.namespace}-vg-1"
    monkeypatch.setattr(controller, "RETRY_AFTER", timedelta(seconds=0.5))
    vcenter.fail("CloneVM_Task", "the datastore is busy")
    async with cluster.running(operator(resync=timedelta(seconds=0.5))):
        made = await cluster.create(group(3))
        await cluster.eventually(
            VmGroup, "vg-1", lambda it: it.status.last_message == "the datastore is busy" or is_running(3)(it)
        )
        await cluster.eventually(VmGroup, "vg-1", is_running(3))
        machines = await outside.machines(folder)
        assert [(found.powered_on, found.cpu, found.memory) for found in machines] == [(True, 1, 2)] * 3
        first, second, _ = (found.name for found in machines)
        await outside.power_off(folder, first)
        await outside.power_off(folder, second)
        await outside.destroy(folder, second)
        await until(lambda: all_on(outside, folder, 3))
        await cluster.client.scale(VmGroup, "vg-1", cluster.namespace, replicas=2)
        await cluster.eventually(VmGroup, "vg-1", is_running(2))
        assert len(await outside.machines(folder)) == 2
        vcenter.fail("Destroy_Task", "vCenter is tired", times=2)
        await cluster.client.delete(made)
        await cluster.eventually_gone(VmGroup, "vg-1")
    assert await outside.machines(folder) == []


async def all_on(outside: Provider, folder: str, count: int) -> bool:
    return [found.powered_on for found in await outside.machines(folder)] == [True] * count


async def until(holds: Callable[[], Any]) -> None:
    async with asyncio.timeout(DEFAULT_TIMEOUT):
        while not await holds():  # noqa: ASYNC110 (what is waited for lies outside)
            await asyncio.sleep(0.05)
