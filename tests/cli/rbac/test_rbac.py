"""rbac verify; the tests it runs are a project's own, on the server that these tests run on."""

import json
from pathlib import Path

import msgspec
import pytest

from kubewright.api import Right, rights_of
from kubewright.cli.app import main
from kubewright.cli.target import load_operator
from kubewright.client.recording import VARIABLE, Recorded, RecordedAccess
from kubewright.controller import rules_for

OPERATOR = '''
import kubewright as kw
from kubewright.api.builtin import core_v1

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Crate(kw.Resource[Spec, Status], group="rbac.example.com", version="v1"):
    """A crate."""

@kw.controller(Crate, owns=[core_v1.ConfigMap], needs=[kw.needs(core_v1.Secret, "get", "delete")])
async def crates(crate: Crate, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(crate.metadata.name)))
    await ctx.patch_status(crate, Status(ready=1))

operator = kw.Operator(crates, name="crates")
'''
TEST = """
import kubewright as kw
from kubewright.testing import Cluster
from crates import Crate, Spec, operator

async def test_is_ready(cluster: Cluster) -> None:
    async with cluster.running(operator):
        await cluster.create(Crate(kw.Meta("a"), spec=Spec()))
        await cluster.eventually(Crate, "a", lambda crate: crate.status.ready == 1)
"""
PYPROJECT = '[tool.pytest.ini_options]\nasyncio_mode = "auto"\npythonpath = ["."]\n'
ALL = [
    RecordedAccess("watch", "rbac.example.com", "crates"),
    RecordedAccess("patch", "rbac.example.com", "crates/status"),
    RecordedAccess("watch", "", "configmaps"),
    RecordedAccess("patch", "", "configmaps"),
    RecordedAccess("create", "", "configmaps"),
    RecordedAccess("get", "", "secrets"),
    RecordedAccess("delete", "", "secrets"),
]


def verify(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["rbac", "verify", *arguments])
    return int(ended.value.code or 0)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "crates.py").write_text(OPERATOR)
    (tmp_path / "tests").mkdir()
    (tmp_path / "pyproject.toml").write_text(PYPROJECT)
    return tmp_path


def recorded(folder: Path, *accesses: RecordedAccess, operator: str = "crates") -> str:
    path = folder / "accesses.jsonl"
    path.write_bytes(msgspec.json.encode(Recorded(operator, list(accesses))))
    return str(path)


def test_rbac_verify_runs_the_tests_of_the_operator(
    project: Path, server_name: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    (project / "tests" / "test_crates.py").write_text(TEST)
    assert verify("crates.py", "-o", "json", "--server", server_name) == 1
    captured = capfd.readouterr()
    assert "1 passed" in captured.err
    verdict = json.loads(captured.out)
    assert not verdict["denied"]
    assert [(right["verb"], right["resource"]) for right in verdict["unused"]] == [
        ("delete", "secrets"),
        ("read", "secrets"),
    ]
    assert "remove it from needs=[...] of controller 'crate'" in verdict["unused"][0]["remedy"]


def test_rules_that_are_all_used_pass(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify("crates.py", "--recording", recorded(project, *ALL)) == 0
    # Each verb on each resource is one right, as in the rules themselves and in `kubewright doctor`.
    rights = rights_of(rules_for(load_operator(str(project / "crates.py"))))
    assert Right("events.k8s.io", "events", "create") in rights
    assert capsys.readouterr().out == f"crates: all {len(rights)} rights were used and none is missing\n"


def test_a_child_that_is_only_created_is_reported_with_the_declaration_for_that(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    created = [access for access in ALL if (access.verb, access.resource) != ("patch", "configmaps")]
    assert verify("crates.py", "--recording", recorded(project, *created)) == 1
    assert capsys.readouterr().out == (
        "unused  patch configmaps: no test makes controller 'crate' apply or patch a ConfigMap: add one, or declare "
        'owns=[kw.owned(ConfigMap, verbs=["create"])] if it only creates them\n'
    )


def test_reports_denied_requests_unless_the_rules_allow_them(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    denied = [
        RecordedAccess("list", "", "pods", "x", "", denied=True),
        RecordedAccess("create", "", "configmaps", "x", "a", denied=True),
    ]
    assert verify("crates.py", "--recording", recorded(project, *ALL, *denied)) == 1
    assert capsys.readouterr().out == "denied  list pods: add it to needs=[kw.needs(...)]\n"


def test_a_recording_of_another_operator_does_not_count(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify("crates.py", "--recording", recorded(project, *ALL, operator="other")) == 1
    assert "no recorded requests of operator 'crates'" in capsys.readouterr().err


def test_a_file_that_is_not_a_recording_is_an_error(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "x").write_text("nonsense\n")
    assert verify("crates.py", "--recording", "x") == 1
    assert "x is not a recording" in capsys.readouterr().err


def test_a_target_without_tests_is_an_error(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "tests").rmdir()
    assert verify("crates.py") == 1
    assert "no tests found next to crates.py" in capsys.readouterr().err
