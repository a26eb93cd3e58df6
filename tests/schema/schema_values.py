"""Values of one large schema for which `observed/` holds the answers of a real API server."""

from schema_documents import INTEGER, STRING, JsonObject, obj

WIDE: JsonObject = obj(
    {
        "spec": obj(
            {
                "int": {"type": "integer", "minimum": 2, "maximum": 10, "multipleOf": 2},
                "int32": {"type": "integer", "format": "int32"},
                "int64": {"type": "integer", "format": "int64"},
                "open": {
                    "type": "integer",
                    "minimum": 0,
                    "exclusiveMinimum": True,
                    "maximum": 5,
                    "exclusiveMaximum": True,
                },
                "half": {"type": "integer", "maximum": 2.5},
                "num": {"type": "number", "minimum": -1.5, "maximum": 1e7, "multipleOf": 0.5},
                "float": {"type": "number", "format": "float"},
                "str": {"type": "string", "minLength": 2, "maxLength": 4, "pattern": "^[a-z]+$"},
                "enum": {"type": "string", "enum": ["a", "b"]},
                "enumInt": {"type": "integer", "enum": [1, 2]},
                "enumNum": {"type": "number", "enum": [1, 2.5]},
                "enumNull": {"type": "string", "nullable": True, "enum": ["a", None]},
                "bool": {"type": "boolean"},
                "list": {
                    "type": "array",
                    "minItems": 1,
                    "maxItems": 2,
                    "items": {"type": "string", "minLength": 1},
                },
                "set": {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
                "numset": {
                    "type": "array",
                    "items": {"x-kubernetes-preserve-unknown-fields": True},
                    "x-kubernetes-list-type": "set",
                },
                "pairs": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["a", "b"],
                    "items": obj(
                        {"a": STRING, "b": {"type": "integer", "default": 7}, "v": INTEGER}, required=["a"]
                    ),
                },
                "map": {
                    "type": "object",
                    "minProperties": 1,
                    "maxProperties": 2,
                    "additionalProperties": {"type": "integer", "maximum": 3},
                },
                "nullable": {"type": "string", "nullable": True},
                "defaulted": {"type": "string", "default": "d"},
                "nested": obj({"a": {"type": "string", "default": "x"}, "b": STRING}, default={}),
                "ios": {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%$"},
                "free": obj({"known": INTEGER}, **{"x-kubernetes-preserve-unknown-fields": True}),
                "any": {"x-kubernetes-preserve-unknown-fields": True},
                "emb": obj(
                    {"apiVersion": STRING, "kind": STRING, "metadata": obj()},
                    **{"x-kubernetes-embedded-resource": True, "x-kubernetes-preserve-unknown-fields": True},
                ),
                "either": obj(
                    {"a": STRING, "b": STRING, "c": INTEGER},
                    oneOf=[{"required": ["a"]}, {"required": ["b"]}],
                    anyOf=[{"properties": {"c": {"minimum": 5}}}, {"properties": {"c": {"maximum": 2}}}],
                    allOf=[{"not": {"required": ["a", "b"]}}],
                ),
                "dt": {"type": "string", "format": "date-time"},
                "date": {"type": "string", "format": "date"},
                "email": {"type": "string", "format": "email"},
                "uuid": {"type": "string", "format": "uuid"},
                "ipv4": {"type": "string", "format": "ipv4"},
                "ipv6": {"type": "string", "format": "ipv6"},
                "cidr": {"type": "string", "format": "cidr"},
                "mac": {"type": "string", "format": "mac"},
                "uri": {"type": "string", "format": "uri"},
                "hostname": {"type": "string", "format": "hostname"},
                "byte": {"type": "string", "format": "byte"},
                "duration": {"type": "string", "format": "duration"},
                "unknown": {"type": "string", "format": "nonsense"},
                "short": {"type": "string", "format": "k8s-short-name"},
            },
            required=["str"],
        )
    }
)


def _format_cases() -> dict[str, JsonObject]:
    texts: dict[str, list[str]] = {
        "dt": [
            "2024-01-01T00:00:00Z",
            "2024-01-01t00:00:00.5+01:00",
            "2024-02-30T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "x",
        ],
        "date": ["2024-02-29", "2023-02-29", "2024-1-1", "0000-02-29"],
        "email": ["a@b.c", "A <a@b>", "a@", "@b", "a b@c", "a@b@c", "a.@b", '"a b"@c'],
        "uuid": ["A987FBC9-4BED-3078-CF07-9141BA07C9F3", "a987fbc94bed3078cf079141ba07c9f3", "x"],
        "ipv4": ["1.2.3.4", "01.002.3.4", "1.2.3", "256.1.1.1", "::1"],
        "ipv6": ["::1", "::ffff:1.2.3.4", "1.2.3.4", "fe80::1%eth0", "12345::"],
        "cidr": ["10.0.0.0/8", "10.0.0.1/33", "::/0", "::/129", "10.0.0.0", "010.0.0.0/8", "1.2.3.4/08"],
        "mac": ["01:02:03:04:05:06", "01-02-03-04-05-06", "0102.0304.0506", "01:02:03:04:05", "1:2:3:4:5:6"],
        "uri": [
            "http://x/y",
            "/a/b",
            "a/b",
            "mailto:x",
            "http://a b/",
            "http://x:port/",
            "*",
            "",
            "http://%zz/",
            "x:y",
        ],
        "hostname": ["a.example", "a_b.example", "-a", "a", "1.2", "a.b1", "ü.example", "a..b"],
        "byte": ["YWJj", "YWI=", "YWI", "", "a-b_"],
        "duration": ["1h2m", "22 ns", "3 weeks", "1", "x", "-1.5h", ""],
        "unknown": ["whatever"],
        "short": ["a-b", "A", "-a", "a" * 64],
    }
    return {
        f"{name} {text}"[:70]: {"str": "abc", name: text} for name, listed in texts.items() for text in listed
    }


VALUES: dict[str, JsonObject] = {
    "good": {"str": "abc", "int": 4, "num": 1.5, "list": ["a"], "ios": "5%", "either": {"a": "x", "c": 1}},
    "missing": {},
    "strings": {"str": "abcde"},
    "short string": {"str": "a"},
    "bad pattern": {"str": "ABC"},
    "integers": {"str": "abc", "int": 11, "open": 5, "half": 3},
    "integers below": {"str": "abc", "int": 1, "open": 0},
    "integer as float": {"str": "abc", "int": 4.0, "int32": 5.0},
    "integer as fraction": {"str": "abc", "int": 4.5},
    "int32 overflow": {"str": "abc", "int32": 2147483648},
    "int64 overflow": {"str": "abc", "int64": 9223372036854775808},
    "numbers": {"str": "abc", "num": 12345678.25, "float": 1e39},
    "number is integer": {"str": "abc", "num": 3},
    "number below": {"str": "abc", "num": -2.0},
    "enums": {"str": "abc", "enum": "c", "enumInt": 3, "enumNum": 3.5},
    "enum by truncation": {"str": "abc", "enumNum": 1.7},
    "enum null": {"str": "abc", "enumNull": None},
    "types": {"str": 1, "bool": "yes", "list": {}, "map": [], "int": True, "num": "x"},
    "nulls": {"str": "abc", "nullable": None, "defaulted": None, "nested": None, "int": None},
    "null in a list": {"str": "abc", "list": [None]},
    "lists": {"str": "abc", "list": ["a", "", "c"], "set": ["a", "b", "a", "a"]},
    "empty list": {"str": "abc", "list": []},
    "mixed set": {"str": "abc", "numset": [1, 1.0, True, "1", {"a": 1}, {"a": 1}, [1], [1]]},
    "pairs": {"str": "abc", "pairs": [{"a": "x", "v": 1}, {"a": "x", "b": 7}, {"b": 1}]},
    "maps": {"str": "abc", "map": {"a": 1, "b": 4, "c": "x"}},
    "empty map": {"str": "abc", "map": {}},
    "int or string": {"str": "abc", "ios": "abc"},
    "int or string is an object": {"str": "abc", "ios": {}},
    "int or string is an integer": {"str": "abc", "ios": 5},
    "unknown fields": {
        "str": "abc",
        "nope": {"a": [1]},
        "free": {"known": 1, "other": 2},
        "nested": {"z": 1},
    },
    "object for a string": {"str": {"a": 1}},
    "wrong in free": {"str": "abc", "free": {"known": "x"}},
    "anything": {"str": "abc", "any": [1, {"a": None}]},
    "embedded": {
        "str": "abc",
        "emb": {"apiVersion": "a/b/c", "kind": "no kind", "metadata": {"name": "a/b"}},
    },
    "embedded empty": {"str": "abc", "emb": {"apiVersion": "", "kind": ""}},
    "embedded meta": {
        "str": "abc",
        "emb": {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c d"}, "unknown": 1}},
    },
    "both": {"str": "abc", "either": {"a": "x", "b": "y"}},
    "neither": {"str": "abc", "either": {"c": 3}},
    "date as number": {"str": "abc", "dt": 5},
    "date as boolean": {"str": "abc", "dt": True},
    "date as list": {"str": "abc", "dt": ["x"]},
    **_format_cases(),
}
