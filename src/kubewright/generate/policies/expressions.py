"""Translate Python expressions of admission functions to CEL.

An expression is translated only if it means the same in both languages. An expression that may raise an exception or give
another result is not: a field that may be None, a sum that may need more than 64 bits, a division whose result depends on
the sign.
"""

import ast
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, cast

from kubewright.generate.policies.values import (
    BOOL,
    INT64,
    MOST_CHARACTERS,
    NONE,
    OPERATION,
    STR,
    CelCondition,
    CelValue,
    JsonPath,
    KnownFacts,
    Untranslatable,
    ValueShape,
    conjunction,
    entry_of,
    field_of,
    grouped,
    literal,
    negated,
    negation,
)
from kubewright.schema.json_tree import additional, items

BoundName = CelValue | CelCondition
_BUILTINS: dict[str, Any] = {"any": any, "all": all, "len": len}
_OPERATIONS = ("create", "update", "delete", "connect")
_ORDER: dict[type[ast.cmpop], str] = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_REQUEST: dict[str, tuple[str, ValueShape, str]] = {
    "request.name": ("request.name", STR, "''"),
    "request.namespace": ("request.namespace", STR, "''"),
    "request.dry_run": ("request.dryRun", BOOL, "false"),
    "request.user.name": ("request.userInfo.username", STR, "''"),
    "request.user.uid": ("request.userInfo.uid", STR, "''"),
    "request.user.groups": ("request.userInfo.groups", ValueShape("list", list, STR), "[]"),
}
"""The fields of the request that are translated: the CEL, the type, and the value if the field is absent."""
_VARIABLE = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_TAKEN = frozenset({"object", "oldObject", "request", "params", "variables", "authorizer", "namespaceObject"})
_CEL_WORDS = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "namespace",
        "null",
        "package",
        "return",
        "true",
        "var",
        "void",
        "while",
        "size",
        "has",
        "all",
        "exists",
        "exists_one",
        "map",
        "filter",
        "int",
        "uint",
        "double",
        "string",
        "bytes",
        "bool",
        "list",
        "type",
        "dyn",
        "duration",
        "timestamp",
    ]
)


@dataclass(frozen=True, slots=True)
class TranslationScope:
    """The names that an expression may use, and the facts that are known at its position."""

    names: Mapping[str, BoundName]
    request: str = ""
    """The name of the parameter with the request."""
    resolve: Callable[[ast.expr], Any] = field(default=lambda node: None)
    """Return the Python object of a global name, or raise Untranslatable."""
    facts: KnownFacts = frozenset()
    reads: set[JsonPath] = field(default_factory=set[JsonPath])
    written: frozenset[JsonPath] = frozenset()
    """The fields that may have been set before."""

    def knowing(self, facts: KnownFacts) -> "TranslationScope":
        """Return the scope with additional facts."""
        return replace(self, facts=self.facts | facts)

    def naming(self, names: Mapping[str, BoundName]) -> "TranslationScope":
        """Return the scope with additional names."""
        return replace(self, names={**self.names, **names})


def condition(node: ast.expr, scope: TranslationScope) -> CelCondition:
    """Translate an expression of which only the truth value is used, such as the test of an `if`."""
    match node:
        case ast.BoolOp(op=ast.And(), values=parts):
            return _all_of([_later(part) for part in parts], scope)
        case ast.BoolOp(op=ast.Or(), values=parts):
            return negated(_all_of([_later(part, opposite=True) for part in parts], scope))
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return negated(condition(operand, scope))
        case ast.Compare(left=left, ops=operators, comparators=right):
            operands = [left, *right]
            pairs = [
                _comparing(node, operands[index], operator, operands[index + 1])
                for index, operator in enumerate(operators)
            ]
            return _all_of(pairs, scope)
        case ast.IfExp(test=test, body=body, orelse=other):
            guard = condition(test, scope)
            then, otherwise = (
                condition(body, scope.knowing(guard.yes)),
                condition(other, scope.knowing(guard.no)),
            )
            return CelCondition(f"({guard.cel} ? {then.cel} : {otherwise.cel})")
        case ast.Name(id=name) if isinstance(found := scope.names.get(name), CelCondition):
            return found
        case ast.Call():
            called = _test_call(node, scope)
            return called if called is not None else _truth(value(node, scope), scope, node)
        case _:
            return _truth(value(node, scope), scope, node)


