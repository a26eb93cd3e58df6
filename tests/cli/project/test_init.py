"""`kubewright init` and `create`: files appear whole or not at all, and never in place of others."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kubewright.cli.app import main


def exit_code(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    for name in [name for name in sys.modules if name.partition(".")[0] in ("toyshop", "my_shop")]:
        del sys.modules[name]
    return int(ended.value.code or 0)


def contents(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): path.read_text()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.suffix != ".pyc"
    }


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    assert exit_code("init", "toyshop", "--domain", "example.com") == 0
    monkeypatch.chdir(tmp_path / "toyshop")
    return tmp_path / "toyshop"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init", "1shop"], "'1shop' is not a valid project name"),
        (["init", "json"], "a Python module is already named 'json'"),
        (["init", "a", "--domain", "nodot"], "it has no dot"),
        (["init", "yaml"], "a package named 'yaml' is already installed"),
        (["init"], "Missing argument 'NAME'"),
    ],
)
def test_an_invalid_project_name_is_one_error_line(
    arguments: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(*arguments) == 2
    assert message in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_holds_something_else_stays_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "toyshop").mkdir()
    (tmp_path / "toyshop" / "mine.txt").write_text("mine")
    assert exit_code("init", "toyshop") == 1
    assert capsys.readouterr().err == (
        "Error: toyshop already exists and is not a kubewright project: choose another name\n"
    )
    assert contents(tmp_path / "toyshop") == {"mine.txt": "mine"}


def test_an_empty_folder_is_filled(tmp_path: Path) -> None:
    (tmp_path / "toyshop").mkdir()
    assert exit_code("init", "toyshop") == 0
    assert "toyshop/__init__.py" in contents(tmp_path / "toyshop")


def test_a_second_run_adds_what_is_missing_and_keeps_what_was_changed(
    shop: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "Dockerfile").write_text("FROM mine\n")
    (shop / "README.md").unlink()
    monkeypatch.chdir(shop.parent)
    capsys.readouterr()
    assert exit_code("init", "toyshop") == 0
    assert (shop / "Dockerfile").read_text() == "FROM mine\n"
    assert capsys.readouterr().out == "created README.md\nkept 10 existing files\n"


def test_reports_what_changed_since_the_version_of_a_project(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (shop / "pyproject.toml").read_text()
    older = text.replace('version = "0.1.0" # what', 'version = "0.0.9" # what')
    assert older != text
    (shop / "pyproject.toml").write_text(older)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    assert "changed since this project was created: 0.1.0: requirements.lock" in capsys.readouterr().err
    assert (shop / "pyproject.toml").read_text() == text


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["api", "--version", "v1", "--kind", "toy"], 2, "kind 'toy' is not in CamelCase: like Toy"),
        (["api", "--version", "1", "--kind", "Toy"], 2, "version '1' is not a Kubernetes API version"),
        (["api", "--version", "v1", "--kind", "Toy", "--group", "a b"], 2, "group 'a b.example.com'"),
        (["api", "--version", "v1", "--kind", "Toy", "--plural", "To Ys"], 2, "plural 'To Ys'"),
        (
            ["api", "--version", "v1", "--kind", "Toy", "--group", "toy.k8s.io"],
            2,
            "is reserved for Kubernetes",
        ),
        (["api", "--version", "v1"], 2, "Missing option '--kind'"),
        (["webhook", "--kind", "Toy"], 2, "specify at least one of"),
        (["webhook", "--kind", "Toy", "--validation"], 1, "kind Toy not found in this project"),
    ],
)
def test_an_invalid_addition_changes_nothing(
    arguments: list[str], code: int, message: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = contents(shop)
    assert exit_code("create", *arguments) == code
    assert message in capsys.readouterr().err
    assert contents(shop) == before


def test_a_group_needs_a_dot_where_the_project_has_no_domain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("init", "my-shop") == 0
    monkeypatch.chdir(tmp_path / "my-shop")
    assert exit_code("create", "api", "--group", "shop", "--version", "v1", "--kind", "Toy") == 2
    assert "group 'shop' has no dot" in capsys.readouterr().err
    assert exit_code("create", "api", "--group", "shop.example.org", "--version", "v1", "--kind", "Toy") == 0
    assert 'name="my-shop"' in (tmp_path / "my-shop" / "my_shop" / "__init__.py").read_text()


def test_create_outside_a_project_suggests_init(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "api", "--kind", "Toy", "--version", "v1") == 1
    assert "create one with `kubewright init NAME`" in capsys.readouterr().err


def test_a_kind_is_added_once(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    before = contents(shop)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 1
    assert "Toy v1 of toyshop.example.com already exists in toyshop.toy" in capsys.readouterr().err
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy", "--group", "other") == 1
    assert "toyshop/toy.py already exists: nothing was written" in capsys.readouterr().err
    assert contents(shop) == before


def test_a_further_version_copies_the_keywords_of_the_first(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert (
        exit_code("create", "api", "--version", "v1", "--kind", "Toy", "--cluster", "--plural", "toyz") == 0
    )
    first = shop / "toyshop" / "toy.py"
    named = first.read_text().replace("\n\n\nclass ToySpec", '\n\nWORD = "t"\n\n\nclass ToySpec', 1)
    named = named.replace('scope="Cluster",', 'scope="Cluster",\n    short_names=[WORD],')
    first.write_text(named.replace('"""A cluster-wide', '"""A toy,\n\n    and a cluster-wide'))
    assert exit_code("create", "api", "--version", "v2", "--kind", "Toy") == 0
    second = (shop / "toyshop" / "toy_v2.py").read_text()
    assert "from toyshop.toy import WORD, ToySpec, ToyStatus" in second
    assert "    short_names=[WORD],\n" in second
    assert '    """A toy,\n\n    and a cluster-wide message' in second
    capsys.readouterr()
    assert exit_code("manifests", "--only", "crds") == 0
    assert "name: toyz.toyshop.example.com" in capsys.readouterr().out
    samples = {path.stem: path.read_text() for path in (shop / "samples").iterdir()}
    assert "name: toy-sample" in samples["toy"]
    assert "name: toy-v2-sample" in samples["toy_v2"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--kind", "Toy", "--plural", "toyz"],
            "Toy has --plural toys --namespaced, and all its versions",
        ),
        (["--kind", "Toy", "--cluster"], "Toy has --plural toys --namespaced, and all its versions"),
        (["--kind", "ToY"], "toys.toyshop.example.com already exists as kind Toy in toyshop.toy"),
        (["--kind", "ToY", "--group", "other"], "ToY differs from Toy in toyshop.toy only in case"),
        (
            ["--kind", "Doll", "--plural", "toys"],
            "toys.toyshop.example.com already exists as kind Toy in toyshop.toy",
        ),
    ],
)
def test_a_kind_that_conflicts_with_an_existing_one_is_refused(
    arguments: list[str], message: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    before = contents(shop)
    assert exit_code("create", "api", "--version", "v2", *arguments) == 1
    assert message in capsys.readouterr().err
    assert contents(shop) == before


def test_a_further_version_may_repeat_the_options_of_the_kind(shop: Path) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy", "--cluster") == 0
    assert (
        exit_code("create", "api", "--version", "v2", "--kind", "Toy", "--cluster", "--plural", "toys") == 0
    )


def test_a_conversion_needs_a_second_version(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    assert exit_code("create", "webhook", "--kind", "Toy", "--conversion") == 1
    assert "Toy has one version: add another" in capsys.readouterr().err


@pytest.mark.parametrize("scaled", [True, False])
def test_warns_that_scaling_is_not_validated(shop: Path, scaled: bool) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    if scaled:
        toy = shop / "toyshop" / "toy.py"
        said = '    version="v1",\n    scale=kw.Scale(spec=".spec.message", status=".status.conditions[0].observedGeneration"),\n'
        text = toy.read_text().replace('    version="v1",\n', said)
        toy.write_text(text.replace("    conditions:", '    message: str = ""\n    conditions:', 1))
    assert exit_code("create", "webhook", "--kind", "Toy", "--validation") == 0
    made = (shop / "toyshop" / "toy_validation.py").read_text()
    hint = '# @kw.admission.validating_webhook(autoscaling_v1.Scale, subresources=["scale"], of=Toy)\n@kw.admission.validating_webhook(Toy)\n'
    assert (hint in made) is scaled
    assert ("\n\n\n@kw.admission.validating_webhook(Toy)\n" in made) is not scaled
    assert max(map(len, made.splitlines())) <= 120


def test_a_rewritten_operator_gets_files_and_instructions(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    package = shop / "toyshop" / "__init__.py"
    mine = package.read_text().replace("kw.Operator(toys,", "kw.Operator(\n    toys,  # mine\n   ")
    package.write_text(mine)
    capsys.readouterr()
    assert exit_code("create", "api", "--version", "v1", "--kind", "Doll") == 0
    shown = capsys.readouterr().out
    assert "from toyshop.doll import dolls" in shown
    assert "Operator(dolls, ...)" in shown
    assert package.read_text() == mine


def test_a_package_in_another_encoding_gets_files_and_instructions(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = shop / "toyshop" / "__init__.py"
    mine = b"# -*- coding: latin-1 -*-\n# \xfc\n" + package.read_bytes()
    package.write_bytes(mine)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    assert "from toyshop.toy import toys" in capsys.readouterr().out
    assert package.read_bytes() == mine


@pytest.mark.parametrize(
    ("text", "name"),
    [("tool = 3", "tool"), ("[tool]\nkubewright = 3", "kubewright"), ("project = 3", "project")],
)
def test_settings_that_are_not_a_table_are_an_error(
    text: str, name: str, shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "pyproject.toml").write_text(f"{text}\n[tool.kubewright]\n" if name == "project" else text)
    assert exit_code("manifests") == 1
    assert capsys.readouterr().err == f"Error: {shop / 'pyproject.toml'}: {name!r} is not a table\n"


def test_a_sample_that_is_not_text_is_an_error(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    (shop / "samples" / "toy.yaml").write_bytes(b"a: \xff\n")
    assert exit_code("bundle", "--image", "toys:1") == 1
    assert capsys.readouterr().err == f"Error: {shop / 'samples' / 'toy.yaml'} is not valid UTF-8\n"


def test_a_syntax_error_in_the_project_is_reported_with_file_and_line(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (shop / "toyshop" / "__init__.py").write_text("def f(:\n")
    before = contents(shop)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 1
    assert "__init__.py:1: SyntaxError" in capsys.readouterr().err
    assert contents(shop) == before


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_one_line(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "tests").chmod(0o500)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 1
    assert "nothing was changed" in capsys.readouterr().err


def test_a_failure_while_creating_changes_nothing(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (shop / "samples").write_text("a file where a folder is wanted")
    before = contents(shop)
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 1
    assert "nothing was changed" in capsys.readouterr().err
    assert contents(shop) == before


def test_commands_inside_a_project_need_no_target(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code("create", "api", "--version", "v1", "--kind", "Toy") == 0
    os.chdir(shop / "tests")
    capsys.readouterr()
    assert exit_code("manifests", "--only", "crds") == 0
    assert "name: toys.toyshop.example.com" in capsys.readouterr().out


def test_a_new_project_without_kinds_passes_its_tests(shop: Path) -> None:
    arguments = ["-q", "-p", "no:cacheprovider", "--assert=plain"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *arguments], cwd=shop, check=False, capture_output=True
    )
    assert done.returncode == 0
