"""Closures for the macros that go through lists and maps."""

from collections.abc import Iterable, Iterator
from typing import Any

from kubewright.schema.cel.errors import CostExceeded, EvaluationError, no_such_overload
from kubewright.schema.cel.frames import LIST_COST, Frame, Step
from kubewright.schema.cel.values import Value


def bind(name: str, init: Step, body: Step) -> Step:
    """Give a value a name for the length of an expression."""

    def step(frame: Frame) -> Any:
        value = init(frame)
        shadowed = {name: frame.variables[name]} if name in frame.variables else {}
        frame.variables[name] = value
        try:
            return body(frame)
        finally:
            del frame.variables[name]
            frame.variables.update(shadowed)

    return step


def _turns(frame: Frame, value: Value, names: tuple[str, str], overhead: int) -> Iterator[tuple[Any, Any]]:
    """Go through a list or map, setting the loop's variables and charging each turn."""
    first, second = names
    variables = frame.variables
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(value, list):
        pairs = enumerate(value) if second else ((item, item) for item in value)
    elif isinstance(value, dict):
        pairs = value.items()
    else:
        raise no_such_overload()
    shadowed = {name: variables[name] for name in names if name in variables}
    try:
        for key, item in pairs:
            variables[first] = key
            if second:
                variables[second] = item
            frame.charge(overhead)
            yield key, item
    finally:
        for name in names:
            variables.pop(name, None)
        variables.update(shadowed)


def quantifier(source: Step, names: tuple[str, str], predicate: Step, *, deciding: bool) -> Step:
    """Make `all` or `exists`: one deciding element decides, whatever errors the others give."""

    def step(frame: Frame) -> bool:
        failed: EvaluationError | None = None
        for _ in _turns(frame, source(frame), names, 3):
            try:
                found = predicate(frame)
            except CostExceeded:
                raise
            except EvaluationError as error:
                failed = failed or error
                continue
            if found is deciding:
                return deciding
            if not isinstance(found, bool):
                failed = failed or no_such_overload()
        if failed is not None:
            raise failed
        frame.cost += 1
        return not deciding

    return step


def exactly_one(source: Step, names: tuple[str, str], predicate: Step) -> Step:
    """Make `exists_one`."""

    def step(frame: Frame) -> bool:
        count = sum(1 for _ in _turns(frame, source(frame), names, 1) if _true(predicate(frame)))
        frame.charge(2)
        return count == 1

    return step


def _true(value: Any) -> bool:
    if not isinstance(value, bool):
        raise no_such_overload()
    return value


def filtered(source: Step, names: tuple[str, str], predicate: Step) -> Step:
    """Make `filter`."""

    def step(frame: Frame) -> list[Any]:
        kept: list[Any] = []
        for key, _ in _turns(frame, source(frame), names, 1):
            if _true(predicate(frame)):
                kept.append(key)
                frame.charge(LIST_COST + 2)
        frame.cost += 1
        return kept

    return step


def mapped(source: Step, names: tuple[str, str], parts: list[Step]) -> Step:
    """Make `map` and `transformList`, with or without a condition."""
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> list[Any]:
        result: list[Any] = []
        for _ in _turns(frame, source(frame), names, 1):
            if condition is None or _true(condition(frame)):
                result.append(transform(frame))
                frame.charge(LIST_COST + 1)
        frame.cost += 1
        return result

    return step


def mapped_entries(source: Step, names: tuple[str, str], parts: list[Step], *, whole: bool) -> Step:
    """Make `transformMap` and `transformMapEntry`."""
    transform = parts[-1]
    condition = parts[0] if len(parts) == 2 else None

    def step(frame: Frame) -> dict[Any, Any]:
        result: dict[Any, Any] = {}
        for key, _ in _turns(frame, source(frame), names, 1):
            if condition is not None and not _true(condition(frame)):
                continue
            value = transform(frame)
            for new_key, item in value.items() if whole else ((key, value),):
                if new_key in result:
                    raise EvaluationError(f"insert failed: key {new_key} already exists")
                result[new_key] = item
            frame.charge(2)
        frame.cost += 1
        return result

    return step