_Later = Callable[[TranslationScope], CelCondition]


def _later(node: ast.expr, *, opposite: bool = False) -> _Later:
    return lambda scope: negated(condition(node, scope)) if opposite else condition(node, scope)


def _comparing(node: ast.expr, left: ast.expr, operator: ast.cmpop, right: ast.expr) -> _Later:
    return lambda scope: _compared(node, left, operator, right, scope)


def _all_of(parts: Sequence[_Later], scope: TranslationScope) -> CelCondition:
    """Join conditions with `and`; each is translated with the facts that follow from those before it."""
    made: list[CelCondition] = []
    for part in parts:
        made.append(part(scope))
        scope = scope.knowing(made[-1].yes)
    yes = frozenset[str]().union(*(each.yes for each in made))
    no = made[0].no if len(made) == 1 else frozenset[str]()
    return CelCondition(conjunction([each.cel for each in made]), yes, no)


def _truth(found: CelValue, scope: TranslationScope, node: ast.expr) -> CelCondition:
    """Return the condition under which Python treats a value as true."""
    inner = found.cel
    match found.shape.name:
        case "bool":
            test = inner
        case "str":
            test = f"{inner} != ''"
        case "int":
            test = f"{inner} != 0"
        case "list" | "map":
            _use(found, scope)
            test = f"size({inner}) > 0"
        case "struct" if not any(hasattr(found.shape.cls, name) for name in ("__bool__", "__len__")):
            test = "true"
        case "none":
            return CelCondition("false")
        case _:
            raise _not_translated(f"a value of type {found.shape.shown}", node)
    present = found.may_be_none(scope.facts)
    return CelCondition(conjunction([*present, test]), frozenset(present))


def _compared(
    node: ast.expr, left: ast.expr, operator: ast.cmpop, right: ast.expr, scope: TranslationScope
) -> CelCondition:
    if isinstance(operator, ast.In | ast.NotIn):
        found = _contained(value(left, scope), right, scope, node)
        return found if isinstance(operator, ast.In) else negated(found)
    first, second = value(left, scope), value(right, scope)
    if isinstance(operator, ast.Is | ast.IsNot) and NONE not in (first.shape, second.shape):
        raise Untranslatable("`is` is translated only with None", node.lineno)
    if isinstance(operator, ast.Eq | ast.NotEq | ast.Is | ast.IsNot):
        found = _equal(first, second, scope, node)
        return found if isinstance(operator, ast.Eq | ast.Is) else negated(found)
    _require(first, "int", scope, left)
    _require(second, "int", scope, right)
    return CelCondition(f"{first.cel} {_ORDER[type(operator)]} {second.cel}")


def _equal(first: CelValue, second: CelValue, scope: TranslationScope, node: ast.expr) -> CelCondition:
    if first.shape == NONE:
        first, second = second, first
    there = first.may_be_none(scope.facts)
    if second.shape == NONE:
        if first.shape == NONE:
            return CelCondition("true")
        return negated(CelCondition(conjunction(there), frozenset(there)))
    first, second = _operations(first, second, node), _operations(second, first, node)
    if not _comparable(first.shape, second.shape):
        raise Untranslatable(
            f"a comparison of {first.shape.shown} with {second.shape.shown} is not translated", node.lineno
        )
    _use(first, scope)
    _use(second, scope)
    same = f"{first.cel} == {second.cel}"
    also = second.may_be_none(scope.facts)
    if there and also:
        one, other = conjunction(there), conjunction(also)
        return CelCondition(f"({one} ? {conjunction([other, same])} : {negation(other)})")
    return CelCondition(conjunction([*there, *also, same]), frozenset((*there, *also)))


