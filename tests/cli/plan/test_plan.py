"""plan, on whichever server the tests run: nothing is ever written there."""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from kubewright.api import Kind, Meta, NotFound
from kubewright.api.builtin import core_v1, rbac_v1
from kubewright.cli.app import main
from kubewright.testing import Cluster

OPERATOR = '''
from contextlib import asynccontextmanager
import kubewright as kw
from kubewright.api.builtin import core_v1

class Spec(kw.Model):
    words: list[str] = []

class Status(kw.Model):
    count: int = 0

class Note(kw.Resource[Spec, Status], group="{group}", version="v1"):
    """Words, each in a ConfigMap of its own."""

@kw.controller(Note, owns=[core_v1.ConfigMap], needs=[kw.needs(core_v1.ConfigMap, "delete")])
async def notes(note: Note, ctx: kw.Context) -> None:
    if "bad" in note.spec.words:
        raise ValueError("a bad word")
    for word in note.spec.words:
        name = note.metadata.name + "-" + word
        await ctx.apply(core_v1.ConfigMap(kw.Meta(name), data={{"word": word}}))
    for found in await ctx.list(core_v1.ConfigMap, namespace=note.metadata.namespace):
        if found.data.get("word", note.spec.words[0]) not in note.spec.words:
            await ctx.delete(found)
    await ctx.patch_status(note, Status(count=len(note.spec.words)))

{more}
@asynccontextmanager
async def outside():
    raise AssertionError("the outside world was touched")
    yield

@asynccontextmanager
async def simulated():
    yield

operator = kw.Operator(notes, name="notes"{arguments})
'''


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


