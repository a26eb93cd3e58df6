"""A sample deployed from its manifests: its manager is a process that reconciles as its ServiceAccount."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from page_client import browser

from kubewright.api.builtin import apps_v1, core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster, eventually
from kubewright.ui import PageOptions, cluster_page

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


async def deployed(cluster: Cluster, kubectl: Kubectl, documents: Path, folder: Path) -> apps_v1.Deployment:
    """Deploy the sample's operator, create an object of its kind, and return the child of that."""
    own = f"--namespace={SYSTEM}"
    await kubectl(own, "apply", "--server-side", "-f", str(documents))
    await kubectl(own, "wait", "deploy", "--all", "--for=condition=Available", "--timeout=120s")
    sample = folder / "sample.yaml"
    sample.write_text(SAMPLE)
    await kubectl("apply", "-f", str(sample))
    return await cluster.eventually(
        apps_v1.Deployment, "demo", lambda found: found.status.ready_replicas == 1
    )


async def test_a_manager_pod_reconciles_as_its_service_account(
    cluster: Cluster, kubectl: Kubectl, documents: Path, tmp_path: Path
) -> None:
    own = f"--namespace={SYSTEM}"
    made = await deployed(cluster, kubectl, documents, tmp_path)
    (pod,) = await cluster.client.list(core_v1.Pod, namespace=cluster.namespace)
    output = await kubectl("exec", pod.metadata.name, "--", "sh", "-c", "echo $KUBERNETES_SERVICE_HOST")
    assert output == "127.0.0.1\n"
    log = await kubectl(own, "logs", "deploy/myownshell-controller-manager")
    # The operator also sees objects of earlier tests, in namespaces that are being deleted.
    assert [line for line in log.splitlines() if cluster.namespace in line and "forbidden" in line] == []
    assert made.metadata.owner_references[0].kind == "MyOwnShell"


async def why(cluster: Cluster, *options: str) -> None:
    """Run `kubewright why` in a thread: a command has an event loop of its own."""

    def run() -> None:
        arguments = [
            "why",
            "myownshell/demo",
            "--kubeconfig",
            str(cluster.kubeconfig),
            "-n",
            cluster.namespace,
        ]
        with pytest.raises(SystemExit) as ended:
            main([*arguments, *options])
        assert ended.value.code == 0

    await asyncio.to_thread(run)


async def test_why_reads_the_journal_of_a_manager_pod(
    cluster: Cluster,
    kubectl: Kubectl,
    documents: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    await deployed(cluster, kubectl, documents, tmp_path)
    (manager,) = await cluster.client.list(core_v1.Pod, namespace=SYSTEM)
    capsys.readouterr()
    await why(cluster, "--operator-namespace", SYSTEM)
    shown = capsys.readouterr().out
    assert f"from the operator myownshell (Pod {SYSTEM}/{manager.metadata.name})" in shown
    assert f"because  MyOwnShell {cluster.namespace}/demo was created" in shown
    assert "apply    deployments.apps/demo created" in shown
    await kubectl("create", "serviceaccount", "reader")
    account = f"{cluster.namespace}/reader"
    await why(cluster, "--service-account", account)
    assert (
        "its journal cannot be read: get the journal: "
        f"Authorization denied for user system:serviceaccount:{cluster.namespace}:reader"
    ) in capsys.readouterr().out
    await kubectl("create", "serviceaccount", "late")
    await kubectl(
        *("create", "clusterrolebinding", f"reads-journal-late-{cluster.namespace}"),
        *("--clusterrole=myownshell-metrics-reader", f"--serviceaccount={cluster.namespace}:late"),
    )
    await why(cluster, "--service-account", f"{cluster.namespace}/late")
    assert "was created" in capsys.readouterr().out
    await why(cluster, "--service-account", f"{cluster.namespace}/absent")
    assert f"Pod {SYSTEM}/{manager.metadata.name} was not read" in capsys.readouterr().out


async def test_the_live_page_follows_a_manager_pod_and_its_successor(
    cluster: Cluster, kubectl: Kubectl, documents: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "runtime"))
    await deployed(cluster, kubectl, documents, tmp_path)
    (manager,) = await cluster.client.list(core_v1.Pod, namespace=SYSTEM)
    options = PageOptions(operator_namespace=SYSTEM)
    async with (
        cluster_page(cluster.config, "test", options) as link,
        browser(link) as page,
        page.following() as view,
    ):
        await eventually(lambda: [each["name"] for each in view.operators] == ["myownshell"])
        assert (
            view.operators[0]["source"] == f"the operator myownshell (Pod {SYSTEM}/{manager.metadata.name})"
        )
        assert view.operators[0]["lease"]["holder"]

        def reconciled() -> bool:
            shown = [each for each in view.reconciles.values() if each["namespace"] == cluster.namespace]
            return any(write["resource"] == "deployments.apps" for each in shown for write in each["writes"])

        await eventually(reconciled)
        await cluster.client.delete(manager)
        await eventually(lambda: any("has ended" in text for text in view.problems))

        def followed() -> bool:
            return any(manager.metadata.name not in each["source"] for each in view.operators)

        await eventually(followed)
        await eventually(lambda: view.problems == [])
