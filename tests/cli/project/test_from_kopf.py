"""`kubewright create from-kopf`: what it refuses, in one line and without writing anything."""

from pathlib import Path

import pytest

from kubewright.cli.app import main

HANDLER = """import kopf


@kopf.on.create("example.com", "v1", "lamps")
def lit(patch, **_):
    patch.status["on"] = True
"""
CRD = """apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec: {type: object, properties: {colour: {type: string}}}
          status: {type: object, properties: {on: {type: boolean}}}
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lamps.py").write_text(HANDLER)
    (tmp_path / "lamps.yaml").write_text(CRD)
    return tmp_path


def ended(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[object, str]:
    """Run the command; return its exit code and what it wrote to standard error."""
    with pytest.raises(SystemExit) as ended:
        main(["create", "from-kopf", *arguments])
    return ended.value.code, capsys.readouterr().err


def refused(capsys: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> str:
    """Run the command, which must fail with one line and write nothing; return the line."""
    before = sorted(folder.rglob("*"))
    code, shown = ended(capsys, *arguments)
    assert code in (1, 2)
    assert sorted(folder.rglob("*")) == before
    lines = [line for line in shown.splitlines() if not line.startswith(("Usage:", "Try ", "using "))]
    assert len([line for line in lines if line.strip()]) == 1, shown
    return lines[-1]


def test_writes_a_project_with_the_crds_beside_the_file(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, shown = ended(capsys, "lamps.py")
    assert code == 0
    assert "using the CRDs of lamps.yaml" in shown
    made = folder / "lamps-operator"
    assert (made / "crds" / "lamps.example.com.yaml").is_file()
    assert "class Lamp(" in (made / "lamps_operator" / "kinds" / "example_v1.py").read_text()
    assert "@kw.controller(Lamp, when=ESSENCE)" in (made / "lamps_operator" / "controllers.py").read_text()


def test_takes_the_crds_that_are_passed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lamps.yaml").rename(folder / "crds.txt")
    assert ended(capsys, "lamps.py", "-f", "crds.txt", "--output-dir", "out/lights")[0] == 0
    assert (folder / "out" / "lights" / "MIGRATION.md").is_file()


def test_refuses_a_kind_without_a_crd(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lamps.yaml").unlink()
    shown = refused(capsys, folder, "lamps.py")
    assert (
        "lamps.py:4: no CRD declares the kind 'lamps' of example.com/v1: pass its CRD with -f FILE" in shown
    )


def test_refuses_a_file_that_is_not_python(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "lamps.yaml:4: not a Python file" in refused(capsys, folder, "lamps.yaml")
    (folder / "image.py").write_bytes(b"\xff\xfe")
    assert "image.py: not a Python file: it is not UTF-8 text" in refused(capsys, folder, "image.py")


def test_refuses_files_without_handlers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "plain.py").write_text("import kopf\n")
    assert "plain.py: no kopf decorators found" in refused(capsys, folder, "plain.py")


def test_refuses_a_missing_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "cannot read missing.py: No such file or directory" in refused(capsys, folder, "missing.py")


def test_refuses_an_existing_directory(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lights").mkdir()
    shown = refused(capsys, folder, "lamps.py", "--output-dir", "lights")
    assert "lights already exists: choose another directory with --output-dir" in shown


def test_refuses_an_invalid_project_name(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "choose it with --output-dir" in refused(capsys, folder, "lamps.py", "--output-dir", "out/json")


def test_names_the_module_that_was_not_passed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "colours.py").write_text("RED = 1\n")
    (folder / "lamps.py").write_text(f"from colours import RED\n{HANDLER}")
    assert "lamps.py: imports colours: pass colours.py as well" in refused(capsys, folder, "lamps.py")


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (
            "@kopf.on.create(KIND)\ndef f(**_): ...\n",
            "lamps.py:3: the kind of @kopf.on.create is not a constant",
        ),
        ("@kopf.on.create(kopf.EVERYTHING)\ndef f(**_): ...\n", "is not a constant of the given files"),
        ("@kopf.subhandler()\ndef f(**_): ...\n", "lamps.py:3: @kopf.subhandler is not known"),
        ("@retried\n@kopf.on.create('lamps')\ndef f(**_): ...\n", "decorators that are not of kopf"),
        ("def g():\n    @kopf.on.create('lamps')\n    def f(**_): ...\n", "is not at the top of the module"),
        ("@kopf.on.create('lamps', **more)\ndef f(**_): ...\n", "write the options out"),
        (
            f"{HANDLER.partition('import kopf')[2]}\nkopf.configure(debug=True)\n",
            "kopf.configure is used outside of a function",
        ),
    ],
)
def test_refuses_arguments_that_are_only_known_at_run_time(
    folder: Path, capsys: pytest.CaptureFixture[str], source: str, message: str
) -> None:
    (folder / "lamps.py").write_text(f"import kopf\n\n{source}")
    assert message in refused(capsys, folder, "lamps.py")


def test_never_runs_the_operator(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "lamps.py").write_text(f"{HANDLER}\nraise SystemExit('it was run')\n")
    assert ended(capsys, "lamps.py")[0] == 0
