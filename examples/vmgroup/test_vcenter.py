"""VmGroup on a vCenter: govmomi's simulator, which `scripts/external-systems vcenter` builds, behind a link that can be cut."""

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
from kubewright.testing import Cluster, eventually
from vmgroup import VmGroup, VmGroupSpec, controller, operator, vcenter_session
from vmgroup.inventory import find_template
from vmgroup.provider import Machine, Provider, ProviderError, provider

# pyVmomi leaves the sockets of connections that failed to the garbage collector.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")

TEMPLATE = "vm-operator-template"
USER, PASSWORD = "operator@vsphere.local", "right"
PROVIDE = Path(__file__).parents[2] / "tools" / "external_systems" / "provide.py"


class VCenter:
    """The simulator as a process; faults are requested over its standard input."""

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
        reply: dict[str, Any] = json.loads(self._process.stdout.readline())
        return reply


class Link:
    """A TCP proxy to vCenter that can be cut and connected again."""

    def __init__(self, address: str) -> None:
        self._there = address.split(":")
        self._server: asyncio.Server | None = None
        self._ends: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.open = asyncio.Event()
        self.open.set()

    async def connect(self) -> Self:
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
async def link(vcenter: VCenter, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Link, None]:
    """Configure the provider to reach vCenter through a proxy, with valid credentials."""
    link = await Link(vcenter.address).connect()
    for name, value in {
        "VMGROUP_PROVIDER": "vcenter",
        "VC_HOST": f"127.0.0.1:{link.port}",
        "VC_USER": USER,
        "VC_PASS": PASSWORD,
        "VC_FOLDER": "operators/vms",
        "SSL_CERT_FILE": vcenter.certificate,
    }.items():
        monkeypatch.setenv(name, value)
    yield link
    await link.cut()


@pytest.fixture
def collected() -> Generator[None, None, None]:
    """Have what a failed connection leaves collected here and not in another test."""
    yield
    gc.collect()


@pytest_asyncio.fixture
async def vsphere(link: Link) -> AsyncGenerator[Provider, None]:
    async with provider("vcenter") as found:
        yield found


async def clone(vsphere: Provider, folder: str, name: str, cpu: int = 2) -> None:
    await vsphere.clone(folder, name, template=TEMPLATE, cpu=cpu, memory=3)


async def test_a_clone_has_its_template_and_size_and_is_on(vsphere: Provider) -> None:
    await vsphere.create_folder("cloning")
    await vsphere.create_folder("cloning")
    await clone(vsphere, "cloning", "one")
    assert await vsphere.machines("cloning") == [Machine("one", True, 2, 3, TEMPLATE)]


async def test_machines_are_switched_off_and_on_and_removed_and_then_their_folder(vsphere: Provider) -> None:
    await vsphere.create_folder("leaving")
    await clone(vsphere, "leaving", "one")
    await vsphere.power_off("leaving", "one")
    assert [found.powered_on for found in await vsphere.machines("leaving")] == [False]
    await vsphere.power_on("leaving", "one")
    assert [found.powered_on for found in await vsphere.machines("leaving")] == [True]
    await vsphere.delete_folder("leaving")
    assert len(await vsphere.machines("leaving")) == 1
    await vsphere.power_off("leaving", "one")
    await vsphere.destroy("leaving", "one")
    await vsphere.delete_folder("leaving")
    await vsphere.delete_folder("leaving")
    assert await vsphere.machines("leaving") == []


async def test_has_template_finds_templates_only(vsphere: Provider) -> None:
    assert await vsphere.has_template(TEMPLATE)
    assert not await vsphere.has_template("no-such-template")
    await vsphere.create_folder("templates")
    await clone(vsphere, "templates", "a-machine")
    assert not await vsphere.has_template("a-machine")


@pytest.mark.parametrize("method", ["CloneVM_Task", "ReconfigVM_Task", "PowerOnVM_Task"])
async def test_a_clone_that_failed_anywhere_is_completed_by_the_next(
    vsphere: Provider, vcenter: VCenter, method: str
) -> None:
    folder = f"failing-{method}"
    await vsphere.create_folder(folder)
    vcenter.fail(method, "the datastore is busy")
    with pytest.raises(ProviderError, match="the datastore is busy"):
        await clone(vsphere, folder, "one")
    await clone(vsphere, folder, "one")
    assert await vsphere.machines(folder) == [Machine("one", True, 2, 3, TEMPLATE)]


async def test_a_session_that_has_run_out_is_renewed(vsphere: Provider, vcenter: VCenter) -> None:
    vcenter.fail("CreateContainerView", unauthorized=True)
    assert await vsphere.has_template(TEMPLATE)


