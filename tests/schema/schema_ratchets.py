"""A schema that becomes stricter, and updates for which `observed/` holds the answers of a real API server."""

from copy import deepcopy

from schema_documents import STRING, JsonObject, obj

OLD: JsonObject = obj(
    {
        "spec": obj(
            {
                "a": STRING,
                "b": STRING,
                "list": {"type": "array", "items": STRING},
                "byname": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["k"],
                    "items": obj({"k": STRING, "v": STRING}, required=["k"]),
                },
                "map": obj(additionalProperties=STRING),
                "sub": obj({"x": STRING, "y": STRING}),
            }
        )
    }
)


def _tightened() -> JsonObject:
    schema = deepcopy(OLD)
    spec = schema["properties"]["spec"]["properties"]
    short = {"type": "string", "maxLength": 3}
    spec["a"] = spec["b"] = short
    spec["list"]["items"] = short
    spec["byname"]["items"]["properties"]["v"] = short
    spec["map"]["additionalProperties"] = short
    spec["sub"] = obj({"x": short, "y": short}, required=["y"])
    return schema


NEW: JsonObject = _tightened()
BEFORE: JsonObject = {
    "a": "toolong",
    "b": "ok",
    "list": ["toolong"],
    "byname": [{"k": "1", "v": "toolong"}, {"k": "2", "v": "ok"}],
    "map": {"m": "toolong"},
    "sub": {"x": "toolong"},
}
UPDATES: dict[str, JsonObject] = {
    "nothing changed": BEFORE,
    "another field changed": {**BEFORE, "b": "ok2"},
    "the wrong field changed": {**BEFORE, "a": "alsolong"},
    "a list grew": {**BEFORE, "list": ["toolong", "ok"]},
    "map list reordered": {**BEFORE, "byname": [{"k": "2", "v": "ok2"}, {"k": "1", "v": "toolong"}]},
    "map list element changed": {
        **BEFORE,
        "byname": [{"k": "1", "v": "stilllong"}, {"k": "2", "v": "ok"}],
    },
    "map grew": {**BEFORE, "map": {"m": "toolong", "n": "alsolong"}},
    "sub changed": {**BEFORE, "sub": {"x": "ok"}},
}