class Desk:
    """A test's operator, its notes, and the command."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.group = f"{cluster.namespace}.example.com"
        self.kind = Kind(group=self.group, version="v1", kind="Note", plural="notes", status=True)

    def target(self, arguments: str = "", more: str = "") -> str:
        path = self.folder / "notes_operator.py"
        path.write_text(OPERATOR.format(group=self.group, arguments=arguments, more=more))
        return str(path)

    def note(self, *words: str) -> dict[str, Any]:
        metadata = {"name": "list", "namespace": self.cluster.namespace}
        return {
            "apiVersion": f"{self.group}/v1",
            "kind": "Note",
            "metadata": metadata,
            "spec": {"words": [*words]},
        }

    async def plan(self, target: str, *arguments: str, words: tuple[str, ...] = ()) -> int:
        change = self.folder / "change.yaml"
        change.write_text(json.dumps(self.note(*words)))
        where = ("--kubeconfig", str(self.cluster.kubeconfig), "-n", self.cluster.namespace)
        what = ("-f", str(change)) if words else ()
        return await asyncio.to_thread(run, "plan", target, *what, *where, *arguments)

    async def install(self, target: str, *words: str) -> None:
        """Have the operator do its work in the cluster once."""
        where = ("--kubeconfig", str(self.cluster.kubeconfig))
        assert await asyncio.to_thread(run, "install", target, *where) == 0
        module = sys.modules["notes_operator"]
        async with self.cluster.running(module.operator):
            await self.cluster.client.create(self.note(*words), kind=self.kind)
            await self.cluster.eventually(
                self.kind, "list", lambda note: note.get("status", {}).get("count") == len(words)
            )


@pytest.fixture
def desk(cluster: Cluster, tmp_path: Path) -> Desk:
    return Desk(cluster, tmp_path)


async def test_a_change_is_planned_and_nothing_is_written(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    target = desk.target()
    await desk.install(target, "red", "green")
    capsys.readouterr()
    assert await desk.plan(target, "-o", "json", words=("green", "blue")) == 3
    found = json.loads(capsys.readouterr().out)
    assert found["pending"] == []
    assert [(change["action"], change["object"]) for change in found["changes"]] == [
        ("create", "configmap/list-blue"),
        ("delete", "configmap/list-red"),
        ("change", f"note.{desk.group}/list"),
    ]
    live = await desk.cluster.client.get(desk.kind, "list", desk.cluster.namespace)
    assert live["spec"]["words"] == ["red", "green"]
    await desk.cluster.get(core_v1.ConfigMap, "list-red")
    with pytest.raises(NotFound):
        await desk.cluster.get(core_v1.ConfigMap, "list-blue")

    assert await desk.plan(target, words=("red", "green")) == 0
    assert (
        capsys.readouterr().out
        == "plan: 0 to create, 0 to change, 0 to delete; nothing was written to the cluster\n"
    )

    assert await desk.plan(target, "--delete", f"notes.{desk.group}/list", "-o", "json") == 3
    found = json.loads(capsys.readouterr().out)
    assert [(change["action"], change["object"]) for change in found["changes"]] == [
        ("delete", "configmap/list-green"),
        ("delete", "configmap/list-red"),
        ("delete", f"note.{desk.group}/list"),
    ]


async def test_changes_that_are_pending_anyway_are_listed_separately(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    target = desk.target()
    await desk.install(target, "red", "green")
    await desk.cluster.client.delete(core_v1.ConfigMap, "list-red", desk.cluster.namespace)
    capsys.readouterr()
    assert await desk.plan(target, words=("red", "green", "blue")) == 3
    shown = capsys.readouterr().out
    anyway, _, change = shown.partition("# changes caused by the change")
    assert "+  word: red" in anyway
    assert "+  word: blue" in change
    assert "+  word: red" not in change
    assert shown.endswith(
        "without the change: 1 to create, 0 to change, 0 to delete\n"
        "plan: 1 to create, 1 to change, 0 to delete; nothing was written to the cluster\n"
    )


async def test_an_upgrade_is_planned_without_a_change(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = desk.target()
    await desk.install(target, "red", "green")
    capsys.readouterr()
    assert await desk.plan(target) == 0
    assert capsys.readouterr().out.endswith(
        "plan: 0 to create, 0 to change, 0 to delete; nothing was written to the cluster\n"
    )
    sys.modules.pop("notes_operator")
    upgraded = (
        Path(target).read_text().replace('data={"word": word}', 'data={"word": word, "language": "en"}')
    )
    Path(target).write_text(upgraded)
    assert await desk.plan(target) == 3
    shown = capsys.readouterr().out
    assert shown.count("+  language: en") == 2
    assert shown.endswith("plan: 0 to create, 2 to change, 0 to delete; nothing was written to the cluster\n")
    assert await desk.plan(target, "-o", "json") == 3
    found = json.loads(capsys.readouterr().out)
    assert found["counts"]["pending"] == {"create": 0, "change": 2, "delete": 0, "restart": 0}
    assert await desk.plan(target, "-o", "markdown") == 3
    shown = capsys.readouterr().out
    assert "| the objects in the cluster | 0 | 2 | 0 | 0 |" in shown
    assert "+  language: en" in shown


async def test_a_deployment_of_a_version_that_changes_too_much_is_refused(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    target = desk.target()
    await desk.install(target, "red", "green")
    sys.modules.pop("notes_operator")
    Path(target).write_text(Path(target).read_text().replace('"word": word}', '"word": word, "n": "1"}'))
    capsys.readouterr()
    where = ("--kubeconfig", str(desk.cluster.kubeconfig), "-n", desk.cluster.namespace)
    deploy = ("deploy", target, "--image", "example.com/notes:2", *where, "--plan", "1")
    assert await asyncio.to_thread(run, *deploy) == 1
    assert (
        "this version would change 2 objects (0 to create, 2 to change, 0 to delete), more than --plan 1"
        in capsys.readouterr().err
    )
    with pytest.raises(NotFound):
        await desk.cluster.client.get(core_v1.Namespace, "notes-system")


async def test_a_kind_need_not_be_installed_and_a_failure_is_reported(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await desk.plan(desk.target(), words=("bad",)) == 1
    captured = capsys.readouterr()
    assert re.search(
        r"^failed: .*notes_operator\.py:\d+: ValueError: a bad word$", captured.err, re.MULTILINE
    )
    assert f"+apiVersion: {desk.group}/v1" in captured.out


async def test_a_plan_does_not_change_external_systems(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    target = desk.target(", lifespan=outside")
    assert await desk.plan(target, words=("red",)) == 1
    assert "pass Operator(..., planning=...)" in capsys.readouterr().err
    sys.modules.pop("notes_operator")
    target = desk.target(", lifespan=outside, planning=simulated")
    assert await desk.plan(target, words=("red",)) == 3
    assert "configmap/list-red" in capsys.readouterr().out


FINALIZER = """
from contextlib import nullcontext