@pytest.mark.usefixtures("collected")
async def test_a_connection_lost_in_a_clone_makes_no_second_machine(
    vsphere: Provider, vcenter: VCenter, link: Link
) -> None:
    await vsphere.create_folder("lost")
    vcenter.slow_down("CloneVm", 2000)
    async with provider("vcenter") as witness, asyncio.TaskGroup() as group:
        group.create_task(cut_when_begun(link, witness))
        broken = await failure(clone(vsphere, "lost", "one"))
    vcenter.slow_down("CloneVm", 0)
    assert isinstance(broken, ProviderError)
    await link.connect()
    await eventually(lambda: vsphere.machines("lost"))
    left = await vsphere.machines("lost")
    assert [(found.name, found.complete) for found in left] == [("one", False)]
    await clone(vsphere, "lost", "one")
    assert await vsphere.machines("lost") == [Machine("one", True, 2, 3, TEMPLATE)]


async def failure(work: Any) -> Exception | None:
    try:
        await work
    except ProviderError as error:
        return error
    return None


async def cut_when_begun(link: Link, witness: Any) -> None:
    """Cut the link as soon as the witness sees a task run."""
    await eventually(lambda: witness.call(is_cloning))
    await link.cut()


def is_cloning(content: Any) -> bool:
    tasks = [task.info for task in find_template(content, TEMPLATE).recentTask]
    return any(info.state in ("running", "queued") for info in tasks)


@pytest.mark.usefixtures("collected")
async def test_a_wrong_password_is_reported_at_the_start(link: Link, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VC_PASS", "wrong")
    with pytest.raises(
        kw.errors.ConfigError, match=r"does not let operator@vsphere\.local in: check VC_USER and VC_PASS"
    ):
        async with provider("vcenter"):
            pass


@pytest.mark.usefixtures("collected")
async def test_an_unknown_certificate_is_trusted_only_with_vc_insecure(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SSL_CERT_FILE")
    with pytest.raises(kw.errors.ConfigError, match=r"cannot be trusted: .*SSL_CERT_FILE.* VC_INSECURE=true"):
        async with provider("vcenter"):
            pass
    monkeypatch.setenv("VC_INSECURE", "true")
    async with provider("vcenter") as vsphere:
        assert await vsphere.has_template(TEMPLATE)


async def test_missing_environment_variables_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("VC_USER", USER)
    with pytest.raises(kw.errors.ConfigError, match="needs VC_HOST, VC_PASS in its environment"):
        async with provider("vcenter"):
            pass


@pytest.mark.usefixtures("collected")
async def test_the_provider_waits_for_an_unreachable_vcenter(link: Link) -> None:
    await link.cut()
    async with provider("vcenter") as vsphere:
        with pytest.raises(ProviderError, match=r"vCenter 127\.0\.0\.1: "):
            await vsphere.has_template(TEMPLATE)
        await link.connect()
        assert await vsphere.has_template(TEMPLATE)


@pytest.mark.usefixtures("collected")
async def test_a_vcenter_that_does_not_answer_does_not_block_others(
    link: Link, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vcenter_session, "REQUEST_SECONDS", 2.0)
    async with provider("vcenter") as vsphere:
        link.open.clear()
        with pytest.raises(ProviderError, match="timed out"):
            await vsphere.has_template(TEMPLATE)
        link.open.set()
        assert await vsphere.has_template(TEMPLATE)


def group(replicas: int) -> VmGroup:
    spec = VmGroupSpec(cpu=1, memory=2, replicas=replicas, template=TEMPLATE)
    return VmGroup(kw.Meta("vg-1"), spec=spec)


def is_running(replicas: int) -> Callable[[VmGroup], bool]:
    def running(group: VmGroup) -> bool:
        status = group.status
        return status.phase == "RUNNING" and status.current_replicas == status.desired_replicas == replicas

    return running


async def test_a_group_is_created_scaled_and_deleted_on_vcenter(
    cluster: Cluster, vsphere: Provider, vcenter: VCenter, monkeypatch: pytest.MonkeyPatch
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
        machines = await vsphere.machines(folder)
        assert [(found.powered_on, found.cpu, found.memory) for found in machines] == [(True, 1, 2)] * 3
        first, second, _ = (found.name for found in machines)
        await vsphere.power_off(folder, first)
        await vsphere.power_off(folder, second)
        await vsphere.destroy(folder, second)
        await eventually(lambda: all_on(vsphere, folder, 3))
        await cluster.client.scale(VmGroup, "vg-1", cluster.namespace, replicas=2)
        await cluster.eventually(VmGroup, "vg-1", is_running(2))
        assert len(await vsphere.machines(folder)) == 2
        vcenter.fail("Destroy_Task", "vCenter is tired", times=2)
        await cluster.client.delete(made)
        await cluster.eventually_gone(VmGroup, "vg-1")
    assert await vsphere.machines(folder) == []


async def all_on(vsphere: Provider, folder: str, count: int) -> bool:
    return [found.powered_on for found in await vsphere.machines(folder)] == [True] * count
