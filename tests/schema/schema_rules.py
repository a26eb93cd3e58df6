"""CRDs with CEL rules for which `observed/` holds the answers of a real API server."""

from typing import Any

from schema_documents import INTEGER, STRING, JsonObject, definition, obj, rule
from schema_messages import REFUSED as MESSAGES_REFUSED

SELF: JsonObject = obj(
    {
        "i": INTEGER,
        "n": {"type": "number"},
        "s": {"type": "string", "maxLength": 20},
        "long": STRING,
        "b": {"type": "boolean"},
        "l": {"type": "array", "maxItems": 10, "items": {"type": "string", "maxLength": 10}},
        "free": {"type": "array", "items": STRING},
        "objs": {
            "type": "array",
            "maxItems": 5,
            "items": obj({"k": {"type": "string", "maxLength": 5}, "v": INTEGER}),
        },
        "m": {"type": "object", "maxProperties": 5, "additionalProperties": {"type": "integer"}},
        "ios": {"x-kubernetes-int-or-string": True},
        "t": {"type": "string", "format": "date-time"},
        "d": {"type": "string", "format": "duration"},
        "by": {"type": "string", "format": "byte"},
        "opt": obj({"x": STRING}),
        "any": {"x-kubernetes-preserve-unknown-fields": True},
        "a-b": STRING,
        "namespace": STRING,
        "x.y/z__w": STRING,
        "emb": obj(**{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True}),
    }
)


def on(text: str, **more: Any) -> JsonObject:
    return rule(text, SELF, **more)


BROKEN = [
    "self.nope == 1",
    "self.i + 'a' == 2",
    "self.i",
    "nope",
    "nope()",
    "self.i.nope()",
    "self.i ==",
    "self.i == 1 2",
    "(self.i == 1",
    "self.i == 1)",
    "'abc",
    "self.i # 1",
    "self..i",
    "self.l.all(1, true)",
    "self.l.all(x.y, true)",
    "self.l.all(x, x)",
    "self.i.all(x, true)",
    "has(self)",
    "has(self.nope)",
    "self.any == 1",
    "self.metadata.name == 'a'",
    "[1, 'a'] == []",
    "{'a': 1, 'b': 'x'} == {}",
    "self.s.matches('(')",
    "duration('x') == duration('1s')",
    "timestamp('x') == timestamp('2024-01-01T00:00:00Z')",
    "self.s < 1",
    "self.i && true",
    "!self.i",
    "self.i ? true : false",
    "true ? 1 : 'a'",
    "self.l[0] == 1",
    "self.m['a'] == 'x'",
    "math.greatest(1, 2) == 2",
    "cel.bind(x, 1, x == 1)",
    "'%s %d'.format(['a', 1]) == 'a 1'",
    "size(self.i) == 1",
    "self.objs.all(o, o.nope == 1)",
    "package == 1",
    "self.s.startsWith(1)",
    "oldSelf.nope",
    "self.opt.x.y == 1",
    "1 == 1u",
    "self.a-b == 'x'",
    "quantity(1).isInteger()",
    "self.l.map(x, y)",
    "9223372036854775808 == 1",
    "self.l.exists(i, x, true)",
    "self.t == self.d",
    "self.i == 'ü' + nope",
    "self.n == 2",
    "[1, 2] == [1.0, 2.0]",
    "1 in [1.0]",
    "int('x') == 42",
    "int(1e30) == 1",
    "bool('x')",
    "['a', 'b'].join() == 'ab'",
    "['a', 'b'].join('-') == 'a-b'",
    "'x'.find('(') == ''",
    "'%s'.format([]) == ''",
    "'%q'.format(['a']) == ''",
    "'%d'.format(['a']) == ''",
    "self.?s.optMap(x, x + '!').value() == 'abc!'",
    "double('x') > 1.0",
    "'%s %s'.format(['a']) == ''",
    "'%.2d'.format([1]) == ''",
    "'%f'.format(['a']) == ''",
    "self.s.findAll('[') == []",
]

