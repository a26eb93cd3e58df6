"""What one call can cost at most."""

import math
from typing import Protocol

from kubewright.schema.cel.ast import Call, Expr, Literal
from kubewright.schema.cel.charges import AUTHORIZATION_CHECK, REGEX_FACTOR, STRING_FACTOR
from kubewright.schema.cel.ranges import ONE, UNBOUNDED, UNKNOWN, Range, capped
from kubewright.schema.cel.types import Type

_MAX_FORMAT_REGEX = 128


class Sizes(Protocol):
    """What a call must know about its arguments."""

    def argument_size(self, node: Expr) -> Range:
        """Return the size of an argument."""
        ...

    def element_size(self, node: Expr) -> tuple[Type | None, Range]:
        """Return type and size of the elements of a list."""
        ...

    def type_of(self, node: Expr) -> Type:
        """Return the type of a node."""
        ...

    def join_entries(self, node: Expr, left: Expr, right: Expr) -> None:
        """Note that a node holds what two others hold."""
        ...


class CallEstimate:
    """The cost of one form of one call."""

    def __init__(
        self, estimator: Sizes, node: Call, overload: str, target: Expr | None, costs: list[Range]
    ) -> None:
        self._estimator = estimator
        self._node = node
        self._overload = overload
        self._target = target
        self._costs = costs

    def estimate(self) -> tuple[Range, Range | None]:
        """Return the cost with that of the arguments, and the size of the result where it is known."""
        known = self._library()
        if known is None:
            known = self._standard()
        if known is not None:
            cost, size, alone = known
            return (cost if alone else cost.plus(self._arguments())), size
        return ONE.plus(self._arguments()), None

    def _arguments(self) -> Range:
        total = Range()
        for cost in self._costs:
            total = total.plus(cost)
        return total

    def _size(self, position: int) -> Range:
        return self._estimator.argument_size(self._node.args[position])

    def _target_size(self) -> Range:
        return self._estimator.argument_size(self._target) if self._target is not None else UNKNOWN

    def _library(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate a function of Kubernetes or of an extension."""
        listed = self._lists()
        if listed is not None:
            return listed
        name, count = self._node.function, len(self._node.args)
        if name == "check":
            return Range(AUTHORIZATION_CHECK, AUTHORIZATION_CHECK), None, False
        if name in _TRAVERSING and self._target is not None:
            return self._traversal()
        if name in ("url", "jsonpatch.escapeKey") and count == 1:
            return self._size(0).scaled(STRING_FACTOR), self._size(0), False
        if name in ("lowerAscii", "upperAscii", "substring", "trim") and self._target is not None:
            return self._target_size().scaled(STRING_FACTOR), self._target_size(), False
        if name == "replace" and self._target is not None and count >= 2:
            return self._target_size().scaled(2 * STRING_FACTOR), self._replaced(), False
        if name == "split" and self._target is not None:
            return self._target_size().scaled(2 * STRING_FACTOR), Range(0, self._split_count()), False
        if name == "join" and self._target is not None:
            size = self._joined()
            return size.scaled(STRING_FACTOR), size, False
        if name in ("find", "findAll") and self._target is not None and count >= 1:
            size = self._target_size()
            cost = size.plus(ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
            return cost, Range(0, size.high), False
        if self._overload == "cidr_ip":
            return None
        if name in _PARSING and count >= 1:
            return self._size(0).scaled(STRING_FACTOR), None, False
        if name == "isCanonical" and count >= 1:
            return self._size(0).scaled(2 * STRING_FACTOR), None, False
        if name in ("containsIP", "containsCIDR") and count >= 1:
            return self._containment(name), None, False
        if name == "validate" and count >= 1:
            cost = self._size(0).scaled(STRING_FACTOR).scaled(_MAX_FORMAT_REGEX * REGEX_FACTOR)
            return cost, None, False
        return None

    def _lists(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate a function of the lists or sets extension."""
        overload, args = self._overload, self._node.args
        if overload.startswith("list_sets_"):
            factor = 2 if overload == "list_sets_equivalent_list" else 1
            return self._size(0).times(self._size(1)).scaled(factor).plus(ONE), None, False
        if overload == "list_distinct":
            size = self._target_size()
            return _list_call(2.0, size.times(size))
        if self._node.function in ("sort", "@sortByAssociatedKeys"):
            size = self._target_size() if self._node.function == "sort" else self._size(0)
            textual = overload.split("_")[1] in ("string", "bytes")
            return _list_call(2.0 + (STRING_FACTOR if textual else 0), size.times(size))
        if overload == "list_reverse":
            return _list_call(1, self._target_size())
        if overload in ("list_flatten", "list_flatten_int"):
            depth = _int_value(args[0], UNBOUNDED) if args else 1
            return _list_call(depth, self._target_size())
        if overload == "lists_range":
            count = _int_value(args[0], UNBOUNDED)
            return _list_call(1, Range(count, count))
        if overload == "list_slice":
            count = max(_int_value(args[1], self._target_size().high) - _int_value(args[0], 0), 0)
            return _list_call(1, Range(count, count))
        return None

    def _traversal(self) -> tuple[Range, Range | None, bool]:
        assert self._target is not None
        kind, size = self._estimator.element_size(self._target)
        if kind is None:
            return self._target_size().scaled(STRING_FACTOR), None, False
        each = ONE
        if kind.kind in ("string", "bytes"):
            each = each.plus(size.scaled(STRING_FACTOR))
        return self._target_size().times(each), None, False

    def _replaced(self) -> Range:
        text, old, new = self._target_size(), self._size(0), self._size(1)
        if old.low == 0:
            most, kept_most = capped(text.high + 1), text.high
        elif new.high <= old.low:
            most, kept_most = 0, text.high
        else:
            most, kept_most = math.ceil(text.high / old.low), 0
        if old.high == 0:
            least, kept_least = capped(text.low + 1), text.low
        elif old.high <= new.low:
            least, kept_least = 0, text.low
        else:
            least, kept_least = math.ceil(text.low / old.high), 0
        return Range(least, most).times(new).plus(Range(kept_least, kept_most))

    def _split_count(self) -> int:
        limit = self._node.args[1] if len(self._node.args) > 1 else None
        if isinstance(limit, Literal) and isinstance(limit.value, int):
            return limit.value if limit.value >= 0 else UNBOUNDED
        return self._target_size().high

    def _joined(self) -> Range:
        assert self._target is not None
        count = self._target_size()
        kind, element = self._estimator.element_size(self._target)
        size = count.times(element) if kind is not None else Range()
        if self._node.args:
            separators = Range(max(count.low - 1, 0), max(count.high - 1, 0))
            size = size.plus(self._size(0).times(separators))
        return size

    def _containment(self, name: str) -> Range:
        address = Range(4, 16)
        cost = address.plus(address).scaled(STRING_FACTOR)
        if name == "containsCIDR":
            cost = cost.plus(address.scaled(STRING_FACTOR)).plus(ONE)
        if self._overload.endswith("_string"):
            cost = cost.plus(self._size(0).scaled(STRING_FACTOR))
        return cost

    def _standard(self) -> tuple[Range, Range | None, bool] | None:
        """Estimate an operator or a function of the language itself."""
        overload, args = self._overload, self._node.args
        if overload == "string_format":
            return self._target_size().scaled(STRING_FACTOR), None, False
        if overload in ("string_to_bytes", "bytes_to_string", "strings_quote"):
            return self._converted(overload)
        if overload in ("starts_with_string", "ends_with_string"):
            return self._size(0).scaled(STRING_FACTOR), None, False
        if overload == "in_list":
            return self._size(1), None, False
        if overload == "matches_string":
            cost = (
                self._target_size().plus(ONE).scaled(STRING_FACTOR).times(self._size(0).scaled(REGEX_FACTOR))
            )
            return cost, None, False
        if overload == "contains_string":
            cost = self._target_size().scaled(STRING_FACTOR).times(self._size(0).scaled(STRING_FACTOR))
            return cost, None, False
        if overload in ("logical_and", "logical_or"):
            left, right = self._costs
            return Range(left.low, left.plus(right).high), None, True
        if overload == "conditional":
            self._estimator.join_entries(self._node, args[1], args[2])
            cost = self._costs[0].plus(self._costs[1].union(self._costs[2]))
            return cost, self._size(1).union(self._size(2)), True
        if overload in ("add_string", "add_bytes", "add_list"):
            size = self._size(0).plus(self._size(1))
            self._estimator.join_entries(self._node, args[0], args[1])
            return (ONE if overload == "add_list" else size.scaled(STRING_FACTOR)), size, False
        if overload in _COMPARED:
            return self._comparison(), None, False
        return None

    def _converted(self, overload: str) -> tuple[Range, Range | None, bool]:
        size = self._size(0)
        result = {
            "string_to_bytes": Range(size.low, capped(size.high * 4)),
            "bytes_to_string": Range(size.low // 4, size.high),
            "strings_quote": Range(capped(size.low + 2), capped(size.high * 2 + 2)),
        }[overload]
        return size.scaled(STRING_FACTOR), result, False

    def _comparison(self) -> Range:
        left, right = (self._estimator.type_of(arg) for arg in self._node.args)
        if self._node.function == "_==_" and left == right and left.name in _OWN_TYPES:
            return ONE
        most = min(self._size(0).high, self._size(1).high)
        return Range(1 if most > 0 else 0, most).scaled(STRING_FACTOR)


_TRAVERSING = ("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf")
_PARSING = ("cidr", "isIP", "isCIDR", "ip", "quantity", "isQuantity", "semver", "isSemver")
_OWN_TYPES = ("net.IP", "net.CIDR", "kubernetes.Quantity", "kubernetes.Semver", "kubernetes.URL")
_COMPARED = (
    "equals",
    "not_equals",
    *(
        f"{name}_{kind}"
        for name in ("less", "greater", "less_equals", "greater_equals")
        for kind in ("string", "bytes")
    ),
)


def _list_call(factor: float, size: Range) -> tuple[Range, Range | None, bool]:
    return size.scaled(factor).plus(Range(11, 11)), size, False


def _int_value(node: Expr, otherwise: int) -> int:
    return node.value if isinstance(node, Literal) and isinstance(node.value, int) else otherwise