def _operations(found: CelValue, other: CelValue, node: ast.expr) -> CelValue:
    """Return the constant in the API server's spelling of operations, if it is compared with `request.operation`."""
    if found.shape.name != "str" or other.shape != OPERATION:
        return found
    if found.constant not in _OPERATIONS:
        raise Untranslatable(f"request.operation is one of {', '.join(_OPERATIONS)}", node.lineno)
    return CelValue(literal(str(found.constant).upper()), OPERATION)


def _comparable(first: ValueShape, second: ValueShape) -> bool:
    if first.name != second.name or first.name in ("struct", "other", "none"):
        return False
    if first.name == "enum":
        return first.cls is second.cls
    if {first.cls, second.cls} & {tuple, set}:
        return False  # Python's lists are equal to lists only
    if first.element is not None and second.element is not None:
        return first.element.name in ("bool", "int", "str") and first.element.name == second.element.name
    return True


def _contained(item: CelValue, container: ast.expr, scope: TranslationScope, node: ast.expr) -> CelCondition:
    """Translate `item in container`."""
    if isinstance(container, ast.Tuple | ast.List | ast.Set):
        found = [value(each, scope) for each in container.elts]
        return (
            negated(_all_of([_unequal(item, each, node) for each in found], scope))
            if found
            else CelCondition("false")
        )
    there = item.may_be_none(scope.facts)
    whole = value(container, scope)
    if whole.may_be_none(scope.facts):
        raise Untranslatable(
            f"{ast.unparse(container)} may be None here: compare it with None first", node.lineno
        )
    if whole.shape.name == "map" and item.shape.name == "str":
        if isinstance(item.constant, str):
            entry = entry_of(whole, item.constant)
            note_read(entry.path, scope, node)
            return CelCondition(entry.present[0], frozenset(entry.present))
        _use(whole, scope)
        test = f"({item.cel} in {whole.cel})"
    elif (
        whole.shape.name == "list"
        and whole.shape.element is not None
        and _comparable(item.shape, whole.shape.element)
    ):
        _use(whole, scope)
        test = f"({item.cel} in {whole.cel})"
    elif whole.shape.name == "str" and item.shape.name == "str":
        if there:
            raise Untranslatable("`None in text` raises an exception: compare with None first", node.lineno)
        return CelCondition(f"{whole.cel}.contains({item.cel})")
    else:
        raise Untranslatable(
            f"`in` is not translated for {item.shape.shown} in {whole.shape.shown}", node.lineno
        )
    return CelCondition(conjunction([*there, test]), frozenset(there))


def _unequal(item: CelValue, other: CelValue, node: ast.expr) -> _Later:
    return lambda scope: negated(_equal(item, other, scope, node))


def _test_call(node: ast.Call, scope: TranslationScope) -> CelCondition | None:
    """Translate any(), all(), startswith() and endswith()."""
    if isinstance(node.func, ast.Name) and node.func.id in ("any", "all") and _is_builtin(node.func, scope):
        match node.args:
            case [ast.GeneratorExp(elt=element, generators=[generator])] if not node.keywords:
                return _quantified(node, element, generator, scope)
            case _:
                raise Untranslatable(
                    f"{node.func.id}() is translated with one generator expression over one list or dict",
                    node.lineno,
                )
    match node:
        case ast.Call(
            func=ast.Attribute(value=text, attr="startswith" | "endswith" as name),
            args=[argument],
            keywords=[],
        ):
            whole, part = value(text, scope), value(argument, scope)
            _require(whole, "str", scope, text)
            _require(part, "str", scope, argument)
            word = "startsWith" if name == "startswith" else "endsWith"
            return CelCondition(f"{whole.cel}.{word}({part.cel})")
        case _:
            return None


