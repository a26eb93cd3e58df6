"""Translate the source of admission functions: the findings of validating ones, the changes of mutating ones."""

import ast
import builtins
import inspect
import linecache
import textwrap
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import Enum
from types import FunctionType, ModuleType
from typing import Any, Literal, cast

import msgspec

from kubewright.api import kind_of, problems, to_wire
from kubewright.api.model import is_builtin
from kubewright.generate.policies.expressions import BoundName, TranslationScope, condition, note_read, value
from kubewright.generate.policies.values import (
    NONE,
    CelCondition,
    CelValue,
    JsonPath,
    Untranslatable,
    ValueShape,
    conjunction,
    disjunction,
    entry_of,
    field_of,
    literal,
    negated,
    negation,
)
from kubewright.schema.json_tree import Schema
from kubewright.schema.structural import structural
from kubewright.webhook import (
    Admission,
    denied,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    warning,
)

PolicyFindingKind = Literal["Invalid", "Forbidden", "Warning"]
_TITLES: dict[Any, str] = {
    invalid: "Invalid value",
    required: "Required value",
    forbidden: "Forbidden",
    duplicate: "Duplicate value",
    not_supported: "Unsupported value",
}
_FINDINGS: tuple[Any, ...] = (*_TITLES, denied, warning)
_WRITABLE = ("labels", "annotations")
"""The parts of the metadata that a policy may change."""


@dataclass(frozen=True, slots=True)
class PolicyFinding:
    """A finding of a validating function, with its condition."""

    kind: PolicyFindingKind
    when: str
    message: str
    """Text in CEL; a literal if it is always the same."""
    constant: str | None
    """The message, if it is always the same."""


@dataclass(frozen=True, slots=True)
class DefaultedField:
    """A field that a mutating function sets, with its condition."""

    when: str
    path: JsonPath
    value: str
    missing_parents: tuple[tuple[JsonPath, str], ...]
    """Objects that must be created first, each with the condition under which the JSON has it."""


@dataclass(frozen=True, slots=True)
class TranslatedFunction:
    """A function translated to CEL."""

    findings: Sequence[PolicyFinding] = ()
    changes: Sequence[DefaultedField] = ()
    reads: frozenset[JsonPath] = frozenset()

    @property
    def writes(self) -> frozenset[JsonPath]:
        """Return the fields that the function sets."""
        return frozenset(change.path for change in self.changes)


def source_of(webhook: Admission[Any]) -> tuple[str, int]:
    """Return the file and line of a webhook's function, if they are known."""
    code = getattr(webhook.function, "__code__", None)
    return (code.co_filename, code.co_firstlineno) if code is not None else ("", 0)


def translate_function(webhook: Admission[Any]) -> TranslatedFunction:
    """Translate the function of a webhook; raise Untranslatable, with the line, if a part has no equivalent in CEL."""
    function, node = _parsed(webhook)
    cls = webhook.kind
    if not isinstance(cls, type) or not issubclass(cls, msgspec.Struct):
        raise Untranslatable("it gets a dictionary: declare the webhook with a class", node.lineno)
    names = [argument.arg for argument in node.args.args]
    on = webhook.on
    if "connect" in on or ("delete" in on and on != ("delete",)):
        raise Untranslatable(
            f"on={list(on)}: declare the webhook for create and update, or for delete only", node.lineno
        )
    shape, schema = ValueShape("struct", cls), schema_of(cls)
    deleting = on == ("delete",)
    subject = CelValue(
        "oldObject" if deleting else "object",
        shape,
        path=("oldObject" if deleting else "object",),
        schema=schema,
    )
    old = CelValue("oldObject", shape, path=("oldObject",), schema=schema)
    if on == ("create",):
        old = CelValue("null", NONE)
    elif "create" in on:
        old = replace(old, present=("request.operation != 'CREATE'",))
    bound: list[BoundName] = [subject, old, CelValue("request", ValueShape("other"))]
    scope = TranslationScope(
        dict(zip(names, bound, strict=False)),
        names[2] if len(names) > 2 else "",
        lambda each: _resolved(each, function),
    )
    reading = _Function(
        webhook,
        function,
        is_generator=inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function),
    )
    reading.run(node.body, (), scope)
    return TranslatedFunction(tuple(reading.findings), tuple(reading.changes), frozenset(scope.reads))


def schema_of(cls: type[msgspec.Struct]) -> Schema | None:
    """Return the schema of a kind whose CRD the operator installs; the CRD of another kind may differ from its class."""
    kind = kind_of(cls)
    return None if kind.builtin or kind.external else structural(cls)


