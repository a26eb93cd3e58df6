"""A sample deployed from its manifests: its manager is a process that reconciles as its ServiceAccount."""

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster

Kubectl = Callable[..., Awaitable[str]]

EXAMPLE = Path(__file__).parents[2] / "examples" / "myownshell"
SYSTEM = "myownshell-system"
IMAGE = "registry.example/myownshell:1"
SAMPLE = """
apiVersion: my-first-operator.jgato.io/v1alpha1
kind: MyOwnShell
metadata: {name: demo}
spec: {size: 1}
"""


@pytest.fixture
def documents(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    """Render the sample's manifests."""
    with pytest.raises(SystemExit) as ended:
        main(["manifests", str(EXAMPLE), f"--image={IMAGE}"])
    assert ended.value.code in (0, None)
    path = tmp_path / "all.yaml"
    path.write_text(capsys.readouterr().out)
    return path


async def test_a_manager_pod_reconciles_as_its_service_account(
    cluster: Cluster, kubectl: Kubectl, documents: Path, tmp_path: Path
) -> None:
    own = f"--namespace={SYSTEM}"
    await kubectl(own, "apply", "--server-side", "-f", str(documents))
    await kubectl(own, "wait", "deploy", "--all", "--for=condition=Available", "--timeout=120s")
    sample = tmp_path / "sample.yaml"
    sample.write_text(SAMPLE)
    await kubectl("apply", "-f", str(sample))
    made = await cluster.eventually(
        apps_v1.Deployment, "demo", lambda found: found.status.ready_replicas == 1
    )
    (pod,) = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace)
    output = await kubectl("exec", pod.metadata.name, "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST")
    assert output == "127.0.0.1\n"
    log = await kubectl(own, "logs", "deploy/myownshell-controller-manager")
    assert "forbidden" not in log
    assert made.metadata.owner_references[0].kind == "MyOwnShell"
