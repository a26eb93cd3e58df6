"""Read a kopf operator by its syntax tree: the handlers, their filters, and the kinds they are registered for.

Nothing is imported or run. The arguments of a decorator must be constants of the given files, because a guessed kind
would lead to a controller of the wrong kind: anything else raises KopfError with file and line.
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from kubewright.api import KubewrightError

CHANGES = frozenset({"create", "update", "resume", "field"})
"""Decorators whose handlers are merged into one reconcile."""
_OF_OBJECTS = CHANGES | {"delete", "event", "timer", "daemon", "validate", "mutate", "index"}
_OF_THE_OPERATOR = frozenset({"startup", "cleanup", "login", "probe"})
_DECORATORS = {f"kopf.on.{name}": name for name in _OF_OBJECTS | _OF_THE_OPERATOR} | {
    f"kopf.{name}": name for name in ("timer", "daemon", "index")
}
_SELECTOR_KEYWORDS = frozenset({"group", "version", "kind", "plural", "singular", "shortcut", "category"})

Function = ast.FunctionDef | ast.AsyncFunctionDef


class KopfError(KubewrightError):
    """A kopf operator cannot be converted; the message names file and line."""


class KindName(NamedTuple):
    """A kind as a decorator names it: any of its names, and its group and version if they are given."""

    name: str
    group: str | None = None
    version: str | None = None

    def __str__(self) -> str:
        where = "/".join(part for part in (self.group, self.version) if part)
        return f"{self.name!r} of {where}" if where else repr(self.name)


class KopfRegistration(NamedTuple):
    """One decorator: what the handler reacts to, of which kind, with which options."""

    reaction: str
    kind: KindName | None
    options: Mapping[str, ast.expr]
    line: int


@dataclass(frozen=True)
class KopfHandler:
    """A function with at least one decorator of kopf."""

    node: Function
    registrations: tuple[KopfRegistration, ...]

    @property
    def name(self) -> str:
        """Return the name of the function."""
        return self.node.name


@dataclass
class KopfFile:
    """One file of the operator: its text, its syntax tree, and what its names stand for."""

    path: str
    module: str
    source: str
    tree: ast.Module
    imported: dict[str, str] = field(default_factory=dict[str, str])
    """The dotted name that each imported name stands for: `on` is `kopf.on`."""
    handlers: list[KopfHandler] = field(default_factory=list[KopfHandler])

    def dotted(self, node: ast.AST) -> str:
        """Return the whole name of a reference such as `kopf.on.create`, or an empty string."""
        if isinstance(node, ast.Attribute):
            before = self.dotted(node.value)
            return f"{before}.{node.attr}" if before else ""
        return self.imported.get(node.id, "") if isinstance(node, ast.Name) else ""

    @property
    def functions(self) -> dict[str, Function]:
        """Return the functions of the module by name."""
        return {node.name: node for node in self.tree.body if isinstance(node, Function)}


def read_files(sources: Sequence[tuple[str, str, str]]) -> list[KopfFile]:
    """Read files, each given as path, module name and text; raise KopfError if none of them has a handler."""
    files = [_parse(*source) for source in sources]
    constants = _constants(files)
    for each in files:
        each.handlers = list(_handlers(each, constants))
    if not any(each.handlers for each in files):
        names = ", ".join(each.path for each in files)
        raise KopfError(f"{names}: no kopf decorators found, for example @kopf.on.create(...)")
    return files


def constant_of(node: ast.AST | None, constants: Mapping[str, str]) -> str | None:
    """Return the constant text of an expression, or None if it is not certain."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.Name):
        return constants.get(node.id)
    if isinstance(node, ast.Attribute):
        return constants.get(node.attr)
    if isinstance(node, ast.JoinedStr):
        parts = [
            constant_of(part.value if isinstance(part, ast.FormattedValue) else part, constants)
            for part in node.values
        ]
        return None if None in parts else "".join(part for part in parts if part is not None)
    return None


def parameters(node: Function) -> list[str]:
    """Return the names of a function's parameters, except for `*` and `**`."""
    return [each.arg for each in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]


