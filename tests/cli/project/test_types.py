"""`kubewright create types`: modules appear in the project, are checked in CI, and nothing is lost."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from kubewright.cli.app import main
from kubewright.testing import Cluster

CRDS = Path(__file__).parents[2] / "scaffold" / "external" / "crds"
CERTIFICATES = CRDS / "certificates.cert-manager.io.json"
ISSUERS = CRDS / "issuers.cert-manager.io.json"


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert exit_code("init", "toyshop", "--domain", "example.com") == 0
    monkeypatch.chdir(tmp_path / "toyshop")
    return tmp_path / "toyshop"


def test_modules_are_written_to_the_project(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert exit_code("create", "types", "-f", str(CERTIFICATES), "-f", str(ISSUERS)) == 0
    assert capsys.readouterr().out == "wrote toyshop/types: cert_manager_v1.py\n"
    text = (shop / "toyshop" / "types" / "cert_manager_v1.py").read_text()
    assert "class Certificate(" in text
    assert (shop / "toyshop" / "types" / "__init__.py").exists()
    assert exit_code("create", "types", "-f", str(CERTIFICATES), "-f", str(ISSUERS), "--check") == 0


def test_a_directory_may_hold_other_objects(shop: Path, tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    (folder / "crd.json").write_text(CERTIFICATES.read_text())
    (folder / "more.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: cert-manager}\n")
    assert exit_code("create", "types", "-f", str(folder), "--output-dir", "toyshop/other") == 0
    assert (shop / "toyshop" / "other" / "cert_manager_v1.py").exists()


def test_the_check_lists_what_differs(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = ("create", "types", "-f", str(CERTIFICATES))
    assert exit_code(*command, "--check") == 1
    assert capsys.readouterr().out.endswith(
        "missing: toyshop/types/__init__.py\nmissing: toyshop/types/cert_manager_v1.py\n"
    )
    assert not (shop / "toyshop" / "types").exists()
    assert exit_code(*command) == 0
    path = shop / "toyshop" / "types" / "cert_manager_v1.py"
    before = path.read_text()
    path.write_text(before.replace("secret_name: str\n", "secret_name: int\n"))
    capsys.readouterr()
    assert exit_code(*command, "--check") == 1
    said = capsys.readouterr()
    assert said.out == "stale: toyshop/types/cert_manager_v1.py: changed: CertificateSpec\n"
    assert said.err == (
        "Error: toyshop/types does not match the CRDs: run the same command without --check\n"
    )
    assert exit_code(*command) == 0
    assert path.read_text() == before


def test_a_changed_crd_is_named_by_class(
    shop: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    definition: Any = json.loads(CERTIFICATES.read_text())
    assert exit_code("create", "types", "-f", str(CERTIFICATES)) == 0
    spec = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]
    spec["properties"]["quality"] = {"type": "object", "properties": {"bits": {"type": "integer"}}}
    (tmp_path / "newer.json").write_text(json.dumps(definition))
    capsys.readouterr()
    assert exit_code("create", "types", "-f", str(tmp_path / "newer.json"), "--check") == 1
    assert capsys.readouterr().out == (
        "stale: toyshop/types/cert_manager_v1.py: added: Quality; changed: CertificateSpec\n"
    )


def test_kinds_are_never_dropped_from_a_module(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "types", "-f", str(CERTIFICATES), "-f", str(ISSUERS)) == 0
    path = shop / "toyshop" / "types" / "cert_manager_v1.py"
    before = path.read_text()
    assert exit_code("create", "types", "-f", str(ISSUERS)) == 1
    assert "also contains Certificate, missing from the given CRDs" in capsys.readouterr().err
    assert path.read_text() == before


def test_files_that_were_not_generated_stay(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = shop / "toyshop" / "types"
    folder.mkdir()
    (folder / "__init__.py").write_text("mine = 1\n")
    assert exit_code("create", "types", "-f", str(CERTIFICATES)) == 0
    assert (folder / "__init__.py").read_text() == "mine = 1\n"
    (folder / "cert_manager_v1.py").write_text("mine = 1\n")
    assert exit_code("create", "types", "-f", str(CERTIFICATES)) == 1
    assert "was not written by kubewright" in capsys.readouterr().err
    assert (folder / "cert_manager_v1.py").read_text() == "mine = 1\n"


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "specify CRDs: -f FILE, or their names in the cluster"),
        (["-f", "nothing.yaml"], 1, "cannot read nothing.yaml"),
        (["-f", "pyproject.toml"], 1, "pyproject.toml is not valid YAML"),
        (["-f", "namespace.yaml"], 1, "no CRDs with served versions found in namespace.yaml"),
    ],
)
def test_mistakes_are_one_line(
    arguments: list[str], code: int, message: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "namespace.yaml").write_text("apiVersion: v1\nkind: Namespace\nmetadata: {name: x}\n")
    assert exit_code("create", "types", *arguments) == code
    assert message in capsys.readouterr().err
    assert not (shop / "toyshop" / "types").exists()


def test_the_directory_must_be_given_outside_a_project(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("create", "types", "-f", str(CERTIFICATES)) == 2
    assert "--output-dir is required outside a project" in capsys.readouterr().err
    assert exit_code("create", "types", "-f", str(CERTIFICATES), "--output-dir", "kinds") == 0
    assert (tmp_path / "kinds" / "cert_manager_v1.py").exists()


async def test_crds_are_read_from_the_cluster(cluster: Cluster, tmp_path: Path) -> None:
    await cluster.install(CERTIFICATES)
    command = [
        sys.executable,
        "-c",
        "from kubewright.cli import main; main()",
        "create",
        "types",
        "--output-dir",
        str(tmp_path / "k"),
    ]
    command += ["--kubeconfig", str(cluster.kubeconfig)]
    process = await _run([*command, "certificates.cert-manager.io"])
    assert process == (0, f"wrote {tmp_path / 'k'}: cert_manager_v1.py\n", "")
    assert await _run([*command, "certificates.cert-manager.io", "--check"]) == (0, "", "")
    code, _, said = await _run([*command, "nothing.example.com"])
    assert code == 1
    assert "CustomResourceDefinition nothing.example.com not found in the cluster" in said


async def _run(command: list[str]) -> tuple[int, str, str]:
    process = await asyncio.create_subprocess_exec(
        *command, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    out, err = await process.communicate()
    return process.returncode or 0, out.decode(), err.decode()
