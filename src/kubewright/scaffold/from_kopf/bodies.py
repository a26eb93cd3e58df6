"""Translate the functions of a kopf operator in place: the text stays, only references to kopf are replaced.

A handler that applies children or records Events needs the context, so it becomes `async def` and its blocking calls go
through `ctx.run_sync`; every other `def` stays one and is run in a thread as a whole, as kopf does. What has no
counterpart becomes a decision: a TODO and a NotImplementedError at the top of the function, above the unchanged body.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from kubewright.scaffold.from_kopf.calls import CLIENT_METHOD, Calls, camel
from kubewright.scaffold.from_kopf.imports import with_imports
from kubewright.scaffold.from_kopf.kinds import KindClass, builtin_by_kind
from kubewright.scaffold.from_kopf.reading import Function, KopfError, KopfFile, KopfHandler, parameters
from kubewright.scaffold.from_kopf.report import MigrationItem, MigrationReport

_VERBS = {
    "create": "create",
    "read": "get",
    "list": "list",
    "patch": "patch",
    "replace": "update",
    "delete": "delete",
    "delete_collection": "deletecollection",
}
ERRORS = {
    "kopf.TemporaryError": "kw.RetryLater",
    "kopf.PermanentError": "kw.TerminalError",
    "kopf.AdmissionError": "AdmissionError",
}
_SUPPORT_CALLS = {"kopf.adopt": "adopt", "kopf.append_owner_reference": "adopt", "kopf.label": "label"}
_EVENTS = frozenset({"kopf.event", "kopf.info", "kopf.warn", "kopf.exception"})


@dataclass
class Translated:
    """Properties of a translated function that the rest of the conversion uses."""

    is_async: bool
    needs_context: bool = False
    added: list[str] = field(default_factory=list[str])
    """Parameters that the function did not have."""
    owns: list[KindClass] = field(default_factory=list[KindClass])
    decisions: list[MigrationItem] = field(default_factory=list[MigrationItem])
    effects: list[str] = field(default_factory=list[str])
    """Calls that must not be repeated, with their lines."""
    records_events: bool = False


class Bodies:
    """Translates the functions of one file."""

    def __init__(self, file: KopfFile, others: list[KopfFile], report: MigrationReport) -> None:
        self.file = file
        self._report = report
        self._source = file.source.encode()
        self._starts = [0]
        for line in self._source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._edits: list[tuple[int, int, str]] = []
        self._support: set[str] = set()
        self._appended: dict[str, str] = {}
        self._calls = Calls(file, others)
        self._parents = {child: node for node in ast.walk(file.tree) for child in ast.iter_child_nodes(node)}
        self._error_classes = {
            node.name: name
            for each in (file, *others)
            for node in each.tree.body
            if isinstance(node, ast.ClassDef)
            for base in node.bases
            if (name := each.dotted(base)) in ERRORS
            and not any(isinstance(part, Function) and part.name == "__init__" for part in node.body)
        }
        self.client_needs: dict[tuple[str, str, str], KindClass] = {}
        self.uses_client: bool = any(
            name.partition(".")[0] == "kubernetes" for name in file.imported.values()
        )
        self.loads_config: bool = bool(
            re.search(r"\bload_(incluster_config|kube_config|config)\b", file.source)
        )

    # Positions. The tree counts columns in bytes.

    def _start(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        return self._starts[node.lineno - 1] + node.col_offset

    def _end(self, node: ast.expr | ast.stmt | ast.arg) -> int:
        return self._starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)

    def text_of(self, node: ast.expr | ast.stmt) -> str:
        """Return the original text of a node."""
        return self._source[self._start(node) : self._end(node)].decode()

    def _replace(self, node: ast.expr | ast.stmt, text: str) -> None:
        self._edits.append((self._start(node), self._end(node), text))

    def _insert(self, offset: int, text: str) -> None:
        self._edits.append((offset, offset, text))

    # Functions.

    def translate_helpers(self) -> None:
        """Translate everything except handlers: functions, classes and statements of the module."""
        handlers = {id(handler.node) for handler in self.file.handlers}
        for node in self.file.tree.body:
            if id(node) in handlers:
                continue
            if isinstance(node, ast.Import | ast.ImportFrom):
                continue
            if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
                if any(True for _ in self._references(node)):
                    self._remove_lines(node.lineno, node.end_lineno or node.lineno)
                    self._report.review(
                        self.file.path,
                        node.lineno,
                        "the block `if __name__ == ...` was removed",
                        "`kubewright run` starts the operator",
                        "how-to/embedding.md",
                    )
                continue
            functions = [each for each in ast.walk(node) if isinstance(each, Function)]
            inside = {id(part) for function in functions for part in ast.walk(function)}
            for reference, name in self._references(node):
                if id(reference) not in inside and name not in ERRORS and not self._is_annotation(reference):
                    raise KopfError(
                        f"{self.file.path}:{reference.lineno}: {name} is used outside of a function: "
                        "remove it before the conversion"
                    )
            if functions:
                for function in functions:
                    self._translate(function, None)
            else:
                self._rename_errors(node)

    def translate_handler(self, handler: KopfHandler, decisions: list[MigrationItem]) -> Translated:
        """Translate a handler, and put the decisions that its decorators and arguments need at its top."""
        node = handler.node
        for decorator in node.decorator_list:
            self._remove_lines(decorator.lineno, decorator.end_lineno or decorator.lineno)
        reactions = ", ".join(dict.fromkeys(each.reaction for each in handler.registrations))
        first = min(each.line for each in handler.registrations)
        self._insert(self._starts[node.lineno - 1], f"# kopf: {reactions} ({self.file.path}:{first})\n")
        return self._translate(node, decisions)

    def remove_handler(self, handler: KopfHandler) -> None:
        """Remove a function whose work kubewright does itself."""
        node = handler.node
        first = min(each.lineno for each in node.decorator_list)
        self._remove_lines(first, node.end_lineno or node.lineno)

    def append(self, name: str, text: str) -> None:
        """Add a function at the end of the module, once."""
        self._appended[name] = text

    def _translate(self, node: Function, decisions: list[MigrationItem] | None) -> Translated:
        is_handler = decisions is not None
        found = Translated(
            isinstance(node, ast.AsyncFunctionDef), decisions=[] if decisions is None else decisions
        )
        replaced: list[ast.AST] = []
        applied = self._applied_children(node) if is_handler else {}
        calls = [each for each in ast.walk(node) if isinstance(each, ast.Call)]
        for call, kind in applied.values():
            replaced.append(call)
            found.owns.append(kind)
            found.needs_context = True
        for call in calls:
            name = self.file.dotted(call.func)
            if isinstance(call.func, ast.Name) and call.func.id in self._error_classes:
                self._error_arguments(call, self._error_classes[call.func.id])
            if name in _EVENTS and self._event(call, name, node if is_handler else None, found):
                replaced.append(call)
                found.needs_context = found.records_events = True
        hidden = {
            id(part)
            for each in replaced
            for part in ast.walk(each)
            if not (isinstance(part, ast.Name) and part.id in applied)
        }
        for child, (call, _) in applied.items():
            await_ = "" if isinstance(self._parents.get(call), ast.Await) else "await "
            self._replace(call, f"{await_}ctx.apply({child})")
        for reference, name in self._references(node):
            if id(reference) not in hidden:
                self._reference(reference, name, node, found, applied, is_handler=is_handler)
        self._remove_unused_clients(node, hidden)
        if found.needs_context:
            found.added.append("ctx: kw.Context")
            if not found.is_async:
                self._insert(self._start(node), "async ")
                self._wrap_blocking(node, hidden, found)
                found.is_async = True
        if found.added:
            self._add_parameters(node, found.added)
        self._list_client_calls(node, hidden)
        if is_handler:
            found.effects = list(self._calls.effects(node, hidden, set()))
        elif found.decisions:
            self.raise_at_top(node, found.decisions)
        return found

    def raise_at_top(self, node: Function, decisions: list[MigrationItem]) -> None:
        """Write the decisions of a function as TODOs and raise NotImplementedError before its body."""
        body = [each for each in node.body if not _is_docstring(each, node)]
        first = body[0] if body else node.body[-1]
        indent = " " * first.col_offset
        labels = ", ".join(item.label for item in decisions)
        lines = [f"{indent}# TODO({item.label}): {item.reason}" for item in decisions]
        lines.append(f'{indent}raise NotImplementedError("{node.name}: decide {labels} of MIGRATION.md")')
        offset = self._starts[first.lineno - 1] if body else self._starts[first.end_lineno or first.lineno]
        self._insert(offset, "\n".join(lines) + "\n")

    # References to kopf.

    def _references(self, node: ast.AST) -> Iterator[tuple[ast.Attribute | ast.Name, str]]:
        """Yield the references to kopf below a node, decorators aside."""
        skipped = {
            id(part)
            for each in ast.walk(node)
            if isinstance(each, Function)
            for decorator in each.decorator_list
            for part in ast.walk(decorator)
        }
        for each in ast.walk(node):
            if not isinstance(each, ast.Attribute | ast.Name) or id(each) in skipped:
                continue
            name = self.file.dotted(each)
            if name.startswith("kopf.") and not isinstance(self._parents.get(each), ast.Attribute):
                yield each, name

    def _reference(
        self,
        node: ast.Attribute | ast.Name,
        name: str,
        function: Function,
        found: Translated,
        applied: dict[str, tuple[ast.Call, KindClass]],
        *,
        is_handler: bool,
    ) -> None:
        parent = self._parents.get(node)
        call = parent if isinstance(parent, ast.Call) and parent.func is node else None
        if self._is_annotation(node):
            self._replace(node, "Any")
        elif name in ERRORS:
            self._replace(node, ERRORS[name])
            if name == "kopf.AdmissionError":
                self._support.add("AdmissionError")
            elif call is not None:
                self._error_arguments(call, name)
        elif (
            name in _SUPPORT_CALLS
            and call is not None
            and self._owner_call(call, name, found, applied, is_handler)
        ):
            self._replace(node, _SUPPORT_CALLS[name])
            self._support.add(_SUPPORT_CALLS[name])
        else:
            self._unsupported(node, name, function, found)

    def _unsupported(self, node: ast.expr, name: str, function: Function, found: Translated) -> None:
        self._support.add("kopf")
        if isinstance(node, ast.Name):
            self._replace(node, f"kopf.{name.partition('.')[2]}")
        page = "how-to/events.md" if name in _EVENTS else "how-to/from-kopf.md"
        found.decisions.append(
            self._report.decide(
                self.file.path,
                node.lineno,
                f"`{name}` in `{function.name}`",
                f"{name} has no counterpart here",
                page,
            )
        )

    def _error_arguments(self, call: ast.Call, name: str) -> None:
        """Add the reason and delay of RetryLater; kopf's default delay is 60 seconds."""
        if not call.args:
            self._insert(self._open(call.func) + 1, '"to be repeated"' + (", " if call.keywords else ""))
        if name != "kopf.TemporaryError":
            return
        delay = next((word for word in call.keywords if word.arg == "delay"), None)
        if delay is not None:
            at = self._source.rfind(b"delay", 0, self._start(delay.value))
            self._edits.append((at, at + len(b"delay"), "after"))
        elif len(call.args) > 1:
            self._insert(self._start(call.args[1]), "after=")
        else:
            last = call.args[-1] if call.args else None
            at = self._end(last) if last is not None else self._open(call.func) + 1
            self._insert(at, ", after=60")

    def _owner_call(
        self,
        call: ast.Call,
        name: str,
        found: Translated,
        applied: dict[str, tuple[ast.Call, KindClass]],
        is_handler: bool,
    ) -> bool:
        """Pass the owner, and set the owner reference directly if the child is not applied by the context."""
        owner = next((word for word in call.keywords if word.arg == "owner"), None)
        child = call.args[0] if call.args else None
        if child is None or any(word.arg in ("forced", "strict", "nested") for word in call.keywords):
            return False
        if name == "kopf.label":
            return not (len(call.args) == 1 and not any(word.arg == "labels" for word in call.keywords))
        if owner is None and len(call.args) == 1:
            if not is_handler:
                return False
            self._body_parameter(call, found)
            self._insert(self._end(child), ", body")
        elif owner is not None:
            at = self._source.rfind(b"owner", 0, self._start(owner.value))
            self._edits.append((at, self._start(owner.value), ""))
        if not (isinstance(child, ast.Name) and child.id in applied):
            self._insert(self._end(call) - 1, ", reference=True")
        return True

    def _body_parameter(self, call: ast.Call, found: Translated) -> None:
        node: ast.AST | None = call
        while node is not None and not isinstance(node, Function):
            node = self._parents.get(node)
        if isinstance(node, Function) and "body" not in parameters(node) and "body: Any" not in found.added:
            found.added.append("body: Any")

    def _event(self, call: ast.Call, name: str, handler: Function | None, found: Translated) -> bool:
        """Translate an Event about the handled object to the context; return False if it cannot be translated safely."""
        words = {word.arg: word.value for word in call.keywords}
        about = call.args[0] if call.args else None
        if handler is None or not (isinstance(about, ast.Name) and about.id == "body" and "reason" in words):
            return False
        kind = words.get("type")
        if name == "kopf.event" and not (isinstance(kind, ast.Constant) and isinstance(kind.value, str)):
            return False
        is_normal = name == "kopf.info" or (isinstance(kind, ast.Constant) and kind.value == "Normal")
        if (
            name == "kopf.exception"
            or "exc" in words
            or any(isinstance(self._parents.get(node), ast.Lambda) for node in ast.walk(call))
        ):
            return False
        reason = self.text_of(words["reason"])
        message = self.text_of(words["message"]) if "message" in words else reason
        self._replace(call, f"ctx.{'event' if is_normal else 'warn'}({reason}, {message})")
        return True

    def _rename_errors(self, node: ast.AST) -> None:
        for reference, name in self._references(node):
            self._replace(reference, "Any" if self._is_annotation(reference) else ERRORS[name])

    def _is_annotation(self, node: ast.AST) -> bool:
        child, parent = node, self._parents.get(node)
        while parent is not None and not isinstance(parent, ast.stmt):
            if isinstance(parent, ast.arg):
                return True
            child, parent = parent, self._parents.get(parent)
        if isinstance(parent, Function):
            return parent.returns is child
        return isinstance(parent, ast.AnnAssign) and parent.annotation is child

    # Children.

    def _applied_children(self, node: Function) -> dict[str, tuple[ast.Call, KindClass]]:
        """Return the adopted variables that one statement creates with a client, and the call that does so."""
        adopted = {
            call.args[0].id
            for call in ast.walk(node)
            if isinstance(call, ast.Call)
            and self.file.dotted(call.func) in ("kopf.adopt", "kopf.append_owner_reference")
            and call.args
            and isinstance(call.args[0], ast.Name)
            and all(word.arg == "owner" and ast.unparse(word.value) == "body" for word in call.keywords)
        }
        found: dict[str, list[tuple[ast.Call, KindClass]]] = {}
        for call in ast.walk(node):
            kind = self._calls.created_kind(call) if isinstance(call, ast.Call) else None
            if kind is None or not isinstance(call, ast.Call) or self._nested(call, node):
                continue
            parent = self._parents.get(call)
            parent = self._parents.get(parent) if isinstance(parent, ast.Await) else parent
            names = {each.id for each in ast.walk(call) if isinstance(each, ast.Name)}
            for child in adopted & names if isinstance(parent, ast.Expr) else ():
                found.setdefault(child, []).append((call, kind))
        return {child: calls[0] for child, calls in found.items() if len(calls) == 1}

    def _remove_unused_clients(self, node: Function, hidden: set[int]) -> None:
        """Remove the assignments of clients whose only calls became `ctx.apply`."""
        names = [each for each in ast.walk(node) if isinstance(each, ast.Name)]
        before = {each.id for each in names if isinstance(each.ctx, ast.Load)}
        after = {each.id for each in names if isinstance(each.ctx, ast.Load) and id(each) not in hidden}
        for statement in ast.walk(node):
            if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
                continue
            target = statement.targets[0]
            if (
                isinstance(target, ast.Name)
                and target.id in before - after
                and isinstance(statement.value, ast.Call)
            ):
                self._remove_lines(statement.lineno, statement.end_lineno or statement.lineno)

    def _nested(self, node: ast.AST, function: Function) -> bool:
        """Return True if a function or lambda inside the function contains the node."""
        parent = self._parents.get(node)
        while parent is not None and parent is not function:
            if isinstance(parent, Function | ast.Lambda):
                return True
            parent = self._parents.get(parent)
        return False

    # Calls.

    def _wrap_blocking(self, node: Function, hidden: set[int], found: Translated) -> None:
        """Run the blocking calls of a handler that became `async def` in a thread."""
        tainted = self._calls.tainted(node)
        for call in ast.walk(node):
            if (
                not isinstance(call, ast.Call)
                or id(call) in hidden
                or not self._calls.is_blocking(call, tainted, set())
            ):
                continue
            if self._nested(call, node):
                self._report.review(
                    self.file.path,
                    call.lineno,
                    f"`{self.text_of(call.func)}` in `{node.name}` blocks the event loop",
                    "it is called in a nested function, which cannot await `ctx.run_sync`",
                    "how-to/embedding.md",
                )
                continue
            parent = self._parents.get(call)
            wrapped = (
                isinstance(parent, ast.Attribute | ast.Subscript) and getattr(parent, "value", None) is call
            )
            self._insert(self._start(call), "(await ctx.run_sync(" if wrapped else "await ctx.run_sync(")
            at = self._open(call.func)
            comma = "," if self._source[at + 1 : at + 2] in (b"\n", b"\r") else ", "
            self._edits.append((at, at + 1, comma if call.args or call.keywords else ""))
            if wrapped:
                self._insert(self._end(call), ")")

    def _open(self, func: ast.expr) -> int:
        return self._source.index(b"(", self._end(func))

    def _list_client_calls(self, node: Function, hidden: set[int]) -> None:
        tainted = self._calls.tainted(node)
        for call in ast.walk(node):
            if (
                not isinstance(call, ast.Call)
                or id(call) in hidden
                or not isinstance(call.func, ast.Attribute)
            ):
                continue
            method = CLIENT_METHOD.fullmatch(call.func.attr)
            kind = builtin_by_kind(camel(method["kind"])) if method else None
            is_client = self._calls.is_client_call(call, tainted)
            if not (kind or is_client) or call.func.attr[:1].isupper():
                continue
            self._report.client_call(self.file.path, call.lineno, f"{self.text_of(call.func)}(...)")
            if kind and method:
                subresource = (method["subresource"] or "").removeprefix("_")
                self.client_needs[kind.reference, _VERBS[method["verb"]], subresource] = kind

    # The text.

    def _add_parameters(self, node: Function, added: list[str]) -> None:
        at = self._source.index(b"(", self._source.index(node.name.encode(), self._start(node))) + 1
        has_more = bool(parameters(node)) or node.args.kwarg is not None or node.args.vararg is not None
        if self._source[at : at + 1] in (b"\n", b"\r"):
            line = self._source[at:].lstrip(b"\r\n")
            indent = line[: len(line) - len(line.lstrip(b" "))].decode()
            self._insert(at, "".join(f"\n{indent}{each}," for each in added))
        else:
            self._insert(at, ", ".join(added) + (", " if has_more else ""))

    def _remove_lines(self, first: int, last: int) -> None:
        self._edits.append((self._starts[first - 1], self._starts[min(last, len(self._starts) - 1)], ""))

    def text(self, package: str, siblings: set[str]) -> str:
        """Return the module with all edits, its imports adjusted."""
        result = self._source
        # Insertions at one place keep their order; a later edit never moves an earlier one.
        order = sorted(
            enumerate(self._edits), key=lambda each: (each[1][0], each[1][1], each[0]), reverse=True
        )
        for _, (start, end, text) in order:
            result = result[:start] + text.encode() + result[end:]
        body = result.decode().rstrip() + "\n" + "".join(f"\n\n{each}" for each in self._appended.values())
        return with_imports(body, package, siblings, self._support)


def _is_docstring(node: ast.stmt, function: Function) -> bool:
    return (
        node is function.body[0]
        and isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )
