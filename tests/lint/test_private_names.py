"""Lint: tests use what the product offers its users, never a name that begins with an underscore."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = [
    *(
        path
        for path in sorted((ROOT / "tests").rglob("*.py"))
        # Projects as users have them; their own tests are checked by their own tools.
        if not {"golden", "kopf_project"} & set(path.parts)
    ),
    *sorted((ROOT / "examples").rglob("test_*.py")),
]
NAMED_TUPLES = ("_replace", "_asdict", "_fields", "_make")
"""Public in spite of their underscore: methods of named tuples."""
SETTERS = ("setattr", "delattr", "getattr")


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__") and name not in NAMED_TUPLES


def private_uses(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and name: attributes of other objects, imports, and names in the text of `setattr` and its like."""
    for node in ast.walk(tree):
        match node:
            case ast.Attribute(value=ast.Name(id="self" | "cls")):
                pass
            case ast.Attribute(attr=name) if is_private(name):
                yield node.lineno, ast.unparse(node)
            case ast.ImportFrom(module=str(module), names=names) if module.split(".")[0] == "kubewright":
                parts = [*module.split("."), *(alias.name for alias in names)]
                yield from ((node.lineno, f"{module}: {part}") for part in parts if is_private(part))
            case ast.Call(func=ast.Attribute(attr=function) | ast.Name(id=function), args=args) if (
                function in SETTERS
            ):
                texts = [arg.value for arg in args[:2] if isinstance(arg, ast.Constant)]
                for text in texts:
                    if isinstance(text, str) and any(is_private(part) for part in text.split(".")):
                        yield node.lineno, text
            case _:
                pass


def test_tests_read_no_private_names_of_the_product() -> None:
    found = [
        f"{path.relative_to(ROOT).as_posix()}:{line}: {name}"
        for path in FILES
        for line, name in private_uses(ast.parse(path.read_text()))
    ]
    assert found == [], "use a public interface, or give the product one"


@pytest.mark.parametrize(
    ("code", "names"),
    [
        ("store._gone", ["store._gone"]),
        ("self._count + cls._made", []),
        ("self.store._gone", ["self.store._gone"]),
        ("point._replace(x=1)", []),
        ("type(self).__name__", []),
        ("from kubewright.cache.store import Store, _Tombstone", ["kubewright.cache.store: _Tombstone"]),
        ("from kubewright._speedups import fast", ["kubewright._speedups: _speedups"]),
        ("monkeypatch.setattr(watcher, '_RETRY', 1)", ["_RETRY"]),
        ("monkeypatch.setattr('kubewright.cache.watcher._RETRY', 1)", ["kubewright.cache.watcher._RETRY"]),
        ("monkeypatch.setattr(watcher, 'RETRY', '_x')", []),
        ("getattr(store, '_gone')", ["_gone"]),
    ],
)
def test_private_names_are_recognized(code: str, names: list[str]) -> None:
    assert [name for _, name in private_uses(ast.parse(code))] == names
