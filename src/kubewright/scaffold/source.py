"""Additions to a user's Python files: by their syntax tree, and only if the result is certain to be right."""

import ast
from typing import NamedTuple, TypeGuard

WIDTH = 120


class Unclear(Exception):
    """A file is written in a way that an addition might be wrong; the user has to make it."""


def add_import(source: str, module: str, *wanted: str) -> str:
    """Import names from a module, in the order in which isort puts them."""
    tree = ast.parse(source)
    froms = [node for node in tree.body if isinstance(node, ast.ImportFrom) and not node.level]
    for node in froms:
        if node.module == module:
            have = [alias.name for alias in node.names]
            if any(alias.asname for alias in node.names):
                raise Unclear
            return _replaced(source, node, import_line(module, {*have, *wanted}))
    text = import_line(module, set(wanted))
    package = module.partition(".")[0]
    mates = [node for node in froms if (node.module or "").partition(".")[0] == package]
    for node in mates:
        if (node.module or "") > module:
            return _with_lines(source, node.lineno - 1, [text])
    if mates:
        return _with_lines(source, mates[-1].end_lineno or 0, [text])
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    if imports:
        return _with_lines(source, imports[-1].end_lineno or 0, ["", text])
    after = tree.body[0].end_lineno or 0 if ast.get_docstring(tree) is not None else 0
    return _with_lines(source, after, ["", text] if after else [text])


def add_to_operator(
    source: str, name: str, *, controllers: list[str], webhooks: list[str], kinds: list[str]
) -> str:
    """Add controllers, webhooks and kinds to the only `Operator(...)` of a file; add one if there is none."""
    calls = [node for node in ast.walk(ast.parse(source)) if _is_operator(node)]
    if not calls:
        return _with_operator(source, name, controllers, webhooks, kinds)
    if len(calls) > 1:
        raise Unclear
    call = calls[0]
    text = ast.get_source_segment(source, call) or ""
    if "#" in text or any(keyword.arg is None for keyword in call.keywords):
        raise Unclear
    arguments = [_Argument(_text(source, argument)) for argument in call.args]
    arguments += [_Argument(name) for name in controllers]
    more = {"webhooks": webhooks, "kinds": kinds}
    for keyword in call.keywords:
        head, further = f"{keyword.arg}=", more.pop(keyword.arg or "", [])
        if isinstance(keyword.value, ast.List):
            items = [_text(source, item) for item in keyword.value.elts]
            arguments.append(_Argument(head, [*items, *further]))
        elif further:
            raise Unclear
        else:
            arguments.append(_Argument(head + _text(source, keyword.value)))
    arguments += [_Argument(f"{word}=", further) for word, further in more.items() if further]
    return _sound(_replaced(source, call, _call(source, call, _text(source, call.func), arguments)))


def add_class_keyword(source: str, class_name: str, keyword: str, value: str) -> str:
    """Add a keyword to a class statement unless it is present."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            if any(each.arg == keyword for each in node.keywords):
                return source
            head = _lines(source)[node.lineno - 1 : node.body[0].lineno]
            if not node.keywords or "#" in "".join(head):
                raise Unclear
            last = next(each for each in node.keywords if each.arg == "version")
            indent = _lines(source)[last.lineno - 1][: last.col_offset]
            if indent.strip():
                return _sound(_inserted(source, last, f", {keyword}={value}"))
            return _sound(_with_lines(source, last.end_lineno or 0, [f"{indent}{keyword}={value},"]))
    raise Unclear


class ClassParts(NamedTuple):
    """The parts of a class statement, as source text."""

    keywords: dict[str, str]
    names: set[str]
    """What its keywords refer to, without `kw`."""
    docstring: str


def class_parts(source: str, class_name: str) -> ClassParts:
    """Return the parts of a class statement."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.ClassDef) and node.name == class_name:
            keywords = {each.arg: each.value for each in node.keywords if each.arg is not None}
            used = {
                name.id
                for value in keywords.values()
                for name in ast.walk(value)
                if isinstance(name, ast.Name)
            }
            first = node.body[0]
            has_docstring = isinstance(first, ast.Expr) and ast.get_docstring(node) is not None
            return ClassParts(
                {word: _text(source, value) for word, value in keywords.items()},
                used - {"kw"},
                _text(source, first.value) if has_docstring and isinstance(first, ast.Expr) else "",
            )
    raise Unclear