def _parsed(webhook: Admission[Any]) -> tuple[FunctionType, ast.FunctionDef | ast.AsyncFunctionDef]:
    function: Any = webhook.function
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        raise Untranslatable("it is not a plain function")
    line = function.__code__.co_firstlineno
    try:
        lines, _ = inspect.getsourcelines(function)
        tree = ast.parse(textwrap.dedent("".join(lines)))
    except (OSError, SyntaxError, TypeError):
        raise Untranslatable("its source cannot be read", line) from None
    ast.increment_lineno(tree, line - 1)
    node = tree.body[0]
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != function.__code__.co_name:
        raise Untranslatable("it is not declared with `def`", line)
    if len(node.decorator_list) > 1:
        raise Untranslatable("it has another decorator", node.lineno)
    arguments = node.args
    if (
        arguments.vararg
        or arguments.kwarg
        or arguments.kwonlyargs
        or arguments.posonlyargs
        or len(arguments.args) > 3
    ):
        raise Untranslatable(
            "it takes other parameters than the object, the old object and the request", node.lineno
        )
    return function, node


class _Function:
    """Symbolic execution of the body of one function: it tracks conditions instead of values."""

    def __init__(self, webhook: Admission[Any], function: FunctionType, *, is_generator: bool) -> None:
        self._webhook = webhook
        self._function = function
        self._is_generator = is_generator
        self.findings: list[PolicyFinding] = []
        self.changes: list[DefaultedField] = []

    def run(
        self, statements: Sequence[ast.stmt], guards: tuple[str, ...], scope: TranslationScope
    ) -> tuple[tuple[str, ...], TranslationScope] | None:
        """Run statements under guards (conditions); return the guards of what follows, or None after a return."""
        for statement in statements:
            try:
                after = self._statement(statement, guards, scope)
            except Untranslatable as error:
                raise Untranslatable(error.why, error.line or statement.lineno) from None
            if after is None:
                return None
            guards, scope = after
        return guards, scope

    def _statement(
        self, statement: ast.stmt, guards: tuple[str, ...], scope: TranslationScope
    ) -> tuple[tuple[str, ...], TranslationScope] | None:
        match statement:
            case ast.Pass() | ast.Expr(value=ast.Constant()):
                return guards, scope
            case ast.If(test=test, body=body, orelse=other):
                return self._branch(condition(test, scope), body, other, guards, scope)
            case ast.Return(value=None | ast.Constant(value=None)):
                return None
            case ast.Return(value=ast.expr() as returned) if not self._is_generator:
                self._returned(returned, guards, scope)
                return None
            case ast.Expr(value=ast.Yield(value=ast.expr() as found)):
                self._find(found, guards, scope)
                return guards, scope
            case ast.Assign(targets=[ast.Name(id=name)], value=assigned):
                return guards, scope.naming({name: _local(assigned, scope)})
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as assigned):
                return guards, scope.naming({name: _local(assigned, scope)})
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript() as target], value=assigned):
                return guards, self._set(target, value(assigned, scope), guards, scope)
            case ast.Expr(
                value=ast.Call(
                    func=ast.Attribute(value=base, attr="setdefault"), args=[key, assigned], keywords=[]
                )
            ):
                return guards, self._set_default(base, key, assigned, guards, scope)
            case ast.For() | ast.AsyncFor() | ast.While():
                raise Untranslatable("loops are not translated: use any() or all()")
            case ast.Raise() | ast.Assert() | ast.Try():
                raise Untranslatable("exceptions are not translated: return or yield what is wrong")
            case _:
                raise Untranslatable(f"`{ast.unparse(statement).partition(chr(10))[0]}` is not translated")

    def _branch(
        self,
        test: CelCondition,
        body: Sequence[ast.stmt],
        other: Sequence[ast.stmt],
        guards: tuple[str, ...],
        scope: TranslationScope,
    ) -> tuple[tuple[str, ...], TranslationScope] | None:
        otherwise = negated(test)
        then = self.run(body, (*guards, test.cel), scope.knowing(test.yes))
        last = self.run(other, (*guards, otherwise.cel), scope.knowing(test.no))
        if then is None or last is None:
            return last if then is None else then
        ends = [conjunction(each[0][len(guards) :]) for each in (then, last)]
        names: dict[str, BoundName] = {
            name: bound
            for name, bound in then[1].names.items()
            if last[1].names.get(name) is bound and scope.names.get(name, bound) is bound
        }
        written = then[1].written | last[1].written
        merged = replace(scope, names=names, facts=then[1].facts & last[1].facts, written=written)
        if ends == [test.cel, otherwise.cel]:
            return guards, merged
        return (*guards, disjunction(ends)), merged

    def _returned(self, returned: ast.expr, guards: tuple[str, ...], scope: TranslationScope) -> None:
        match returned:
            case ast.List(elts=elements) | ast.Tuple(elts=elements):
                for each in elements:
                    self._find(each, guards, scope)
            case ast.IfExp(test=test, body=body, orelse=other):
                asked = condition(test, scope)
                self._returned(body, (*guards, asked.cel), scope.knowing(asked.yes))
                self._returned(other, (*guards, negated(asked).cel), scope.knowing(asked.no))
            case ast.Constant(value=None):
                return
            case _:
                raise Untranslatable(
                    f"`return {ast.unparse(returned)}` is not translated: return a list of findings"
                )

    def _find(self, node: ast.expr, guards: tuple[str, ...], scope: TranslationScope) -> None:
        if self._webhook.mutates:
            raise Untranslatable(
                "a mutating webhook that also reports findings is not translated: make it two"
            )
        made = _resolved(node.func, self._function) if isinstance(node, ast.Call) else None
        if not isinstance(node, ast.Call) or made not in _FINDINGS:
            raise Untranslatable(
                f"`{ast.unparse(node)}` is not translated: yield kw.admission.invalid(...) or another finding"
            )
        arguments = _arguments(cast("Callable[..., Any]", made), node)
        parts = _message(made, arguments, scope)
        texts = [part.constant for part in parts]
        constant = "".join(map(str, texts)) if msgspec.UNSET not in texts else None
        if constant is not None and (
            not constant.strip() or "\n" in constant or constant != constant.strip()
        ):
            raise Untranslatable("a message must be one line of text")
        message = (
            literal(constant) if constant is not None else " + ".join(part.cel for part in _merged(parts))
        )
        kind: PolicyFindingKind = (
            "Warning" if made is warning else "Forbidden" if made is denied else "Invalid"
        )
        self.findings.append(PolicyFinding(kind, conjunction(guards), message, constant))

    def _set(
        self, target: ast.expr, assigned: CelValue, guards: tuple[str, ...], scope: TranslationScope
    ) -> TranslationScope:
        """Translate `team.spec.lead = ...` and `team.metadata.labels["a"] = ...`."""
        if not self._webhook.mutates:
            raise Untranslatable("a validating webhook that changes the object is not translated")
        match target:
            case ast.Attribute(value=base, attr=name):
                holder = value(base, scope)
                if holder.shape.name != "struct":
                    raise Untranslatable(f"`{ast.unparse(target)}` is not a field of a model")
                found = field_of(holder, name, scope.facts, ast.unparse(base))
                if found.path[1:2] == ("metadata",):
                    raise Untranslatable(
                        f"a policy may change only {' and '.join(_WRITABLE)} of the metadata"
                    )
                _check_sent(holder, name, found, assigned, target)
                parents = self._parents(base, holder, scope)
                when = [*guards]
                if found.exists:
                    if found.path in scope.written:
                        raise Untranslatable(f"`{ast.unparse(target)}` is set twice, and has a default")
                    # While the field is absent and has a default, the function sends nothing if it sets the default.
                    when.append(f"{found.cel} != {assigned.cel}")
            case ast.Subscript(value=base, slice=ast.Constant(value=str(key))):
                holder = value(base, scope)
                found, parents, when = (
                    self._entry(base, holder, key, scope),
                    self._map_parents(base, holder, scope),
                    [*guards],
                )
            case _:
                raise Untranslatable(f"`{ast.unparse(target)}` is not translated")
        if found.shape.name not in ("bool", "int", "str") or found.shape.name != assigned.shape.name:
            raise Untranslatable(
                f"`{ast.unparse(target)}`: only a str, int or bool is translated, got {assigned.shape.shown}"
            )
        if assigned.may_be_none(scope.facts):
            raise Untranslatable(f"`{ast.unparse(target)}` may be set to None")
        if not found.path or found.path[0] != "object":
            raise Untranslatable(f"`{ast.unparse(target)}` is not a field of the object")
        if found.path[1] == "status":
            raise Untranslatable("a status is written by controllers: a policy does not set it")
        # 2.0 is an integer for the schema, and a double for CEL.
        text = f"int({assigned.cel})" if assigned.shape.name == "int" else assigned.cel
        self.changes.append(DefaultedField(conjunction(when), found.path, text, parents))
        return replace(scope, written=scope.written | {found.path})

    def _set_default(
        self,
        base: ast.expr,
        key: ast.expr,
        assigned: ast.expr,
        guards: tuple[str, ...],
        scope: TranslationScope,
    ) -> TranslationScope:
        holder = value(base, scope)
        if holder.shape.name != "map" or not isinstance(key, ast.Constant) or not isinstance(key.value, str):
            raise Untranslatable(f"`{ast.unparse(base)}.setdefault(...)` is not translated")
        entry = self._entry(base, holder, key.value, scope)
        note_read(entry.path, scope, base)
        target = ast.Subscript(value=base, slice=key, ctx=ast.Store())
        return self._set(
            ast.copy_location(target, base),
            value(assigned, scope),
            (*guards, negation(entry.present[0])),
            scope,
        )

    def _entry(self, base: ast.expr, holder: CelValue, key: str, scope: TranslationScope) -> CelValue:
        if holder.shape.name != "map" or holder.may_be_none(scope.facts) or not key:
            raise Untranslatable(f"`{ast.unparse(base)}` is not a dict that can be changed")
        if holder.path[1:2] == ("metadata",) and holder.path[2] not in _WRITABLE:
            raise Untranslatable(f"a policy may change only {' and '.join(_WRITABLE)} of the metadata")
        return entry_of(holder, key)

    def _map_parents(
        self, base: ast.expr, holder: CelValue, scope: TranslationScope
    ) -> tuple[tuple[JsonPath, str], ...]:
        """Return the parents of a map, and the map itself if the JSON may not have it."""
        if not isinstance(base, ast.Attribute):
            raise Untranslatable(f"write out {ast.unparse(base)} where its keys are set")
        above = self._parents(base.value, value(base.value, scope), scope)
        if holder.default:
            raise Untranslatable(f"{ast.unparse(base)} has a default that is not empty")
        return (*above, (holder.path, conjunction(holder.exists))) if holder.exists else above

    def _parents(
        self, base: ast.expr, holder: CelValue, scope: TranslationScope
    ) -> tuple[tuple[JsonPath, str], ...]:
        """Return the objects along a path that the JSON may not have."""
        unknown = tuple(each for each in holder.exists if each not in scope.facts)
        if not unknown:
            return ()
        if to_wire(holder.default):
            raise Untranslatable(
                f"{ast.unparse(base)} may be absent and has defaults: give the field a value first"
            )
        if not isinstance(base, ast.Attribute):
            raise Untranslatable(f"write out {ast.unparse(base)} where its fields are set")
        above = self._parents(base.value, value(base.value, scope), scope)
        return (*above, (holder.path, conjunction(unknown)))


