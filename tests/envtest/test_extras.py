"""What the programs offer beyond those of Kubernetes: faults, recorded permissions, Pods as processes."""

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from programs import SECONDS, TestPlane

import kubewright as kw
from kubewright.api import Forbidden, Invalid
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.cli.app import cli
from kubewright.client import Client
from kubewright.testing import eventually

GROUP = "rbac.authorization.k8s.io"
MASTERS = "system:masters"
OPERATOR = "system:serviceaccount:system:manager"


def config_map(name: str) -> core_v1.ConfigMap:
    return core_v1.ConfigMap(metadata=kw.Meta(name=name, namespace="default"))


def flags(text: str) -> dict[str, str]:
    return {**os.environ, "KUBEWRIGHT_ENVTEST_FLAGS": text}


def role(*verbs: str, resource: str = "configmaps") -> str:
    rule = {"apiGroups": [""], "resources": [resource], "verbs": list(verbs)}
    document = {"kind": "ClusterRole", "metadata": {"name": "manager-role"}, "rules": [rule]}
    return json.dumps({"apiVersion": "rbac.authorization.k8s.io/v1", **document})


async def bind(admin: Client, user: str) -> None:
    rules = [rbac_v1.PolicyRule(api_groups=[""], resources=["configmaps"], verbs=["*"])]
    await admin.create(rbac_v1.ClusterRole(metadata=kw.Meta(name="manager"), rules=rules))
    binding = rbac_v1.ClusterRoleBinding(
        metadata=kw.Meta(name="manager"),
        role_ref=rbac_v1.RoleRef(api_group=GROUP, kind="ClusterRole", name="manager"),
        subjects=[rbac_v1.Subject(kind="User", name=user, api_group=GROUP)],
    )
    await admin.create(binding)


def verify(*arguments: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(cli, ["rbac", "verify", *map(str, arguments)], standalone_mode=False)
    assert result.exception is None, result.exception
    return result.return_value, result.output


async def test_faults_of_a_file_apply_and_change_with_the_file(plane: TestPlane, tmp_path: Path) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text("- match: {verbs: [create], resource: configmaps, user: ann}\n  fail: 422\n  times: 1\n")
    async with (
        plane.running(environment=flags(f"--faults={file}")),
        Client(plane.config("ann", MASTERS)) as client,
    ):
        with pytest.raises(Invalid):
            await client.create(config_map("one"))
        await client.create(config_map("one"))
        await asyncio.to_thread(
            file.write_text, "- match: {verbs: [get]}\n  fail: 403\n  message: not today\n"
        )
        with pytest.raises(Forbidden, match="not today"):
            await client.get(core_v1.ConfigMap, "one", "default")
        await asyncio.to_thread(file.write_text, "[]\n")
        await client.get(core_v1.ConfigMap, "one", "default")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- fail: maybe\n", "fail"),
        ("- bogus: 1\n", "bogus"),
        ("- match: {verbs: [get]}\n", "a fault requires delay, fail or cutWatches"),
        ("- cutWatches: end\n", "cutWatches requires every"),
        ("- fail: 200\n", "200 is not the status of an error"),
        ("[\n", "faults.yaml:"),
    ],
)
async def test_a_mistake_in_the_file_of_faults_is_one_line(
    plane: TestPlane, tmp_path: Path, text: str, why: str
) -> None:
    file = tmp_path / "faults.yaml"
    file.write_text(text)
    await asyncio.to_thread(plane.write_certificates)
    async with plane.etcd(), plane.server(f"--faults={file}") as server:
        ended = await server.ended()
    assert (ended.code, ended.errors.count("\n")) == (1, 1)
    assert ended.errors.startswith("Error: --faults: ")
    assert why in ended.errors


async def test_a_role_is_proved_by_the_permissions_that_a_user_used(plane: TestPlane, tmp_path: Path) -> None:
    recording, file = tmp_path / "access.jsonl", tmp_path / "role.yaml"
    async with plane.running(environment=flags(f"--record-access={recording}")):
        async with Client(plane.config("admin", MASTERS)) as admin:
            await bind(admin, OPERATOR)
        async with Client(plane.config(OPERATOR)) as operator:
            await operator.create(config_map("one"))
            await operator.get(core_v1.ConfigMap, "one", "default")
            with pytest.raises(Forbidden):
                await operator.get(core_v1.Secret, "login", "default")
    file.write_text(role("get", "list", "watch", "create"))
    code, output = await asyncio.to_thread(verify, "--role", file, "--recording", recording)
    assert (code, output) == (1, "missing    get secrets in namespace default: no role grants it\n")
    file.write_text(role("get", "list", "watch", "delete") + "\n---\n" + role("get", resource="secrets"))
    code, output = await asyncio.to_thread(verify, "--role", file, "--recording", recording)
    assert (code, output.splitlines()) == (
        1,
        [
            "missing    create configmaps in namespace default: no role grants it",
            "unused     delete configmaps: ClusterRole manager-role grants it, but no recorded request used it",
        ],
    )
    file.write_text(role("get", "list", "watch", "create") + "\n---\n" + role("get", resource="secrets"))
    code, output = await asyncio.to_thread(verify, "--role", file, "--recording", recording)
    assert (code, output) == (0, f"{OPERATOR}: all 3 rights were used and none is missing\n")


async def test_escalation_by_a_member_of_system_masters_is_not_proved(
    plane: TestPlane, tmp_path: Path
) -> None:
    recording, file = tmp_path / "access.jsonl", tmp_path / "role.yaml"
    async with (
        plane.running(environment=flags(f"--record-access={recording}")),
        Client(plane.config("admin", MASTERS)) as admin,
    ):
        await admin.create(rbac_v1.ClusterRole(metadata=kw.Meta(name="any"), rules=[]))
    rule = {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["clusterroles"], "verbs": ["create"]}
    file.write_text(json.dumps({"kind": "ClusterRole", "metadata": {"name": "m"}, "rules": [rule]}))
    code, output = await asyncio.to_thread(verify, "--role", file, "--recording", recording)
    assert code == 1
    assert output.startswith("unchecked  create clusterroles of rbac.authorization.k8s.io")


async def test_pods_run_as_processes(plane: TestPlane) -> None:
    command = f"{sys.executable} -c pass"
    environment = flags(f"--pods=process '--run=job={command}'")
    async with plane.running(environment=environment), Client(plane.config("admin", MASTERS)) as client:
        container = core_v1.Container(name="job", image="job")
        await client.create(
            core_v1.Pod(
                metadata=kw.Meta(name="job", namespace="default"),
                spec=core_v1.PodSpec(containers=[container], restart_policy="Never"),
            )
        )

        async def succeeded() -> bool:
            return (await client.get(core_v1.Pod, "job", "default")).status.phase == "Succeeded"

        await eventually(succeeded, timeout=SECONDS)


async def test_an_access_file_that_cannot_be_written_is_one_line(plane: TestPlane) -> None:
    await asyncio.to_thread(plane.write_certificates)
    async with plane.etcd(), plane.server("--record-access=/nope/file") as server:
        ended = await server.ended()
    assert (ended.code, ended.errors) == (
        1,
        "Error: --record-access: open /nope/file: no such file or directory\n",
    )
