"""Whether the defaults in a schema are values that the schema accepts."""

from collections.abc import Iterator

from kubewright.api import FieldError, problems
from kubewright.schema.embedded import check_object
from kubewright.schema.nodes import Schema, items, properties
from kubewright.schema.rules import RuleTree, has_rules
from kubewright.schema.validation import Validator
from kubewright.schema.values import Json, copied, same


def check_defaults(schema: Schema, path: str) -> list[FieldError]:
    """Report the defaults that the API server would refuse."""
    return list(_node(schema, path))


def _node(schema: Schema, path: str) -> Iterator[FieldError]:
    default = schema.get("default")
    if default is not None:
        yield from _default(schema, default, f"{path}.default")
    element = items(schema)
    if element is not None:
        yield from _node(element, f"{path}.items")
    for name, sub in properties(schema).items():
        yield from _node(sub, f"{path}.properties[{name}]")


def _default(schema: Schema, default: Json, path: str) -> Iterator[FieldError]:
    validator = Validator(schema)
    pruned = copied(default)
    validator.prune(pruned, resource=False)
    if not same(pruned, default):
        yield problems.invalid(path, default, "must not have unknown fields")
    if schema.get("x-kubernetes-embedded-resource") and isinstance(default, dict):
        errors = check_object(default, path)
        if errors:
            yield from errors
            return
    refused = validator.check(default, path)
    yield from refused or _broken_rules(schema, default, path)


def _broken_rules(schema: Schema, default: Json, path: str) -> list[FieldError]:
    """Report rules that a default breaks, both where it was there before and where it is new."""
    if not has_rules(schema):
        return []
    rules = RuleTree(schema)
    return rules.check(default, default, path=path) or rules.check(default, None, path=path)