def _check_sent(holder: CelValue, name: str, found: CelValue, assigned: CelValue, target: ast.expr) -> None:
    """Raise Untranslatable for a value that the typed object omits from its JSON, as it is the field's empty default."""
    info = next(each for each in msgspec.structs.fields(holder.shape.cls) if each.name == name)
    default = info.default if info.default_factory is msgspec.NODEFAULT else None
    left_out = default == "" or (is_builtin(holder.shape.cls) and default is not None)
    if left_out and (assigned.constant is msgspec.UNSET or assigned.constant == default):
        raise Untranslatable(
            f"`{ast.unparse(target)}` is left out if it is {default!r}: declare it `{found.shape.name} | None = None`"
        )


def _local(assigned: ast.expr, scope: TranslationScope) -> BoundName:
    """Return the translation of a local variable's value; a comparison keeps the facts that follow from it."""
    if isinstance(assigned, ast.Compare | ast.UnaryOp) and _is_test(assigned):
        return condition(assigned, scope)
    if isinstance(assigned, ast.BoolOp) and all(map(_is_test, assigned.values)):
        return condition(assigned, scope)
    return value(assigned, scope)


def _is_test(node: ast.expr) -> bool:
    """Return True if the value of an expression is a bool."""
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=parts):
            return all(map(_is_test, parts))
        case _:
            return False