def _quantified(
    node: ast.Call, element: ast.expr, generator: ast.comprehension, scope: TranslationScope
) -> CelCondition:
    if generator.is_async:
        raise Untranslatable("`async for` is not translated", node.lineno)
    subject, view = generator.iter, ""
    match subject:
        case ast.Call(
            func=ast.Attribute(value=base, attr="items" | "keys" | "values" as view), args=[], keywords=[]
        ):
            subject = base
        case _:
            pass
    whole = value(subject, scope)
    if whole.shape.name != ("map" if view else whole.shape.name) or whole.shape.element is None:
        raise Untranslatable(f"a loop over {whole.shape.shown} is not translated", node.lineno)
    if whole.may_be_none(scope.facts):
        raise Untranslatable(
            f"{ast.unparse(subject)} may be None here: compare it with None first", node.lineno
        )
    _use(whole, scope)
    variable, names = _loop_names(generator.target, whole, view, scope)
    inner = scope.naming(names)
    filters = [_later(each) for each in generator.ifs]
    if ast.unparse(node.func) == "any":
        test = _all_of([*filters, _later(element)], inner)
        return CelCondition(f"{whole.cel}.exists({variable}, {test.cel})")
    # all(x for ... if f) is true unless an element passes the filters and fails the test.
    test = negated(_all_of([*filters, _later(element, opposite=True)], inner))
    return CelCondition(f"{whole.cel}.all({variable}, {test.cel})")


def _loop_names(
    target: ast.expr, whole: CelValue, view: str, scope: TranslationScope
) -> tuple[str, dict[str, BoundName]]:
    shape, known = whole.shape.element, whole.schema
    assert shape is not None
    below = None if known is None else additional(known) if whole.shape.name == "map" else items(known)
    match target, view:
        case ast.Name(id=name), "" | "keys":
            variable = _fresh(name, scope)
            return variable, {
                name: CelValue(variable, STR)
                if whole.shape.name == "map"
                else CelValue(variable, shape, schema=below)
            }
        case ast.Name(id=name), "values":
            variable = _fresh("key", scope)
            return variable, {name: CelValue(f"{whole.cel}[{variable}]", shape, schema=below)}
        case ast.Tuple(elts=[ast.Name(id=key), ast.Name(id=name)]), "items" if key != name:
            variable = _fresh(key, scope)
            return variable, {
                key: CelValue(variable, STR),
                name: CelValue(f"{whole.cel}[{variable}]", shape, schema=below),
            }
        case _:
            raise Untranslatable(f"the loop variable {ast.unparse(target)} is not translated", target.lineno)


def _fresh(name: str, scope: TranslationScope) -> str:
    """Return a name for a CEL variable that hides no other name."""
    # The value of a loop over a dict has the loop's variable in its text: `weights[key]`.
    used = (_VARIABLE.findall(each.cel) for each in scope.names.values())
    taken = _TAKEN.union(_CEL_WORDS, *used)
    wanted = name if name.isascii() and not name.startswith("_") else "item"
    number, made = 1, wanted
    while made in taken or any(made in each for each in scope.facts):
        number += 1
        made = f"{wanted}{number}"
    return made


def value(node: ast.expr, scope: TranslationScope) -> CelValue:
    """Translate an expression whose value is used."""
    try:
        return _value(node, scope)
    except Untranslatable as error:
        raise Untranslatable(error.why, error.line or node.lineno) from None


