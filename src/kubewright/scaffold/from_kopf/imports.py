"""Adjust the imports of a translated module to what its text uses."""

import ast
import re


def with_imports(text: str, package: str, siblings: set[str], support: set[str]) -> str:
    """Add the imports that the translated text uses, and remove unused ones."""
    tree = ast.parse(text)
    used = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    exported = {
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    lines = text.splitlines(keepends=True)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    for node in reversed(imports):
        kept = _kept_import(node, used | exported, package, siblings)
        if kept != ast.unparse(node):
            lines[node.lineno - 1 : node.end_lineno] = [f"{_folded(kept)}\n"] if kept else []
    first = ""
    if "Any" in used and not any(
        isinstance(node, ast.ImportFrom)
        and node.module == "typing"
        and any(alias.name == "Any" for alias in node.names)
        for node in imports
    ):
        first = "from typing import Any\n"
    last = "import kubewright as kw\n" if "kw" in used else ""
    names = sorted(support & used)
    if names:
        last += f"from {package}.support import {', '.join(names)}\n"
    text = "".join(lines)
    tree = ast.parse(text)
    remaining = [
        node
        for node in tree.body
        if isinstance(node, ast.Import) or (isinstance(node, ast.ImportFrom) and node.module != "__future__")
    ]
    lines = text.splitlines(keepends=True)
    if remaining:
        end, start = remaining[-1].end_lineno or 0, remaining[0].lineno - 1
        lines[end:end] = [last]
        lines[start:start] = [first]
    elif first or last:
        at = (tree.body[0].end_lineno or 0) if tree.body and ast.get_docstring(tree) is not None else 0
        lines[at:at] = ["\n" if at else "", first, last, "\n"]
    return re.sub(r"\n{4,}", "\n\n\n", "".join(lines)).strip("\n") + "\n"


def _kept_import(node: ast.Import | ast.ImportFrom, used: set[str], package: str, siblings: set[str]) -> str:
    if isinstance(node, ast.ImportFrom):
        module = node.module or ""
        if module == "__future__":
            return ast.unparse(node)
        if module.partition(".")[0] == "kopf" and not node.level:
            return ""
        names = [alias for alias in node.names if alias.name == "*" or (alias.asname or alias.name) in used]
        if not names:
            return ""
        last = module.rpartition(".")[2]
        if last in siblings:
            return ast.unparse(ast.ImportFrom(module=f"{package}.{last}", names=names, level=0))
        if node.level or not module:
            return ast.unparse(ast.ImportFrom(module=package, names=names, level=0))
        return ast.unparse(ast.ImportFrom(module=module, names=names, level=0))
    names = [
        alias
        for alias in node.names
        if alias.name.partition(".")[0] != "kopf" and (alias.asname or alias.name.partition(".")[0]) in used
    ]
    own = [alias for alias in names if alias.name in siblings]
    rest = [alias for alias in names if alias.name not in siblings]
    found = [ast.unparse(ast.Import(names=rest))] if rest else []
    found += [ast.unparse(ast.ImportFrom(module=package, names=own, level=0))] if own else []
    return "\n".join(found)


def _folded(line: str) -> str:
    """Return an import in several lines if it is too long."""
    head, found, names = line.partition(" import ")
    if len(line) <= 120 or not found or "\n" in line:
        return line
    return f"{head} import (\n" + "".join(f"    {name},\n" for name in names.split(", ")) + ")"
