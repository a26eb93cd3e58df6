"""Operators and their Pods as processes: a shell is really opened, a manager really runs as its account."""

import shlex
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from acceptance_commands import kubewright
from acceptance_kubectl import Kubectl, KubectlFailed, find_kubectl
from acceptance_samples import ROOT

IMAGE = "myownshell:here"
PROGRAM = [sys.executable, "-c", "from kubewright.cli import main; main()"]


@pytest.fixture
def kubectl(server_name: str, tmp_path: Path) -> Generator[Kubectl, None, None]:
    """Run kubectl on a dev cluster whose Pods are processes."""
    if server_name != "embedded":
        pytest.skip("process Pods are the dev cluster's")
    program = find_kubectl()
    if program is None:
        pytest.skip("no kubectl: neither on the PATH nor in the control plane's cache folder")
    kubeconfig = tmp_path / "kubeconfig"
    stand_in = shlex.join([*PROGRAM, "run", str(ROOT / "examples" / "myownshell")])
    command = [*PROGRAM, "dev", "--pods=process", f"--kubeconfig={kubeconfig}", f"--run={IMAGE}={stand_in}"]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        while "is ready" not in (line := process.stdout.readline()):
            assert line, "kubewright dev did not start"
        yield Kubectl(program, kubeconfig, "default")
        process.terminate()
        assert process.wait(30) == 0


async def test_a_sample_deployed_by_its_own_manifests_opens_shells(kubectl: Kubectl) -> None:
    target, where = str(ROOT / "examples" / "myownshell"), f"--kubeconfig={kubectl.kubeconfig}"
    printed = await kubewright("deploy", target, "--image", IMAGE, where)
    assert "is available" in printed
    # A second replica listens on the same ports, at an address of its own.
    own = ("-n", "myownshell-system", "deployment/myownshell-controller-manager")
    await kubectl("scale", *own, "--replicas=2")
    await kubectl("wait", *own, "--for=jsonpath={.status.readyReplicas}=2", "--timeout=120s")
    await kubectl("apply", "-f", f"{target}/samples")
    await kubectl(
        "wait", "--for=jsonpath={.status.ready}=3", "myownshell/myownshell-sample", "--timeout=120s"
    )
    shell = "deployment/myownshell-sample"
    assert "The app is running, You can now ssh into for a while!" in await kubectl("logs", shell)
    said = await kubectl("exec", shell, "--", "sh", "-c", "echo in a shell of $0", "mine")
    assert "in a shell of mine" in said
    # The manager works as the account of its manifests, and that may do no more than its roles say.
    manager = ("-n", "myownshell-system", "-l", "control-plane=controller-manager")
    account = await kubectl("get", "pods", *manager, "-o", "jsonpath={.items[0].spec.serviceAccountName}")
    who = f"--as=system:serviceaccount:myownshell-system:{account}"
    assert (await kubectl("auth", "can-i", "patch", "deployments", who)).strip() == "yes"
    with pytest.raises(KubectlFailed):
        await kubectl("auth", "can-i", "delete", "nodes", who)
    log = await kubectl("logs", *manager, "--tail=-1")
    assert "Starting workers" in log
    assert "orbidden" not in log
    await kubectl("delete", "myownshell", "myownshell-sample", "--timeout=120s")
    await kubewright("undeploy", target, where)