def _value(node: ast.expr, scope: TranslationScope) -> CelValue:
    match node:
        case ast.Constant(value=constant):
            return _constant(constant)
        case ast.Name(id=name):
            found = scope.names.get(name)
            if found is None:
                return _constant(scope.resolve(node))
            return found if isinstance(found, CelValue) else CelValue(grouped(found.cel), BOOL)
        case ast.List() | ast.Tuple() | ast.Set() if all(
            isinstance(each, ast.Constant) for each in node.elts
        ):
            return _constant(ast.literal_eval(node))
        case ast.Attribute(value=inner, attr=name):
            return _attribute(node, inner, name, scope)
        case ast.Subscript(value=inner, slice=ast.Constant(value=str(key))):
            return _subscript(value(inner, scope), key, scope, node)
        case ast.BinOp(left=left, op=operator, right=right):
            return _arithmetic(value(left, scope), operator, value(right, scope), scope, node)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return _arithmetic(_constant(0), ast.Sub(), value(operand, scope), scope, node)
        case ast.JoinedStr(values=parts):
            return CelValue(_joined_text(parts, scope), STR)
        case ast.IfExp(test=test, body=body, orelse=other):
            guard = condition(test, scope)
            return _chosen(
                guard,
                value(body, scope.knowing(guard.yes)),
                value(other, scope.knowing(guard.no)),
                scope,
                node,
            )
        case ast.BoolOp(op=ast.Or(), values=[first, second]):
            guard, then = condition(first, scope), value(first, scope)
            other = value(second, scope.knowing(guard.no))
            if then.shape.name != "bool":
                return _chosen(guard, replace(then, present=()), other, scope, node)
            return _both(node, [other], scope.knowing(guard.no), scope)
        case ast.BoolOp(values=parts):
            return _both(node, [value(part, scope) for part in parts], scope, scope)
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return CelValue(grouped(condition(node, scope).cel), BOOL)
        case ast.Call():
            return _call(node, scope)
        case _:
            raise _not_translated(f"`{ast.unparse(node)}`", node)


def _both(
    node: ast.BoolOp, parts: Sequence[CelValue], known: TranslationScope, scope: TranslationScope
) -> CelValue:
    """Translate `and` and `or` of booleans; each of the parts may be the result, so none may be of another type or None."""
    if any(part.shape.name != "bool" or part.may_be_none(known.facts) for part in parts):
        raise Untranslatable("`and` and `or` are translated where only their truth matters")
    return CelValue(grouped(condition(node, scope).cel), BOOL)


def _constant(constant: Any) -> CelValue:
    match constant:
        case None:
            return CelValue("null", NONE)
        case bool():
            return CelValue(literal(constant), BOOL, constant=constant)
        case Enum():
            return CelValue(literal(constant), ValueShape("enum", type(constant)), constant=constant)
        case int():
            return CelValue(
                literal(constant), ValueShape("int", bounds=(constant, constant)), constant=constant
            )
        case str():
            return CelValue(literal(constant), STR, constant=constant)
        case list() | tuple() | set():
            elements = list(cast("list[Any]", constant))
            shapes = {_constant(each).shape.name for each in elements}
            if len(shapes) != 1 or not shapes <= {"str", "int"}:
                raise Untranslatable(
                    "a list of constants is translated if all are strings or all are integers"
                )
            return CelValue(
                literal(elements),
                ValueShape("list", type(cast("object", constant)), _constant(elements[0]).shape),
                constant=elements,
            )
        case _:
            raise Untranslatable(f"a constant of type {type(constant).__name__} is not translated")


def _attribute(node: ast.Attribute, inner: ast.expr, name: str, scope: TranslationScope) -> CelValue:
    written = ast.unparse(node)
    root = written.partition(".")[0]
    if root == scope.request and root in scope.names:
        rest = f"request{written.removeprefix(root)}"
        if rest == "request.operation":
            return CelValue("request.operation", OPERATION)
        if rest not in _REQUEST:
            raise Untranslatable(f"{written} is not translated")
        cel, shape, absent = _REQUEST[rest]
        return CelValue(f"(has({cel}) ? {cel} : {absent})", shape)
    if root not in scope.names:
        return _constant(scope.resolve(node))
    base = value(inner, scope)
    if base.shape.name != "struct":
        raise Untranslatable(f"{ast.unparse(inner)} is not a model: {written} is not translated")
    found = field_of(base, name, scope.facts, ast.unparse(inner))
    if found.shape.name not in ("map", "struct") or (found.shape.name == "struct" and found.present):
        note_read(found.path, scope, node)
    return found