def _arguments(function: Callable[..., Any], node: ast.Call) -> dict[str, ast.expr]:
    if any(isinstance(each, ast.Starred) for each in node.args) or any(
        each.arg is None for each in node.keywords
    ):
        raise Untranslatable(f"`{ast.unparse(node)}` is not translated")
    keywords = {str(each.arg): each.value for each in node.keywords}
    try:
        return dict(inspect.signature(function).bind(*node.args, **keywords).arguments)
    except TypeError as error:
        raise Untranslatable(f"`{ast.unparse(node)}`: {error}") from None


def _message(made: Any, arguments: dict[str, ast.expr], scope: TranslationScope) -> list[CelValue]:
    """Return the parts of a finding's message, as in the response of the webhook."""
    if made in (denied, warning):
        return [_text(next(iter(arguments.values())), scope)]
    where = value(arguments["field"], scope)
    if not isinstance(where.constant, str):
        raise Untranslatable("the field of a finding must be a constant text")
    parts = [_plain(f"{where.constant}: {_TITLES[made]}")]
    if "value" in arguments:
        parts += [_plain(": "), _shown(arguments["value"], scope)]
    if made is not_supported and "supported" in arguments:
        supported = value(arguments["supported"], scope).constant
        detail = (
            problems.not_supported("", "", cast("list[Any]", supported)).detail
            if isinstance(supported, list)
            else ""
        )
        if not detail:
            raise Untranslatable("the supported values must be constants")
        parts += [_plain(f": {detail}")]
    elif "detail" in arguments:
        detail = _text(arguments["detail"], scope)
        parts += [_plain(": "), detail] if detail.constant != "" else []
    return parts