def _parse(path: str, module: str, source: str) -> KopfFile:
    try:
        tree = ast.parse(source, filename=path)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        where = f"{path}:{line}" if line else path
        raise KopfError(f"{where}: not a Python file: {getattr(error, 'msg', error)}") from None
    read = KopfFile(path, module, source, tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                name = alias.asname or alias.name.partition(".")[0]
                read.imported[name] = alias.name if alias.asname else name
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                read.imported[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}"
    return read


def _constants(files: Sequence[KopfFile]) -> dict[str, str]:
    """Return the texts that modules assign to a name once; a name with two values is not a constant."""
    found: dict[str, set[str]] = {}
    for each in files:
        for node in each.tree.body:
            target, value = None, None
            if isinstance(node, ast.Assign) and len(node.targets) == 1:
                target, value = node.targets[0], node.value
            elif isinstance(node, ast.AnnAssign):
                target, value = node.target, node.value
            if (
                isinstance(target, ast.Name)
                and isinstance(value, ast.Constant)
                and isinstance(value.value, str)
            ):
                found.setdefault(target.id, set()).add(value.value)
    return {name: next(iter(values)) for name, values in found.items() if len(values) == 1}


def _handlers(file: KopfFile, constants: Mapping[str, str]) -> Iterator[KopfHandler]:
    for node in ast.walk(file.tree):
        if not isinstance(node, Function):
            continue
        registrations = [
            found
            for each in node.decorator_list
            if (found := _registration(file, each, constants)) is not None
        ]
        if not registrations:
            continue
        if node not in file.tree.body:
            raise KopfError(
                f"{file.path}:{node.lineno}: handler {node.name} is not at the top of the module: "
                "kopf registers it at run time; move it there, or convert it by hand"
            )
        if len(registrations) != len(node.decorator_list):
            raise KopfError(
                f"{file.path}:{node.lineno}: handler {node.name} has decorators that are not of kopf: "
                "they would change its arguments; move them to a function that it calls"
            )
        # The decorator nearest to the function is applied, and registered, first.
        yield KopfHandler(node, tuple(reversed(registrations)))


def _registration(file: KopfFile, node: ast.expr, constants: Mapping[str, str]) -> KopfRegistration | None:
    call = node if isinstance(node, ast.Call) else None
    name = file.dotted(call.func if call else node)
    if name and name.startswith("kopf.") and name not in _DECORATORS:
        raise KopfError(f"{file.path}:{node.lineno}: @{name} is not known: convert this handler by hand")
    reaction = _DECORATORS.get(name)
    if reaction is None:
        return None
    options = {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg} if call else {}
    if call is not None and any(keyword.arg is None for keyword in call.keywords):
        raise KopfError(f"{file.path}:{node.lineno}: @{name}(**...): write the options out")
    kind = None
    if reaction in _OF_OBJECTS:
        kind = _kind_name(file, call, name, constants) if call else None
        if kind is None:
            raise KopfError(
                f"{file.path}:{node.lineno}: the kind of @{name} is not a constant of the given files: "
                "write its group, version and plural as text"
            )
    rest = {word: value for word, value in options.items() if word not in _SELECTOR_KEYWORDS}
    return KopfRegistration(reaction, kind, rest, node.lineno)


def _kind_name(file: KopfFile, call: ast.Call, name: str, constants: Mapping[str, str]) -> KindName | None:
    texts = [constant_of(argument, constants) for argument in call.args]
    words = {
        word.arg: constant_of(word.value, constants)
        for word in call.keywords
        if word.arg in _SELECTOR_KEYWORDS
    }
    if None in texts or None in words.values() or "category" in words:
        return None
    given = [text for text in texts if text is not None]
    group, version = words.get("group"), words.get("version")
    named = next(
        (words[word] for word in ("plural", "kind", "singular", "shortcut") if words.get(word)), None
    )
    if named is not None:
        given.append(named)
    match given:
        case [whole] if "." in whole and group is None:
            plural, _, rest = whole.partition(".")
            first, _, last = rest.partition(".")
            if first.startswith("v") and first[1:2].isdigit():
                return KindName(plural, last, first)
            return KindName(plural, rest, version)
        case [plural]:
            return KindName(plural, group, version)
        case [where, plural]:
            before, _, after = where.rpartition("/")
            if not before and "." in after:
                return KindName(plural, after, version)
            return KindName(plural, before, after)
        case [group_, version_, plural]:
            return KindName(plural, group_, version_)
        case _:
            return None