def _subscript(base: CelValue, key: str, scope: TranslationScope, node: ast.expr) -> CelValue:
    if base.shape.name != "map" or base.may_be_none(scope.facts):
        raise _not_translated(f"`{ast.unparse(node)}`", node)
    entry = entry_of(base, key)
    if entry.may_be_none(scope.facts):
        raise Untranslatable(
            f"{ast.unparse(node)} raises an exception without this key: test `in` first, or use .get()"
        )
    note_read(entry.path, scope, node)
    return replace(entry, present=())


def _arithmetic(
    left: CelValue, operator: ast.operator, right: CelValue, scope: TranslationScope, node: ast.expr
) -> CelValue:
    if isinstance(operator, ast.Add) and left.shape.name == right.shape.name == "str":
        _require(left, "str", scope, node)
        _require(right, "str", scope, node)
        return CelValue(f"({left.cel} + {right.cel})", STR)
    _require(left, "int", scope, node)
    _require(right, "int", scope, node)
    low, high = left.shape.bounds
    least, most = right.shape.bounds
    match operator:
        case ast.Add():
            sign, ends = "+", [low + least, high + most]
        case ast.Sub():
            sign, ends = "-", [low - most, high - least]
        case ast.Mult():
            sign, ends = "*", [low * least, low * most, high * least, high * most]
        case ast.FloorDiv() | ast.Mod() if low >= 0 and least >= 1:
            sign, ends = ("/", [0, high]) if isinstance(operator, ast.FloorDiv) else ("%", [0, most])
        case ast.FloorDiv() | ast.Mod():
            raise Untranslatable(
                "`//` and `%` of negative numbers differ in CEL: give the fields bounds, kw.Field(ge=0) and kw.Field(ge=1)"
            )
        case _:
            raise _not_translated(f"`{ast.unparse(node)}`", node)
    bounds = min(ends), max(ends)
    if bounds[0] < INT64[0] or bounds[1] > INT64[1]:
        raise Untranslatable(
            f"`{ast.unparse(node)}` may need more than 64 bits: give the fields bounds, kw.Field(ge=..., le=...)"
        )
    return CelValue(f"({_whole(left)} {sign} {_whole(right)})", ValueShape("int", bounds=bounds))


def _whole(number: CelValue) -> str:
    """Return a number converted to int: the schema accepts 2.0 as an integer, but in CEL it is a double."""
    return (
        number.cel
        if isinstance(number.constant, int) or number.cel.startswith(("size(", "(int("))
        else f"int({number.cel})"
    )


def _joined_text(parts: Sequence[ast.expr], scope: TranslationScope) -> str:
    texts: list[str] = []
    for part in parts:
        match part:
            case ast.Constant(value=str(text)):
                texts.append(literal(text))
            case ast.FormattedValue(value=inner, conversion=-1, format_spec=None):
                found = value(inner, scope)
                if found.shape.name not in ("str", "int") or found.may_be_none(scope.facts):
                    raise Untranslatable(
                        f"{{{ast.unparse(inner)}}} is translated in a text only if it is a str or an int"
                    )
                texts.append(found.cel if found.shape.name == "str" else f"string({found.cel})")
            case _:
                raise Untranslatable(f"{{{ast.unparse(part)}}} is not translated")
    return f"({' + '.join(texts)})" if len(texts) > 1 else texts[0] if texts else "''"


