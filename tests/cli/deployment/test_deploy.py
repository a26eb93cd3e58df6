"""install, deploy and their opposites, on whichever server the tests run; the kubelet there runs no real image."""

import asyncio
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from acceptance_waits import may, served

from kubewright.api import Forbidden, Kind, Meta, NotFound
from kubewright.api.builtin import apps_v1, core_v1, rbac_v1
from kubewright.cli.app import main
from kubewright.cli.target import load_operator
from kubewright.generate import Names, installer, to_yaml
from kubewright.testing import Cluster, eventually

OPERATOR = '''
from typing import Annotated
import kubewright as kw

class Spec(kw.Model):
    size: Annotated[int, kw.Field(le={limit})] = 0

class Status(kw.Model):
    ready: int = 0

class Parcel(kw.Resource[Spec, Status], group="{group}", version="v1"):
    """A parcel."""

@kw.controller(Parcel)
async def parcels(parcel: Parcel, ctx: kw.Context) -> None:
    pass

operator = kw.Operator(parcels, name="{name}")
'''
IMAGE = ("--image", "registry.example/parcels:1")


async def command(cluster: Cluster, *arguments: str, kubeconfig: Path | None = None) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--kubeconfig", str(kubeconfig or cluster.kubeconfig)])
        return int(ended.value.code or 0)

    return await asyncio.to_thread(run)


def interrupted(cluster: Cluster, *arguments: str) -> tuple[int, str]:
    """Run a command until it waits, and press Ctrl-C."""
    # A shell that runs the tests in the background has them, and what they start, ignore Ctrl-C.
    heeding = "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)"
    program = f"{heeding}; from kubewright.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", program, *arguments, "--kubeconfig", str(cluster.kubeconfig)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        while "waiting for" not in (line := process.stderr.readline()) and line:
            pass
        process.send_signal(signal.SIGINT)
        _, printed = process.communicate()
        return process.returncode, printed


@pytest.fixture
def name(cluster: Cluster) -> str:
    """Return a name for cluster-scoped objects that no other test uses."""
    return f"parcels-{cluster.namespace}"


def operator(folder: Path, name: str, *, limit: int = 9) -> str:
    path = folder / f"parcel_operator_{limit}.py"
    path.write_text(OPERATOR.format(name=name, group=f"{name}.example.com", limit=limit))
    return str(path)


def parcel(cluster: Cluster, name: str) -> tuple[Kind, dict[str, object]]:
    group = f"{name}.example.com"
    kind = Kind(group=group, version="v1", kind="Parcel", plural="parcels")
    metadata = {"name": "big", "namespace": cluster.namespace}
    return kind, {"apiVersion": f"{group}/v1", "kind": "Parcel", "metadata": metadata, "spec": {"size": 8}}


