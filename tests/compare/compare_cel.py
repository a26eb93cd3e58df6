"""Draw CEL expressions: well-typed ones from typed parts, and now and then one with a mistake."""

import random
from collections.abc import Mapping, Sequence

Parts = Mapping[str, Sequence[str]]
"""Expressions of each type (bool, int, string, list, map) that the variables of a place give."""

LITERALS: Parts = {
    "bool": ("true", "false"),
    "int": ("0", "1", "2", "-1", "10", "9223372036854775807"),
    "string": (
        "''",
        "'a'",
        "'b'",
        '"a-b"',
        "'10Mi'",
        "'1.2.3.4'",
        "'https://a.b/c?d=e'",
        "'2024-01-01T00:00:00Z'",
    ),
    "list": ("[]", "['a', 'b']", "['a']"),
    "map": ("{}", "{'a': 'b'}"),
}
_BOOLEAN = (
    *(
        "!{bool}",
        "{bool} && {bool}",
        "{bool} || {bool}",
        "{bool} ? {bool} : {bool}",
        "{int} < {int}",
        "{int} >= {int}",
    ),
    *(
        "{int} == {int}",
        "{string} == {string}",
        "{string} != {string}",
        "{string} in {list}",
        "{string} in {map}",
    ),
    *("{string}.startsWith({string})", "{string}.endsWith({string})", "{string}.contains({string})"),
    *("{string}.matches('^[a-z]+$')", "{list}.exists(x, x == {string})", "{list}.all(x, x.size() > {int})"),
    *(
        "{list}.exists_one(x, x == {string})",
        "{map}.all(k, k != {string})",
        "{list}.isSorted()",
        "{list} == {list}",
    ),
    *(
        "isQuantity({string})",
        "quantity({string}).isGreaterThan(quantity('1'))",
        "isURL({string})",
        "isIP({string})",
    ),
    *(
        "url({string}).getHost() == {string}",
        "ip({string}).family() == {int}",
        "cidr({string}).containsIP('1.2.3.4')",
    ),
    *(
        "type({string}) == string",
        "{string} < {string}",
        "sets.contains({list}, {list})",
        "format.dns1123Label().validate({string}).hasValue()",
    ),
    *(
        "timestamp({string}).getFullYear() > {int}",
        "duration('1m').getSeconds() == {int}",
        "optional.of({string}).hasValue()",
    ),
    *(
        "{list}[0] == {string}",
        "{list}[?0].orValue({string}) == {string}",
        "isSemver({string})",
        "{string}.find('[a-z]+') == {string}",
    ),
)
_STRING = (
    *(
        "{string} + {string}",
        "{bool} ? {string} : {string}",
        "string({int})",
        "{string}.lowerAscii()",
        "{string}.upperAscii()",
    ),
    *(
        "{string}.replace({string}, {string})",
        "{string}.trim()",
        "{list}.join(',')",
        "{string}.substring(0, {int})",
        "{string}.charAt({int})",
    ),
    *(
        "'%s-%d'.format([{string}, {int}])",
        "{list}[{int}]",
        "{map}[{string}]",
        "{map}[?{string}].orValue('none')",
        "string({bool})",
    ),
)
_INTEGER = (
    *(
        "{int} + {int}",
        "{int} * {int}",
        "{int} / {int}",
        "{int} % {int}",
        "size({list})",
        "{string}.size()",
        "{map}.size()",
    ),
    *(
        "int({string})",
        "{bool} ? {int} : {int}",
        "{string}.indexOf({string})",
        "{list}.map(x, x.size()).sum()",
        "{list}.map(x, x.size()).max()",
    ),
)
_LIST = (
    "{list} + {list}",
    "{list}.filter(x, x != {string})",
    "{list}.map(x, x + {string})",
    "{string}.split({string})",
    "{map}.map(k, k)",
)
_FORMS = {"bool": _BOOLEAN, "string": _STRING, "int": _INTEGER, "list": _LIST, "map": ()}
_MISTAKES = (
    "{int} + {string}",
    "{bool} && {int}",
    "nope",
    "{string}.nope()",
    "{string}.size",
    "{int} in {string}",
    "{list}.all({string}, true)",
    "object.nope == 1",
)
_DEPTH = 3


def draw_expression(chance: random.Random, parts: Parts, kind: str = "bool", mistakes: float = 0.05) -> str:
    """Draw an expression of a type."""
    if chance.random() < mistakes:
        return _fill(chance.choice(_MISTAKES), chance, parts, _DEPTH - 1)
    return _draw(kind, chance, parts, 0)


def _draw(kind: str, chance: random.Random, parts: Parts, depth: int) -> str:
    forms = _FORMS[kind]
    if forms and depth < _DEPTH and chance.random() < (0.95 if depth == 0 else 0.45):
        return _fill(chance.choice(forms), chance, parts, depth + 1)
    own = parts.get(kind, ())
    return chance.choice(own if own and chance.random() < 0.6 else LITERALS[kind])


def _fill(form: str, chance: random.Random, parts: Parts, depth: int) -> str:
    for kind in _FORMS:
        marker = f"{{{kind}}}"
        while marker in form:
            found = _draw(kind, chance, parts, depth)
            form = form.replace(marker, f"({found})" if " " in found else found, 1)
    return form