@notes.finalizer("example.com/notes")
async def forget(note: Note, ctx: kw.Context) -> None:
    print("the finalizer ran")
"""
THREAD = """
def put_account() -> None:
    print("the function ran")

@kw.controller(Note, name="accounts")
async def accounts(note: Note, ctx: kw.Context) -> None:
    await ctx.run_sync(put_account)
"""


async def test_a_finalizer_needs_a_statement_that_plan_may_run_it(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await desk.plan(desk.target("", FINALIZER), words=("red",)) == 1
    shown = capsys.readouterr()
    assert "controller 'note' has a finalizer, so it may change an external system" in shown.err
    assert "Operator(..., planning=contextlib.nullcontext)" in shown.err
    assert "the finalizer ran" not in shown.out

    sys.modules.pop("notes_operator")
    target = desk.target(", planning=nullcontext", FINALIZER)
    await desk.install(target, "red")
    assert await desk.plan(target, "--delete", f"notes.{desk.group}/list") == 3
    shown = capsys.readouterr().out
    assert "the finalizer ran" in shown
    assert shown.endswith("nothing was written to the cluster\n")


async def test_a_function_that_really_runs_in_a_thread_is_reported_once(
    desk: Desk, capsys: pytest.CaptureFixture[str]
) -> None:
    warning = (
        "warning: controller 'accounts' calls put_account with ctx.run_sync: without Operator(..., planning=...), "
        "plan carries out calls to other systems"
    )
    target = desk.target(")\noperator = kw.Operator(accounts, notes", THREAD)
    assert await desk.plan(target, words=("red", "green")) == 3
    shown = capsys.readouterr()
    assert shown.out.count("the function ran") > 1
    assert shown.err.count(warning) == 1

    sys.modules.pop("notes_operator")
    target = desk.target(")\noperator = kw.Operator(accounts, notes, planning=simulated", THREAD)
    assert await desk.plan(target, words=("red",)) == 3
    assert warning not in capsys.readouterr().err


async def test_a_user_of_one_namespace_may_plan_there_and_nowhere_else(
    desk: Desk, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cluster, target = desk.cluster, desk.target()
    await cluster.create(core_v1.ServiceAccount(Meta("planner")))
    read = ["get", "list", "watch"]
    rules = [
        rbac_v1.PolicyRule(api_groups=[group], resources=[resource], verbs=read)
        for group, resource in ((desk.group, "notes"), ("", "configmaps"))
    ]
    await cluster.create(rbac_v1.Role(Meta("planner"), rules=rules))
    subject = rbac_v1.Subject(kind="ServiceAccount", name="planner", namespace=cluster.namespace)
    role = rbac_v1.RoleRef(api_group="rbac.authorization.k8s.io", kind="Role", name="planner")
    await cluster.create(rbac_v1.RoleBinding(Meta("planner"), role_ref=role, subjects=[subject]))
    token = await cluster.client.token_request("planner", cluster.namespace)
    document = yaml.safe_load(cluster.kubeconfig.read_text())
    document["users"] = [{**document["users"][0], "user": {"token": token.token}}]
    kubeconfig = tmp_path / "planner"
    kubeconfig.write_text(yaml.safe_dump(document))
    where = ("--kubeconfig", str(kubeconfig))
    assert await desk.plan(target, *where, words=("red",)) == 3
    assert "configmap/list-red" in capsys.readouterr().out
    change = ("-f", str(tmp_path / "change.yaml"))
    assert await asyncio.to_thread(run, "plan", target, *change, *where) == 1
    assert "missing rule" in capsys.readouterr().err