EXPENSIVE = {
    "nested loops": "self.free.all(x, self.free.all(y, x != y))",
    "one loop": "self.free.all(x, x == 'a')",
    "triple loops": "self.free.all(x, self.free.all(y, self.free.all(z, x == y && y == z)))",
    "bounded loops": "self.l.all(x, self.l.all(y, x != y || x == y))",
    "long contains": "self.long.contains(self.long)",
    "long pattern": "self.long.matches('^a+(b|c)*$')",
    "free sum": "self.free.map(x, size(x)).sum() > 1",
    "joined": "self.free.join(',').contains('a')",
    "replaced": "self.long.replace('a', 'bbbbbbbbbb').contains('aaaaaaaaaaaaaaaaaaaaaaaaaaaaa')",
    "split": "self.long.split(',').all(x, self.long.contains(x))",
    "found": "self.long.findAll('[a-z]+').all(x, x == 'a')",
    "sorted": "self.free.isSorted()",
    "indexed": "self.free.indexOf('a') >= 0",
    "filtered": "self.free.filter(x, x.startsWith('a')).all(y, self.free.exists(z, z == y))",
    "urls": "self.free.all(x, isURL(x) && url(x).getHost() == 'a')",
    "formats": "self.free.all(x, format.dns1123Label().validate(x).hasValue())",
    "sets": "sets.contains(self.free, self.free)",
    "distinct": "self.free.distinct().size() == 1",
}

DEFINITIONS: dict[str, Any] = {
    **{f"broken: {text}": on(text) for text in [*BROKEN, *MESSAGES_REFUSED]},
    **{f"expensive: {name}": on(text) for name, text in EXPENSIVE.items()},
    "message is no string": on("true", messageExpression="1"),
    "message is broken": on("true", messageExpression="self.nope"),
    "message is fine": on("true", messageExpression="'a' + string(self.i)"),
    "message is expensive": on("true", messageExpression="self.free.map(x, self.free.join(x)).join(',')"),
    "optional old self unused": on("true", optionalOldSelf=True),
    "optional old self": on("!oldSelf.hasValue() || oldSelf.value().i <= self.i", optionalOldSelf=True),
    "old self in a list": definition(
        obj(
            {
                "spec": obj(
                    {
                        "l": {
                            "type": "array",
                            "items": {
                                "type": "string",
                                "x-kubernetes-validations": [{"rule": "self == oldSelf"}],
                            },
                        }
                    }
                )
            }
        )
    ),
    "old self in a map list": definition(
        obj(
            {
                "spec": obj(
                    {
                        "l": {
                            "type": "array",
                            "maxItems": 5,
                            "x-kubernetes-list-type": "map",
                            "x-kubernetes-list-map-keys": ["k"],
                            "items": obj(
                                {"k": {"type": "string", "maxLength": 5}},
                                required=["k"],
                                **{"x-kubernetes-validations": [{"rule": "self.k == oldSelf.k"}]},
                            ),
                        }
                    }
                )
            }
        )
    ),
    "rule in an unbounded list": definition(
        obj(
            {
                "spec": obj(
                    {
                        "l": {
                            "type": "array",
                            "items": obj(
                                {"k": STRING},
                                **{"x-kubernetes-validations": [{"rule": "self.k.contains('a')"}]},
                            ),
                        }
                    }
                )
            }
        )
    ),
    "rule at the root": definition(
        obj(
            {"spec": obj({"x": INTEGER})},
            **{"x-kubernetes-validations": [{"rule": "self.metadata.name != 'x'"}]},
        )
    ),
    "rule about labels": definition(
        obj(
            {"spec": obj({"x": INTEGER})},
            **{"x-kubernetes-validations": [{"rule": "has(self.metadata.labels)"}]},
        )
    ),
}
