"""The macros: has, all, exists, map and their kin, rewritten as loops and presence tests."""

from collections.abc import Callable

from kubewright.schema.cel.ast import Call, Comprehension, CreateList, CreateMap, Expr, Ident, Literal, Select
from kubewright.schema.cel.errors import CompileError, Issue

ACCUMULATOR = "@result"


def expand(source: str, offset: int, function: str, target: Expr | None, args: list[Expr]) -> Expr | None:
    """Return what a macro call stands for, or None where it is an ordinary call."""
    builder = _MACROS.get((function, len(args), target is not None))
    return builder(_Builder(source, offset, function), target, args) if builder else None


class _Builder:
    """Makes the parts of one expansion, all at the place of the call."""

    def __init__(self, source: str, offset: int, function: str) -> None:
        self.source = source
        self.offset = offset
        self.function = function

    def accumulator(self) -> Expr:
        return Ident(self.offset, ACCUMULATOR)

    def constant(self, value: object) -> Expr:
        return Literal(self.offset, value)

    def call(self, function: str, *args: Expr) -> Expr:
        return Call(self.offset, function, list(args))

    def variable(self, arg: Expr, problem: str) -> str:
        if not isinstance(arg, Ident):
            raise CompileError(self.source, [Issue(arg.offset, problem)])
        if arg.name in (ACCUMULATOR, "__result__"):
            raise CompileError(
                self.source, [Issue(arg.offset, "iteration variable overwrites accumulator variable")]
            )
        return arg.name

    def variables(self, args: list[Expr], two: bool) -> tuple[str, str, list[Expr]]:
        if not two:
            return self.variable(args[0], "argument must be a simple name"), "", args[1:]
        first, second = (self.variable(arg, "argument must be a simple name") for arg in args[:2])
        if first == second:
            raise CompileError(self.source, [Issue(args[1].offset, f"duplicate variable name: {first}")])
        return first, second, args[2:]

    def loop(
        self,
        target: Expr,
        names: tuple[str, str],
        init: Expr,
        condition: Expr,
        step: Expr,
        result: Expr,
        parts: list[Expr],
    ) -> Expr:
        return Comprehension(
            self.offset, target, *names, ACCUMULATOR, init, condition, step, result, self.function, parts
        )


_Macro = Callable[[_Builder, Expr | None, list[Expr]], Expr]


def _has(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    field = args[0]
    if not isinstance(field, Select) or field.test:
        raise CompileError(builder.source, [Issue(field.offset, "invalid argument to has() macro")])
    return Select(builder.offset, field.operand, field.field, test=True)


def _quantifier(two: bool) -> _Macro:
    def build(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
        first, second, (predicate,) = builder.variables(args, two)
        assert target is not None
        if builder.function in ("exists_one", "existsOne"):
            init, condition = builder.constant(0), builder.constant(True)
            more = builder.call("_+_", builder.accumulator(), builder.constant(1))
            step = builder.call("_?_:_", predicate, more, builder.accumulator())
            result = builder.call("_==_", builder.accumulator(), builder.constant(1))
        elif builder.function == "all":
            init, result = builder.constant(True), builder.accumulator()
            condition = builder.call("@not_strictly_false", builder.accumulator())
            step = builder.call("_&&_", builder.accumulator(), predicate)
        else:
            init, result = builder.constant(False), builder.accumulator()
            negated = builder.call("!_", builder.accumulator())
            condition = builder.call("@not_strictly_false", negated)
            step = builder.call("_||_", builder.accumulator(), predicate)
        return builder.loop(target, (first, second), init, condition, step, result, [predicate])

    return build


def _mapped(builder: _Builder, target: Expr | None, args: list[Expr], two: bool) -> Expr:
    first, second, rest = builder.variables(args, two)
    transform = rest[-1]
    step = builder.call("_+_", builder.accumulator(), CreateList(builder.offset, [transform]))
    if len(rest) == 2:
        step = builder.call("_?_:_", rest[0], step, builder.accumulator())
    assert target is not None
    init: Expr = CreateList(builder.offset, [])
    return builder.loop(
        target,
        (first, second),
        init,
        builder.constant(True),
        step,
        builder.accumulator(),
        [*rest[:-1], transform],
    )


def _map(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    return _mapped(builder, target, args, two=False)


def _transform_list(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    return _mapped(builder, target, args, two=True)


def _filter(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    name = builder.variable(args[0], "argument is not an identifier")
    kept = builder.call("_+_", builder.accumulator(), CreateList(builder.offset, [args[0]]))
    step = builder.call("_?_:_", args[1], kept, builder.accumulator())
    assert target is not None
    init: Expr = CreateList(builder.offset, [])
    return builder.loop(
        target, (name, ""), init, builder.constant(True), step, builder.accumulator(), [args[1]]
    )


def _transform_map(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    first, second, rest = builder.variables(args, two=True)
    key: list[Expr] = [] if builder.function == "transformMapEntry" else [Ident(builder.offset, first)]
    step = builder.call("cel.@mapInsert", builder.accumulator(), *key, rest[-1])
    if len(rest) == 2:
        step = builder.call("_?_:_", rest[0], step, builder.accumulator())
    assert target is not None
    init: Expr = CreateMap(builder.offset, [])
    return builder.loop(
        target, (first, second), init, builder.constant(True), step, builder.accumulator(), rest
    )


def _optional_map(flat: bool) -> _Macro:
    def build(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
        name = builder.variable(args[0], f"{builder.function}() variable name must be a simple identifier")
        assert target is not None
        has_value = Call(builder.offset, "hasValue", [], target)
        value = Call(builder.offset, "value", [], target)
        bound = Comprehension(
            builder.offset,
            CreateList(builder.offset, []),
            "#unused",
            "",
            name,
            value,
            builder.constant(False),
            Ident(builder.offset, name),
            args[1],
            "bind",
        )
        present: Expr = bound if flat else builder.call("optional.of", bound)
        return builder.call("_?_:_", has_value, present, builder.call("optional.none"))

    return build


def _sort_by(builder: _Builder, target: Expr | None, args: list[Expr]) -> Expr:
    """Rewrite `list.sortBy(x, key)` as a sort by the list of keys."""
    assert target is not None
    name = builder.variable(args[0], "sortBy can only be applied with a simple variable name")
    inner = _Builder(builder.source, builder.offset, "map")
    keys = _mapped(inner, target, [args[0], args[1]], two=False)
    del name
    return Call(builder.offset, "@sortByAssociatedKeys", [keys], target)


_MACROS: dict[tuple[str, int, bool], _Macro] = {
    ("has", 1, False): _has,
    ("map", 2, True): _map,
    ("map", 3, True): _map,
    ("filter", 2, True): _filter,
    ("transformList", 3, True): _transform_list,
    ("transformList", 4, True): _transform_list,
    ("transformMap", 3, True): _transform_map,
    ("transformMap", 4, True): _transform_map,
    ("transformMapEntry", 3, True): _transform_map,
    ("transformMapEntry", 4, True): _transform_map,
    ("optMap", 2, True): _optional_map(flat=False),
    ("optFlatMap", 2, True): _optional_map(flat=True),
    ("sortBy", 2, True): _sort_by,
    **{(name, 2, True): _quantifier(two=False) for name in ("all", "exists", "exists_one", "existsOne")},
    **{(name, 3, True): _quantifier(two=True) for name in ("all", "exists", "existsOne")},
}