async def test_deploy_and_undeploy_work_with_and_without_dry_run(
    cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = operator(tmp_path, name)
    assert await command(cluster, "deploy", target, *IMAGE, "--dry-run=server") == 0
    shown = capsys.readouterr().out
    assert f"+  name: {name}-controller-manager" in shown
    assert "\x1b" not in shown
    with pytest.raises(NotFound):
        await cluster.client.get(core_v1.Namespace, f"{name}-system")

    assert await command(cluster, "deploy", target, *IMAGE) == 0
    shown = capsys.readouterr().out.splitlines()
    assert f"customresourcedefinition.apiextensions.k8s.io/parcels.{name}.example.com created" in shown
    assert f"deployment.apps/{name}-controller-manager created" in shown
    assert f"deployment.apps/{name}-controller-manager is available" in shown

    other = (IMAGE[0], "registry.example/parcels:2")
    assert await command(cluster, "deploy", target, *other) == 0
    shown = capsys.readouterr().out.splitlines()
    assert f"deployment.apps/{name}-controller-manager configured" in shown
    assert f"customresourcedefinition.apiextensions.k8s.io/parcels.{name}.example.com unchanged" in shown
    assert f"clusterrole.rbac.authorization.k8s.io/{name}-manager-role unchanged" in shown
    assert await command(cluster, "deploy", target, *IMAGE) == 0
    capsys.readouterr()
    assert await command(cluster, "deploy", target, *IMAGE) == 0
    shown = capsys.readouterr().out.splitlines()
    assert {line.split()[1] for line in shown} == {"unchanged", "is"}
    running = await cluster.client.get(apps_v1.Deployment, f"{name}-controller-manager", f"{name}-system")
    assert running.spec.template.spec.containers[0].image == IMAGE[1]

    assert await command(cluster, "deploy", target, *IMAGE, "--dry-run=server") == 0
    assert capsys.readouterr().out == "nothing would change\n"

    limited = (*IMAGE, "-n", cluster.namespace)
    assert await command(cluster, "deploy", target, *limited, "--dry-run=server") == 0
    assert f"--- live/clusterrole.rbac.authorization.k8s.io/{name}-manager-role" in capsys.readouterr().out
    assert await command(cluster, "deploy", target, *limited) == 0
    role = f"clusterrole.rbac.authorization.k8s.io/{name}-manager-role"
    assert f"{role} deleted: it is no longer part of the operator" in capsys.readouterr().out
    assert (await cluster.get(rbac_v1.Role, f"{name}-manager-role")).rules

    assert await command(cluster, "undeploy", target) == 0
    with pytest.raises(NotFound):
        await cluster.get(rbac_v1.Role, f"{name}-manager-role")
    assert f"namespace/{name}-system deleted" in capsys.readouterr().out
    with pytest.raises(NotFound):
        await cluster.client.get(core_v1.Namespace, f"{name}-system")
    assert await command(cluster, "undeploy", target) == 0
    assert capsys.readouterr().out == f"{name} is not deployed\n"
    assert await command(cluster, "uninstall", target) == 0


async def test_a_user_with_the_installer_roles_deploys_and_sees_what_could_not_be_listed(
    cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target, granted, own = operator(tmp_path, name), tmp_path / "granted.yaml", tmp_path / "own"
    await cluster.create(core_v1.ServiceAccount(Meta("ci")))
    documents = installer(await asyncio.to_thread(load_operator, target), f"{cluster.namespace}/ci")
    await asyncio.to_thread(granted.write_text, to_yaml(documents))
    assert await command(cluster, "apply", "-f", str(granted)) == 0
    user = f"system:serviceaccount:{cluster.namespace}:ci"
    bound = {"group": "rbac.authorization.k8s.io", "name": f"{name}-manager-rolebinding"}
    await may(cluster.client, user, "patch", "clusterrolebindings", **bound)
    token = await cluster.client.token_request("ci", cluster.namespace)
    document = yaml.safe_load(await asyncio.to_thread(cluster.kubeconfig.read_text))
    document["users"] = [{**document["users"][0], "user": {"token": token.token}}]
    await asyncio.to_thread(own.write_text, yaml.safe_dump(document))

    assert await command(cluster, "deploy", target, *IMAGE, kubeconfig=own) == 0
    printed = capsys.readouterr()
    assert "is available" in printed.out
    assert "not allowed to list mutatingwebhookconfigurations" in printed.err
    assert await command(cluster, "undeploy", target, kubeconfig=own) == 0
    assert await command(cluster, "uninstall", target, kubeconfig=own) == 0
    for kind in (rbac_v1.ClusterRoleBinding, rbac_v1.ClusterRole):
        await cluster.client.delete(kind, Names(name).installer)


async def test_a_deployment_that_was_interrupted_is_completed_by_the_next(
    cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Half of it is there, and the namespace is still on its way out from an earlier attempt."""
    target = operator(tmp_path, name)
    assert await command(cluster, "install", target) == 0
    namespace = core_v1.Namespace(Meta(f"{name}-system"))
    await cluster.client.create(namespace)
    held = core_v1.ConfigMap(Meta("held", namespace=f"{name}-system", finalizers=["example.com/hold"]))
    held = await cluster.client.create(held)
    await cluster.client.delete(core_v1.Namespace, f"{name}-system")
    assert await command(cluster, "deploy", target, *IMAGE, "--dry-run=server") == 0
    assert "was not checked: its namespace is being terminated" in capsys.readouterr().err
    async with asyncio.TaskGroup() as group:
        deployed = group.create_task(command(cluster, "deploy", target, *IMAGE))
        await cluster.client.patch(held, {"metadata": {"finalizers": None}})
    assert deployed.result() == 0
    assert "is available" in capsys.readouterr().out
    assert await command(cluster, "undeploy", target) == 0
    assert await command(cluster, "uninstall", target) == 0


async def test_a_deployment_that_does_not_start_is_explained_and_may_be_interrupted(
    cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = operator(tmp_path, name)
    await cluster.client.create(core_v1.Namespace(Meta(f"{name}-system")))
    none = core_v1.ResourceQuota(
        Meta("none", namespace=f"{name}-system"), spec=core_v1.ResourceQuotaSpec(hard={"pods": "0"})
    )
    none = await cluster.client.create(none)
    await eventually(lambda: no_pod_is_let_in(cluster, f"{name}-system"))
    assert await command(cluster, "deploy", target, *IMAGE, "--timeout", "8") == 1
    printed = capsys.readouterr().err
    assert f"{name}-system/{name}-controller-manager was not available within 8 s" in printed
    assert "exceeded quota: none" in printed

    code, printed = await asyncio.to_thread(interrupted, cluster, "deploy", target, *IMAGE)
    assert code == 1
    assert "Interrupted: run the same command again" in printed
    assert "Traceback" not in printed

    await cluster.client.delete(none)
    assert await command(cluster, "deploy", target, *IMAGE) == 0
    assert await command(cluster, "undeploy", target) == 0
    assert await command(cluster, "uninstall", target) == 0


async def no_pod_is_let_in(cluster: Cluster, namespace: str) -> bool:
    """Return True if the server has learned of a quota, and of what is used."""
    spec = core_v1.PodSpec(containers=[core_v1.Container(name="main", image="x")])
    try:
        await cluster.client.create(core_v1.Pod(Meta("probe", namespace=namespace), spec=spec), dry_run=True)
    except Forbidden as refusal:
        return "exceeded quota" in str(refusal)
    return False


async def test_crds_in_use_are_neither_broken_nor_removed_without_force(
    cluster: Cluster, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wide, narrow = operator(tmp_path, name), operator(tmp_path, name, limit=7)
    assert await command(cluster, "install", wide) == 0
    kind, wire = parcel(cluster, name)
    await served(cluster.client, kind, cluster.namespace)
    await cluster.client.create(wire, kind=kind)

    assert await command(cluster, "install", narrow) == 1
    printed = capsys.readouterr().err
    assert "the change would break objects stored in the cluster" in printed
    assert "maximum: tightened from 9 to 7" in printed
    assert await command(cluster, "deploy", narrow, *IMAGE) == 1
    assert "would break" in capsys.readouterr().err

    assert await command(cluster, "install", narrow, "--dry-run=server") == 0
    assert "maximum: 7" in capsys.readouterr().out
    assert await command(cluster, "install", narrow, "--force") == 0

    assert await command(cluster, "uninstall", narrow) == 1
    assert f"1 parcels.{name}.example.com exist" in capsys.readouterr().err
    assert await command(cluster, "uninstall", narrow, "--with-resources") == 0
    assert await command(cluster, "uninstall", narrow) == 0
    assert "not found" in capsys.readouterr().out


async def test_a_crd_without_objects_may_change_in_any_way(
    cluster: Cluster, name: str, tmp_path: Path
) -> None:
    assert await command(cluster, "install", operator(tmp_path, name)) == 0
    narrow = operator(tmp_path, name, limit=7)
    assert await command(cluster, "install", narrow) == 0
    assert await command(cluster, "uninstall", narrow) == 0


async def test_undeploy_reports_objects_with_its_finalizer(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"{cluster.namespace}.example.com"
    path = tmp_path / "held_parcels.py"
    finalizer = (
        f"@parcels.finalizer('{group}/parcel')\nasync def end(parcel: Parcel, ctx: kw.Context) -> None: ..."
    )
    source = OPERATOR.format(limit=9, group=group, name=cluster.namespace)
    path.write_text(source.replace("operator = ", f"{finalizer}\n\noperator = "))
    assert await command(cluster, "install", str(path)) == 0
    kind = Kind(group=group, version="v1", kind="Parcel", plural="parcels")
    metadata = {"name": "one", "namespace": cluster.namespace, "finalizers": [f"{group}/parcel"]}
    made = {"apiVersion": f"{group}/v1", "kind": "Parcel", "metadata": metadata}
    await served(cluster.client, kind, cluster.namespace)
    await cluster.client.create(made, kind=kind)
    capsys.readouterr()
    assert await command(cluster, "undeploy", str(path)) == 0
    assert f"note: 1 parcels.{group} have the finalizer {group}/parcel: they can" in capsys.readouterr().err
    free = {"metadata": {"finalizers": None}}
    await cluster.client.patch(kind, free, name="one", namespace=cluster.namespace)
    assert await command(cluster, "uninstall", str(path), "--with-resources") == 0