def _plain(text: str) -> CelValue:
    return CelValue(literal(text), ValueShape("str"), constant=text)


def _merged(parts: Sequence[CelValue]) -> list[CelValue]:
    """Join adjacent constant texts."""
    made: list[CelValue] = []
    for part in parts:
        if made and isinstance(made[-1].constant, str) and isinstance(part.constant, str):
            made[-1] = _plain(made[-1].constant + part.constant)
        else:
            made.append(part)
    return made


def _text(node: ast.expr, scope: TranslationScope) -> CelValue:
    found = value(node, scope)
    if found.shape.name != "str" or found.may_be_none(scope.facts):
        raise Untranslatable(f"the message `{ast.unparse(node)}` must be a text")
    written = isinstance(node, ast.JoinedStr) and any(isinstance(part, ast.Constant) for part in node.values)
    if not isinstance(found.constant, str) and not written:
        raise Untranslatable(f"the message `{ast.unparse(node)}` may be empty: write a text around it")
    return found


def _shown(node: ast.expr, scope: TranslationScope) -> CelValue:
    """Return a value in the format of the API server's messages."""
    found = value(node, scope)
    if found.may_be_none(scope.facts) or found.shape.name not in ("str", "int", "bool"):
        raise Untranslatable(
            f"the value `{ast.unparse(node)}` is shown in a message only if it is a str, int or bool"
        )
    if found.constant is not msgspec.UNSET:
        return _plain(problems.shown(found.constant))
    return CelValue(
        f"strings.quote({found.cel})" if found.shape.name == "str" else f"string({found.cel})",
        ValueShape("str"),
    )


def _resolved(node: ast.expr, function: FunctionType) -> Any:
    """Return the object of a name outside of the function: a constant, a function or a member of an Enum."""
    match node:
        case ast.Name(id=name):
            if name in function.__code__.co_freevars or name not in function.__globals__:
                found = getattr(builtins, name, None)
                if name in function.__code__.co_freevars or found is None:
                    raise Untranslatable(f"{name} is not a constant of this module", node.lineno)
                return found
            found = function.__globals__[name]
            return (
                found
                if callable(found) or isinstance(found, ModuleType)
                else _declared_constant(function, name, node.lineno)
            )
        case ast.Attribute(value=inner, attr=name):
            holder = _resolved(inner, function)
            if isinstance(holder, ModuleType) or (isinstance(holder, type) and issubclass(holder, Enum)):
                found = getattr(holder, name, None)
                if callable(found) or isinstance(found, ModuleType | Enum):
                    return found
            raise Untranslatable(f"{ast.unparse(node)} is not a constant of this module", node.lineno)
        case _:
            raise Untranslatable(f"`{ast.unparse(node)}` is not translated", node.lineno)


def _declared_constant(function: FunctionType, name: str, line: int) -> Any:
    """Return the literal of a module's constant; a computed value might differ where the operator runs."""
    found = _constants(function.__code__.co_filename).get(name, msgspec.UNSET)
    if found is msgspec.UNSET or found != function.__globals__[name]:
        raise Untranslatable(f"{name} is not assigned once, from a literal, in this module", line)
    return found


def _constants(file: str) -> dict[str, Any]:
    """Return the names that a module assigns exactly once, from a literal, at its top."""
    try:
        tree = ast.parse("".join(linecache.getlines(file)))
    except SyntaxError:
        return {}
    stored = [
        node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    ]
    stored += [name for node in ast.walk(tree) if isinstance(node, ast.Global) for name in node.names]
    found: dict[str, Any] = {}
    for statement in tree.body:
        match statement:
            case (
                ast.Assign(targets=[ast.Name(id=name)], value=assigned)
                | ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as assigned)
            ) if stored.count(name) == 1:
                with suppress(ValueError):
                    found[name] = ast.literal_eval(assigned)
            case _:
                continue
    return found
