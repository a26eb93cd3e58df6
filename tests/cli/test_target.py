from pathlib import Path

import pytest

from kubewright.cli.target import TargetError, load_operator

SHELL = '''
import kubewright as kw

class Spec(kw.Model):
    size: int = 0

class Status(kw.Model):
    ready: int = 0

class Shell(kw.Resource[Spec, Status], group="example.com", version="v1"):
    """A shell."""

@kw.controller(Shell)
async def shells(shell: Shell, ctx: kw.Context) -> None:
    pass
'''


def test_a_file_is_a_target_with_its_top_level_controllers(tmp_path: Path) -> None:
    (tmp_path / "my_shell.py").write_text(SHELL)
    operator = load_operator("my_shell.py")
    assert operator.name == "my-shell"
    assert [controller.name for controller in operator.controllers] == ["shell"]


def test_an_operator_in_the_file_is_preferred(tmp_path: Path) -> None:
    (tmp_path / "with_operator.py").write_text(SHELL + 'operator = kw.Operator(shells, name="chosen")\n')
    assert load_operator("with_operator.py").name == "chosen"


def test_a_factory_function_creates_the_operator(tmp_path: Path) -> None:
    (tmp_path / "factory.py").write_text(SHELL + 'def make():\n    return kw.Operator(shells, name="made")\n')
    assert load_operator("factory:make").name == "made"


def test_a_package_directory_is_a_target(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").write_text(SHELL)
    assert load_operator("shop").name == "shop"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", r"broken\.py:1: SyntaxError"),
        ("import kubewright\n1 / 0\n", r"broken\.py:2: ZeroDivisionError: division by zero"),
        ("import no_such_module_anywhere\n", r"broken\.py:1: ModuleNotFoundError"),
        ("x = 1\n", "defines no `operator`, controllers or webhooks at module level"),
        ("operator = 3\n", "is of type int: expected an Operator"),
        ("import sys\nsys.exit(3)\n", r"broken\.py:2: importing it exits the program \(SystemExit: 3\)"),
        ("x = '\0'\n", r"broken\.py: SyntaxError: source code"),
    ],
)
def test_an_error_in_user_code_is_reported_with_file_and_line(
    tmp_path: Path, text: str, message: str
) -> None:
    (tmp_path / "broken.py").write_text(text)
    with pytest.raises(TargetError, match=message):
        load_operator("broken.py")


def test_the_only_operator_of_a_file_may_have_any_name(tmp_path: Path) -> None:
    (tmp_path / "by_another_name.py").write_text(SHELL + 'mine = kw.Operator(shells, name="chosen")\n')
    assert load_operator("by_another_name.py").name == "chosen"


def test_a_target_with_several_operators_must_name_one(tmp_path: Path) -> None:
    two = 'first = kw.Operator(shells, name="a")\nsecond = kw.Operator(shells, name="b")\n'
    (tmp_path / "two_of_them.py").write_text(SHELL + two)
    with pytest.raises(
        TargetError, match=r"defines several operators \(first and second\): .*two_of_them\.py:first"
    ):
        load_operator("two_of_them.py")
    assert load_operator("two_of_them.py:second").name == "b"


def test_a_file_that_is_not_python_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    with pytest.raises(TargetError, match=r"notes\.txt is not a Python file: its name does not end in \.py"):
        load_operator("notes.txt")
    (tmp_path / "my op.py").write_text(SHELL)
    with pytest.raises(TargetError, match="'my op' is not a valid module name: rename the file or directory"):
        load_operator("my op.py")


@pytest.mark.parametrize("target", ["", ":operator"])
def test_a_target_without_an_operator_is_an_error(target: str) -> None:
    with pytest.raises(TargetError, match="TARGET is empty"):
        load_operator(target)


@pytest.mark.parametrize("target", ["nowhere.py", "no/where", "nowhere_at_all"])
def test_a_target_that_does_not_exist_is_an_error(target: str) -> None:
    with pytest.raises(TargetError, match="no such file"):
        load_operator(target)


def test_a_file_with_the_name_of_another_module_is_refused(tmp_path: Path) -> None:
    (tmp_path / "json.py").write_text(SHELL)
    with pytest.raises(TargetError, match="another module is called 'json'"):
        load_operator("json.py")


def test_a_missing_object_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text(SHELL)
    with pytest.raises(TargetError, match="plain has no 'other'"):
        load_operator("plain:other")
