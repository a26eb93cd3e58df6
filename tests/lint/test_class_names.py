"""Names of classes and type aliases: a reader who searches for one finds one definition."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src" / "kubewright"
GENERATED = SOURCE / "api" / "builtin"
"""The built-in kinds have Kubernetes' own names, some of which stand in several API groups."""
_CAMEL_CASE = re.compile(r"[A-Z][A-Z0-9]*[a-z]\w*")
_TYPE_PARAMETERS = ("TypeVar", "TypeVarTuple", "ParamSpec")


def public_types(tree: ast.Module) -> Iterator[str]:
    """Yield the classes and type aliases of a module whose names do not begin with an underscore."""
    for statement in tree.body:
        match statement:
            case ast.ClassDef(name=name):
                yield name
            case ast.Assign(value=ast.Call(func=ast.Name(id=called))) if called in _TYPE_PARAMETERS:
                pass
            case ast.Assign(targets=[ast.Name(id=name)]) if _CAMEL_CASE.fullmatch(name):
                yield name
            case _:
                pass


def test_each_public_class_and_type_alias_is_defined_once() -> None:
    places: dict[str, list[str]] = defaultdict(list)
    for path in sorted(SOURCE.rglob("*.py")):
        if not path.is_relative_to(GENERATED):
            for name in public_types(ast.parse(path.read_text(encoding="utf-8"))):
                if not name.startswith("_"):
                    places[name].append(str(path.relative_to(SOURCE)))
    assert len(places) > 500, "the search found too few classes to mean anything"
    assert not {name: found for name, found in places.items() if len(found) > 1}