def _chosen(
    guard: CelCondition, then: CelValue, other: CelValue, scope: TranslationScope, node: ast.expr
) -> CelValue:
    kinds = {then.shape.name, other.shape.name}
    if len(kinds) != 1 or not kinds <= {"str", "int", "bool"}:
        raise _not_translated(f"`{ast.unparse(node)}`", node)
    if then.may_be_none(scope.facts | guard.yes) or other.may_be_none(scope.facts | guard.no):
        raise Untranslatable(f"`{ast.unparse(node)}` may be None")
    bounds = (
        min(then.shape.bounds[0], other.shape.bounds[0]),
        max(then.shape.bounds[1], other.shape.bounds[1]),
    )
    return CelValue(
        f"({guard.cel} ? {then.cel} : {other.cel})", replace(then.shape, bounds=bounds, optional=False)
    )


def _call(node: ast.Call, scope: TranslationScope) -> CelValue:
    tested = _test_call(node, scope)
    if tested is not None:
        return CelValue(grouped(tested.cel), BOOL)
    match node:
        case ast.Call(func=ast.Name(id="len"), args=[argument], keywords=[]) if _is_builtin(node.func, scope):
            whole = value(argument, scope)
            if whole.shape.name not in ("str", "list", "map") or whole.may_be_none(scope.facts):
                raise Untranslatable(
                    f"len({ast.unparse(argument)}) is translated for a str, list or dict that is not None"
                )
            _use(whole, scope)
            return CelValue(f"size({whole.cel})", ValueShape("int", bounds=(0, MOST_CHARACTERS)))
        case ast.Call(
            func=ast.Attribute(value=inner, attr="get"),
            args=[ast.Constant(value=str(key)), *others],
            keywords=[],
        ):
            whole = value(inner, scope)
            if whole.shape.name != "map" or whole.may_be_none(scope.facts) or len(others) > 1:
                raise _not_translated(f"`{ast.unparse(node)}`", node)
            entry = entry_of(whole, key)
            note_read(entry.path, scope, node)
            if not others:
                return entry
            absent = value(others[0], scope)
            guard = CelCondition(entry.present[0], frozenset(entry.present))
            return entry if absent.shape == NONE else _chosen(guard, entry, absent, scope, node)
        case _:
            raise _not_translated(f"`{ast.unparse(node)}`", node)


def _is_builtin(node: ast.expr, scope: TranslationScope) -> bool:
    """Return True if a name refers to a Python builtin, which neither the function nor its module redefines."""
    assert isinstance(node, ast.Name)
    return node.id not in scope.names and scope.resolve(node) is _BUILTINS[node.id]


def _require(found: CelValue, shape: str, scope: TranslationScope, node: ast.expr) -> None:
    if found.shape.name != shape:
        raise Untranslatable(
            f"`{ast.unparse(node)}` is of type {found.shape.shown}, which is not translated here", node.lineno
        )
    if found.may_be_none(scope.facts):
        raise Untranslatable(
            f"`{ast.unparse(node)}` may be None here: compare it with None first", node.lineno
        )


def _use(found: CelValue, scope: TranslationScope) -> None:
    """Record that a whole map or list is read."""
    if found.shape.name in ("map", "list") and found.path:
        note_read(found.path, scope, None)


def note_read(path: JsonPath, scope: TranslationScope, node: ast.AST | None) -> None:
    """Record that a field is read; raise Untranslatable if the function may have set it before."""
    if not path:
        return
    for other in scope.written:
        if overlaps(path, other):
            raise Untranslatable(
                f"it reads {'.'.join(path[1:])} after it has set it", getattr(node, "lineno", 0)
            )
    scope.reads.add(path)


def overlaps(one: JsonPath, other: JsonPath) -> bool:
    """Return True if one path is a prefix of the other."""
    length = min(len(one), len(other))
    return one[:length] == other[:length]


def _not_translated(what: str, node: ast.expr) -> Untranslatable:
    return Untranslatable(f"{what} is not translated", node.lineno)
