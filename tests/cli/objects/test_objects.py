"""get, apply and delete, on whichever server the tests run."""

import asyncio
import json
import signal
import sys
from pathlib import Path

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster

CONFIG_MAP = """
apiVersion: v1
kind: ConfigMap
metadata: {name: notes}
data: {a: b}
"""


LAMPS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Lamp, plural: lamps, singular: lamp, listKind: LampList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [watts]
            properties: {watts: {type: integer, minimum: 1}}
---
apiVersion: GROUP/v1
kind: Lamp
metadata: {name: desk}
spec: {watts: 5}
"""


async def command(cluster: Cluster, *arguments: str) -> int:
    def run() -> int:
        with pytest.raises(SystemExit) as ended:
            main([*arguments, "--kubeconfig", str(cluster.kubeconfig), "-n", cluster.namespace])
        return int(ended.value.code or 0)

    # A command has an event loop of its own, so it needs a thread of its own.
    return await asyncio.to_thread(run)


async def test_objects_are_applied_shown_and_deleted(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(CONFIG_MAP)
    assert await command(cluster, "apply", "-f", str(path)) == 0
    assert capsys.readouterr().out == "configmap/notes serverside-applied\n"
    assert await command(cluster, "get", "cm", "notes") == 0
    assert capsys.readouterr().out.split()[:5] == ["NAME", "DATA", "AGE", "notes", "1"]
    assert await command(cluster, "get", "configmaps", "notes", "-o", "yaml") == 0
    assert "a: b" in capsys.readouterr().out
    assert await command(cluster, "delete", "configmap", "notes") == 0
    assert capsys.readouterr().out == "configmap/notes deleted\n"
    assert await command(cluster, "get", "cm", "notes") == 1
    assert 'configmaps "notes" not found' in capsys.readouterr().err


async def test_a_dry_run_shows_that_a_secret_would_change_and_hides_its_values(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "secret.yaml"
    secret = (
        "apiVersion: v1\nkind: Secret\nmetadata: {name: login}\nstringData: {user: admin, password: %s}\n"
    )
    path.write_text(secret % "hunter2")
    assert await command(cluster, "apply", "-f", str(path)) == 0
    path.write_text(secret % "letme1n")
    capsys.readouterr()
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 0
    shown = capsys.readouterr().out
    assert "-  password: '*** (before)'" in shown
    assert "+  password: '*** (after)'" in shown
    assert "   user: '***'" in shown
    for value in ("hunter2", "letme1n", "aHVudGVyMg", "bGV0bWUxbg"):
        assert value not in shown
    assert await command(cluster, "apply", "-f", str(path)) == 0
    capsys.readouterr()
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 0
    assert capsys.readouterr().out.endswith("nothing would change\n")


async def test_several_objects_are_found_by_name_and_by_label(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    second = CONFIG_MAP.replace("{name: notes}", "{name: more, labels: {colour: red}}")
    path.write_text(f"{CONFIG_MAP}---{second}")
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 0
    assert "+  name: more" in capsys.readouterr().out
    assert await command(cluster, "apply", "-f", str(path)) == 0
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 0
    assert capsys.readouterr().out.endswith("nothing would change\n")
    assert await command(cluster, "get", "cm", "-l", "colour=red", "-o", "name") == 0
    assert capsys.readouterr().out == "configmap/more\n"
    assert await command(cluster, "get", "cm/notes", "cm/more") == 0
    assert len(capsys.readouterr().out.splitlines()) == 3
    assert await command(cluster, "get", "cm/notes", "more") == 2
    assert "'more' is not KIND/NAME" in capsys.readouterr().err
    assert await command(cluster, "get", "cm", "notes", "-l", "a=b") == 2
    assert await command(cluster, "delete", "-f", str(path)) == 0
    assert "configmap/more deleted\nconfigmap/notes deleted\n" in capsys.readouterr().out
    assert await command(cluster, "delete", "cm/notes", "--ignore-not-found") == 0
    assert await command(cluster, "delete", "cm") == 2
    assert await command(cluster, "delete") == 2
    assert await command(cluster, "get") == 2


async def test_a_refused_object_does_not_stop_the_others(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    unknown = CONFIG_MAP.replace("kind: ConfigMap", "kind: Nothing")
    wrong = CONFIG_MAP.replace("{name: notes}", "{name: Bad_Name}")
    path.write_text(f"{unknown}---{wrong}---{CONFIG_MAP}")
    for arguments, done in (
        (["--dry-run=server"], "+  name: notes"),
        ([], "configmap/notes serverside-applied"),
    ):
        assert await command(cluster, "apply", "-f", str(path), *arguments) == 1
        said = capsys.readouterr()
        assert done in said.out
        first, second = said.err.splitlines()
        assert "Nothing" in first
        assert "Bad_Name" in second
    assert await command(cluster, "get", "cm", "missing", "notes", "-o", "name") == 1
    said = capsys.readouterr()
    assert said.out == "configmap/notes\n"
    assert 'configmaps "missing" not found' in said.err
    assert await command(cluster, "delete", "cm", "missing", "notes") == 1
    said = capsys.readouterr()
    assert said.out == "configmap/notes deleted\n"
    assert 'configmaps "missing" not found' in said.err


async def test_several_kinds_are_shown_one_below_the_other(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(CONFIG_MAP)
    assert await command(cluster, "apply", "-f", str(path)) == 0
    capsys.readouterr()
    await cluster.eventually(core_v1.ServiceAccount, "default")
    assert await command(cluster, "get", "cm,serviceaccounts,leases") == 0
    first, second = capsys.readouterr().out.split("\n\n")
    assert first.startswith("NAME")
    assert "configmap/notes" in first
    assert "serviceaccount/default" in second
    assert await command(cluster, "get", "cm,leases", "-o", "name") == 0
    assert "configmap/notes\n" in capsys.readouterr().out
    assert await command(cluster, "get", "cm/notes", "sa/default", "-o", "json") == 0
    found = json.loads(capsys.readouterr().out)
    assert [item["kind"] for item in found["items"]] == ["ConfigMap", "ServiceAccount"]
    assert await command(cluster, "get", "leases") == 0
    assert capsys.readouterr() == ("", "No resources found\n")


async def test_a_category_lists_its_kinds(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    ports = [core_v1.ServicePort(port=80)]
    await cluster.create(core_v1.Service(Meta("web"), spec=core_v1.ServiceSpec(ports=ports)))
    spec = core_v1.PodSpec(containers=[core_v1.Container(name="main", image="x")])
    await cluster.create(core_v1.Pod(Meta("web"), spec=spec))
    assert await command(cluster, "get", "all", "-o", "name") == 0
    assert capsys.readouterr().out == "pod/web\nservice/web\n"
    assert await command(cluster, "get", "all") == 0
    assert [part.splitlines()[1].split()[0] for part in capsys.readouterr().out.split("\n\n")] == [
        "pod/web",
        "service/web",
    ]
    assert await command(cluster, "delete", "pod/web", "svc/web", "--no-wait") == 0
    assert capsys.readouterr().out == "pod/web deleted\nservice/web deleted\n"


@pytest.mark.parametrize("option", ["--dry-run", "--dry-run=client"])
async def test_a_client_dry_run_prints_the_objects_and_sends_no_request(
    option: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(CONFIG_MAP)
    arguments = ["apply", "-f", str(path), option, "--kubeconfig", str(tmp_path / "none")]
    assert await asyncio.to_thread(exit_code, *arguments) == 0
    assert capsys.readouterr().out == "configmap/notes serverside-applied (dry run)\n"


async def test_a_server_dry_run_needs_a_server_and_other_values_are_usage_errors(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(CONFIG_MAP)
    arguments = ["apply", "-f", str(path), "--kubeconfig", str(tmp_path / "none")]
    assert await asyncio.to_thread(exit_code, *arguments, "--dry-run=server") == 1
    assert await asyncio.to_thread(exit_code, *arguments, "--dry-run=maybe") == 2
    assert await asyncio.to_thread(exit_code, *arguments, "--dry-run", "server") == 2
    assert "'server'" in capsys.readouterr().err


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.mark.parametrize(
    ("option", "printed"),
    [
        ("--dry-run", "configmap/notes deleted (dry run)\n"),
        ("--dry-run=client", "configmap/notes deleted (dry run)\n"),
        ("--dry-run=server", "configmap/notes deleted (server dry run)\n"),
    ],
)
async def test_a_dry_run_of_delete_deletes_nothing(
    option: str, printed: str, cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.create(core_v1.ConfigMap(Meta("notes"), data={"a": "b"}))
    assert await command(cluster, "delete", "cm", "notes", option) == 0
    assert capsys.readouterr().out == printed
    assert (await cluster.get(core_v1.ConfigMap, "notes")).data == {"a": "b"}


async def test_a_dry_run_of_delete_reports_a_missing_object_only_on_the_server(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.yaml"
    path.write_text(CONFIG_MAP)
    assert await command(cluster, "delete", "-f", str(path), "--dry-run=client") == 0
    assert capsys.readouterr().out == "configmap/notes deleted (dry run)\n"
    assert await command(cluster, "delete", "-f", str(path), "--dry-run=server") == 1
    assert 'configmaps "notes" not found' in capsys.readouterr().err
    assert await command(cluster, "delete", "-f", str(path), "--dry-run=server", "--ignore-not-found") == 0
    assert capsys.readouterr().out == ""


async def test_a_watch_shows_each_change_until_it_is_interrupted(cluster: Cluster) -> None:
    made = await cluster.create(core_v1.ConfigMap(Meta("notes"), data={"a": "b"}))
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", "from kubewright.cli import main; main()"),
        *("get", "cm", "notes", "-w", "-n", cluster.namespace, "--kubeconfig", str(cluster.kubeconfig)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(60):
            assert (await process.stdout.readline()).split() == [b"NAME", b"DATA", b"AGE"]
            assert (await process.stdout.readline()).split()[:2] == [b"notes", b"1"]
            await cluster.client.patch(made, {"data": {"c": "d"}})
            assert (await process.stdout.readline()).split()[:2] == [b"notes", b"2"]
            await cluster.client.delete(made)
            assert (await process.stdout.readline()).split()[:2] == [b"notes", b"2"]
            process.send_signal(signal.SIGTERM)
            assert await process.communicate() == (b"", b"")
            assert process.returncode == 0
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()


async def test_a_watch_of_several_kinds_is_wrong_usage(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (["cm,leases"], ["all"], ["cm", "a", "b"], ["cm/a", "sa/b"]):
        assert await command(cluster, "get", *words, "-w") == 2
        assert "--watch takes one KIND" in capsys.readouterr().err


async def test_an_object_without_a_name_is_an_error(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "nameless.yaml"
    path.write_text("{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: Pod, metadata: {}}]}")
    assert await command(cluster, "apply", "-f", str(path)) == 1
    assert "contains a Pod without metadata.name" in capsys.readouterr().err


async def test_an_unknown_kind_is_an_error(cluster: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert await command(cluster, "get", "nosuch") == 1
    assert capsys.readouterr().err == 'Error: the server doesn\'t have a resource type "nosuch"\n'


async def test_a_file_without_objects_is_an_error(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "list.yaml"
    path.write_text("- 1\n")
    assert await command(cluster, "apply", "-f", str(path)) == 1
    assert "contains a document without apiVersion and kind" in capsys.readouterr().err


async def test_a_dry_run_validates_objects_by_the_crds_in_the_same_documents(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    group = f"{cluster.namespace}.example.com"
    path = tmp_path / "lamps.yaml"
    await asyncio.to_thread(path.write_text, LAMPS.replace("GROUP", group))
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 0
    said = capsys.readouterr()
    assert "+  watts: 5" in said.out
    assert said.err == f"note: lamp.{group}/desk was validated only against its CRD in the files\n"

    wrong = LAMPS.replace("GROUP", group).replace("watts: 5", "watts: 0, colour: red")
    await asyncio.to_thread(path.write_text, wrong)
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 1
    assert capsys.readouterr().err == (
        f'Error: lamp.{group}/desk is invalid: unknown field "spec.colour"; '
        "spec.watts: Invalid value: 0: spec.watts in body should be greater than or equal to 1\n"
    )
    assert await command(cluster, "get", "crd", f"lamps.{group}") == 1


async def test_a_dry_run_leaves_invalid_definitions_to_the_server(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "lamps.yaml"
    broken = LAMPS.replace("GROUP", "x.example.com").replace("  - name: v1", "  - names: v1")
    await asyncio.to_thread(path.write_text, broken)
    assert await command(cluster, "apply", "-f", str(path), "--dry-run=server") == 1
    assert capsys.readouterr().err.startswith("Error: ")


TASKS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: tasks.GROUP}
spec:
  group: GROUP
  scope: Namespaced
  names: {kind: Task, plural: tasks, singular: task, listKind: TaskList}
  versions:
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns:
    - {name: Size, type: integer, jsonPath: .spec.size}
    - {name: Note, type: string, jsonPath: .spec.note}
    - {name: Done, type: boolean, jsonPath: .spec.done}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties: {size: {type: integer}, note: {type: string}, done: {type: boolean}}
---
apiVersion: GROUP/v1
kind: Task
metadata: {name: absent}
spec: {done: true}
---
apiVersion: GROUP/v1
kind: Task
metadata: {name: lines}
spec: {size: 0, note: "first\\nsecond", done: false}
---
apiVersion: GROUP/v1
kind: Task
metadata: {name: red}
spec: {note: "\\e[31mred"}
"""


async def test_cells_are_printed_as_kubectl_does(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A missing value is an empty cell, only the first line of a text is shown, and escapes are made visible."""
    path, group = tmp_path / "tasks.yaml", f"{cluster.namespace}.example.com"
    await asyncio.to_thread(path.write_text, TASKS.replace("GROUP", group))
    assert await command(cluster, "apply", "-f", str(path)) == 0
    capsys.readouterr()
    assert await command(cluster, "get", f"tasks.{group}") == 0
    assert capsys.readouterr().out.splitlines() == [
        "NAME     SIZE   NOTE        DONE",
        "absent                      true",
        "lines    0      first...    false",
        "red             ^[[31mred",
    ]
