"""The documents' own walks through their operators, typed into kubectl."""

import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import pytest
from acceptance_kubectl import Kubectl, KubectlFailed
from acceptance_samples import SAMPLES

from kubewright.testing import DEFAULT_TIMEOUT, Cluster, eventually

FUNNY_JOE = """
apiVersion: v1
kind: Pod
metadata: {name: funny-joe}
spec:
  containers:
  - {name: ubuntu, image: "ubuntu:latest", command: [sleep], args: [infinity]}
"""
GARBAGE = 90.0

Playing = Callable[[str], AbstractAsyncContextManager[None]]


@pytest.fixture
def playing(cluster: Cluster, kubectl: Kubectl, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Playing:
    """Run a sample operator with its samples applied."""
    monkeypatch.setenv("VMGROUP_SIMULATOR", str(tmp_path / "vcenter.json"))

    @asynccontextmanager
    async def play(name: str) -> AsyncGenerator[None, None]:
        sample = next(found for found in SAMPLES if found.name == name)
        async with cluster.running(sample.operator()):
            await kubectl.in_time("apply", "-f", str(sample.target / "samples"))
            yield

    return play


async def prints(ask: Callable[[], Awaitable[str]], pattern: str, *, timeout: float = DEFAULT_TIMEOUT) -> str:
    """Ask until what is printed matches."""
    said = ""

    async def matches() -> bool:
        nonlocal said
        said = await ask()
        return re.search(pattern, said, re.MULTILINE) is not None

    try:
        await eventually(matches, timeout=timeout)
    except AssertionError:
        raise AssertionError(f"never matched {pattern!r}; the last answer:\n{said}") from None
    return said


async def test_mycustomresource_finds_its_friend(kubectl: Kubectl, playing: Playing) -> None:
    async def described() -> str:
        return await kubectl("describe", "mycustomresource", "my-custom-resource-01")

    async with playing("mycustomresource"):
        await prints(described, r"Healthy:\s+false")
        assert await kubectl("apply", "-f", "-", stdin=FUNNY_JOE) == "pod/funny-joe created\n"
        await prints(described, r"Healthy:\s+true")
        await kubectl("delete", "pod", "funny-joe", "--grace-period=1")
        await prints(described, r"Healthy:\s+false")


async def test_myownshell_keeps_its_deployment(kubectl: Kubectl, playing: Playing) -> None:
    async def deployments() -> str:
        return await kubectl("get", "deployments", "--no-headers")

    async def uid() -> str:
        path = "jsonpath={.metadata.uid}"
        return await kubectl("get", "deployment", "myownshell-sample", "-o", path, "--ignore-not-found")

    async with playing("myownshell"):
        await prints(deployments, r"^myownshell-sample +3/3 +3 +3 ")
        await prints(lambda: kubectl("get", "myownshells"), r"^NAME +READY\nmyownshell-sample +3$")
        await kubectl("patch", "myownshell", "myownshell-sample", "--type=merge", '-p={"spec":{"size":5}}')
        await prints(deployments, r"^myownshell-sample +5/5 ")
        await kubectl("scale", "deployment", "myownshell-sample", "--replicas=1")
        await prints(deployments, r"^myownshell-sample +5/5 ")
        first = await uid()
        # kubectl waits for an end that it may miss when a namesake follows at once.
        await kubectl("delete", "deployment", "myownshell-sample", "--wait=false")
        await prints(uid, rf"^(?!{first}$)\S+$")
        await prints(deployments, r"^myownshell-sample +5/5 ")
        await kubectl("delete", "myownshell", "myownshell-sample", "--timeout=120s")
        await prints(deployments, "No resources found", timeout=GARBAGE)


async def test_myownshell_refuses_a_wrong_size(kubectl: Kubectl, playing: Playing) -> None:
    def sized(spec: str) -> str:
        return f"apiVersion: my-first-operator.jgato.io/v1alpha1\nkind: MyOwnShell\nmetadata: {{name: x}}\nspec: {spec}\n"

    async with playing("myownshell"):
        for spec, message in (
            ("{}", "spec.size: Required value"),
            ("{size: x}", 'spec.size in body must be of type integer: "string"'),
            ("{size: -1}", "spec.size in body should be greater than or equal to 0"),
        ):
            with pytest.raises(KubectlFailed, match=re.escape(message)):
                await kubectl("apply", "-f", "-", stdin=sized(spec))


async def test_foo_gets_its_pod_back(kubectl: Kubectl, playing: Playing) -> None:
    async def pod() -> str:
        return await kubectl("get", "pod", "test", "-o", "jsonpath={.metadata.uid}", "--ignore-not-found")

    async with playing("foo"):
        shown = await prints(lambda: kubectl("get", "foo"), r"^test +first foo +1$")
        assert re.match(r"NAME +TEST STRING +TEST NUM\n", shown)
        first = await prints(pod, r"^\S+$")
        # Its successor may be there before kubectl looks whether it is gone, and kubectl compares names only.
        await kubectl("delete", "pod", "test", "--grace-period=0", "--force", "--wait=false")
        await prints(pod, rf"^(?!{first}$)\S+$")
        await kubectl("delete", "foo", "test")
        assert await pod()


async def test_vmgroup_scales_and_reports(kubectl: Kubectl, playing: Playing) -> None:
    async def groups() -> str:
        return await kubectl("get", "vg")

    def row(replicas: int) -> str:
        return rf"^vg-1 +RUNNING +{replicas} +{replicas} +1 +1 +vm-operator-template +successfully reconciled VmGroup$"

    async with playing("vmgroup"):
        shown = await prints(groups, row(3))
        assert re.match(r"NAME +PHASE +CURRENT +DESIRED +CPU +MEMORY +TEMPLATE +LAST_MESSAGE\n", shown)
        for replicas in (5, 2):
            said = await kubectl("scale", "vg/vg-1", f"--replicas={replicas}")
            assert said == "vmgroup.vm.codeconnect.vmworld.com/vg-1 scaled\n"
            await prints(groups, row(replicas))
        await kubectl("patch", "vg", "vg-1", "--type=merge", '-p={"spec":{"template":"no-such"}}')
        await prints(groups, r'^vg-1 +ERROR .*could not find template "no-such"$')
        await kubectl(
            "patch", "vg", "vg-1", "--type=merge", '-p={"spec":{"template":"vm-operator-template"}}'
        )
        await prints(groups, row(2))
        await kubectl("delete", "vg", "vg-1", "--timeout=120s")
        await prints(groups, "No resources found")


async def test_pulsarconsumer_fills_its_columns(kubectl: Kubectl, playing: Playing) -> None:
    async def consumers() -> str:
        return await kubectl("get", "pulsarconsumers")

    async with playing("pulsarconsumer"):
        shown = await prints(
            consumers, r"^pulsarconsumer-sample +pulsar://localhost:6650 +my-topic +first-subscription +1$"
        )
        assert re.match(r"NAME +SERVER +TOPIC +SUBSCRIPTION +REPLICAS\n", shown)
        environment = await kubectl("set", "env", "deployment/pulsarconsumer-sample-deployment", "--list")
        assert "PULSAR_SERVER=pulsar://localhost:6650\nPULSAR_TOPIC=my-topic\n" in environment
        patch = '-p={"spec":{"replicas":3,"topic":"t2"}}'
        await kubectl("patch", "pulsarconsumer", "pulsarconsumer-sample", "--type=merge", patch)
        await prints(consumers, r" t2 +first-subscription +3$")
        await prints(lambda: kubectl("get", "deployments"), r"^pulsarconsumer-sample-deployment +3/3 ")
        generation = "jsonpath={.metadata.generation}"
        assert await kubectl("get", "deployment", "pulsarconsumer-sample-deployment", "-o", generation) == "2"