def _is_operator(node: ast.AST) -> TypeGuard[ast.Call]:
    if not isinstance(node, ast.Call):
        return False
    function = node.func
    return (isinstance(function, ast.Attribute) and function.attr == "Operator") or (
        isinstance(function, ast.Name) and function.id == "Operator"
    )


def _with_operator(
    source: str, name: str, controllers: list[str], webhooks: list[str], kinds: list[str]
) -> str:
    tree = ast.parse(source)
    if not any(isinstance(node, ast.Import) and node.names[0].asname == "kw" for node in tree.body):
        froms = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
        if froms:
            source = _with_lines(source, froms[0].lineno - 1, ["import kubewright as kw", ""])
        else:
            source = source.rstrip("\n") + "\n\nimport kubewright as kw\n"
    arguments = [*controllers, f'name="{name}"']
    arguments += [
        f"{word}=[{', '.join(some)}]" for word, some in (("webhooks", webhooks), ("kinds", kinds)) if some
    ]
    return source.rstrip("\n") + f"\n\noperator = kw.Operator({', '.join(arguments)})\n"


class _Argument(NamedTuple):
    """An argument as it is written; with items, a list."""

    head: str
    items: list[str] | None = None

    def line(self) -> str:
        return self.head if self.items is None else f"{self.head}[{', '.join(self.items)}]"

    def lines(self, indent: str) -> list[str]:
        line = f"{indent}{self.line()},"
        if self.items is None or len(line) <= WIDTH:
            return [line]
        return [f"{indent}{self.head}[", *(f"{indent}    {item}," for item in self.items), f"{indent}],"]


def _call(source: str, call: ast.Call, function: str, arguments: list[_Argument]) -> str:
    before = _lines(source)[call.lineno - 1][: call.col_offset]
    line = f"{function}({', '.join(argument.line() for argument in arguments)})"
    if len(before) + len(line) <= WIDTH and "\n" not in line:
        return line
    indent = before[: len(before) - len(before.lstrip())]
    inside = [each for argument in arguments for each in argument.lines(f"{indent}    ")]
    return "\n".join([f"{function}(", *inside, f"{indent})"])


def _text(source: str, node: ast.expr) -> str:
    return ast.get_source_segment(source, node) or ""


def _sound(source: str) -> str:
    """Raise Unclear if the source with the addition is not valid Python."""
    try:
        ast.parse(source)
    except SyntaxError:
        raise Unclear from None
    return source


def import_line(module: str, wanted: set[str]) -> str:
    """Write one import, names in the order in which isort puts them."""
    ordered = sorted(wanted, key=lambda name: (2 - name[:1].isupper() - name.isupper(), name))
    line = f"from {module} import {', '.join(ordered)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {name}," for name in ordered), ")"])


def _lines(source: str) -> list[str]:
    """Split a file into lines as Python counts them: a form feed, for example, does not end a line."""
    return source.removesuffix("\n").split("\n") if source else []


def _offset(source: str, line: int, column: int) -> int:
    lines = source.encode().splitlines(keepends=True)
    return sum(map(len, lines[: line - 1])) + column


def _replaced(source: str, node: ast.stmt | ast.expr, text: str) -> str:
    start = _offset(source, node.lineno, node.col_offset)
    end = _offset(source, node.end_lineno or 0, node.end_col_offset or 0)
    whole = source.encode()
    return (whole[:start] + text.encode() + whole[end:]).decode()


def _inserted(source: str, node: ast.keyword, text: str) -> str:
    end = _offset(source, node.end_lineno or 0, node.end_col_offset or 0)
    whole = source.encode()
    return (whole[:end] + text.encode() + whole[end:]).decode()


def _with_lines(source: str, after: int, lines: list[str]) -> str:
    have = _lines(source)
    return "\n".join([*have[:after], *lines, *have[after:]]) + "\n"
