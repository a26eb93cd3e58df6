"""Validation of a value against a schema, in the order of the API server: OpenAPI, embedded objects, list types, rules.

`Validator` is the entry point; `compile_schema` caches one for each schema object.
"""

from collections import OrderedDict
from collections.abc import Sequence
from functools import cached_property
from typing import Any, cast

from kubewright.api import FieldError, problems
from kubewright.schema.defaulting import Defaulter, Pruner, compile_defaults, compile_pruning
from kubewright.schema.extensions import (
    EmbeddedCheck,
    ListCheck,
    compile_embedded_checks,
    compile_list_checks,
)
from kubewright.schema.json_tree import NO_PATH, Schema, properties
from kubewright.schema.openapi import KeywordCheck, KeywordViolation, compile_check, field_errors, ratcheted
from kubewright.schema.ratcheting import Correlation
from kubewright.schema.rules import RuleTree, has_rules


class _Absent:
    """The type of ABSENT: there is no old value, while None is an old value of null."""

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Any = _Absent()

_BLOCKING = frozenset(
    {
        "FieldValueNotSupported",
        "FieldValueRequired",
        "FieldValueTooLong",
        "FieldValueTooMany",
        "FieldValueTypeInvalid",
    }
)
_RULES_NOT_CHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_CACHE_SIZE = 512


class Validator:
    """A compiled schema; each part is compiled on first use."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def validate(
        self,
        value: Any,
        *,
        old: Any = ABSENT,
        path: str = "",
        other_errors: Sequence[FieldError] = (),
        warnings: list[str] | None = None,
    ) -> list[FieldError]:
        """Return the errors in a value, or in the change from `old` to it.

        `other_errors`, which the caller found, are inserted after those of the OpenAPI keywords: the API server's order.
        Rules that an unchanged value fails are appended to `warnings`.
        """
        correlation = None if old is ABSENT else Correlation(value, old, self.schema)
        found = self._violations(value, correlation)
        errors = field_errors(found, path) if found else []
        errors += other_errors
        if self._embedded_check is not None:
            self._embedded_check(value, path, errors)
        self._check_lists(value, old, path, errors)
        if not path:
            self._check_rules(value, old, correlation, errors, warnings)
        return errors

    def validate_status(
        self,
        value: dict[str, Any],
        old: dict[str, Any],
        *,
        other_errors: Sequence[FieldError] = (),
        warnings: list[str] | None = None,
    ) -> list[FieldError]:
        """Return the errors in an update of the status subresource, given both whole objects.

        As in the API server, keywords are validated in the status only, rules and list types in the whole object.
        """
        errors: list[FieldError] = []
        status = properties(self.schema).get("status")
        if status is not None and "status" in value:
            correlation = Correlation(value["status"], old.get("status"), status)
            found = compile_schema(status)._violations(value["status"], correlation)
            errors = field_errors(found, "status") if found else []
        errors += other_errors
        self._check_lists(value, old, "", errors)
        self._check_rules(value, old, Correlation(value, old, self.schema), errors, warnings)
        return errors

    def _violations(self, value: Any, correlation: Correlation | None) -> list[KeywordViolation]:
        """Return the violated keywords of a value, without those of unchanged parts."""
        found: list[KeywordViolation] = []
        if correlation is not None and self._ratcheting_only_drops:
            # Most objects are valid as they are: then there is nothing to find the old values for.
            self._check(value, None, "", found)
            if not found:
                return found
            found = []
        ratcheted(self._check, value, correlation, "", found)
        return found

    def _check_lists(self, value: Any, old: Any, path: str, errors: list[FieldError]) -> None:
        if self._list_check is None:
            return
        found: list[FieldError] = []
        self._list_check(value, path, found)
        if found and not (old is not ABSENT and self._has_list_errors(old, path)):
            errors += found

    def _check_rules(
        self,
        value: Any,
        old: Any,
        correlation: Correlation | None,
        errors: list[FieldError],
        warnings: list[str] | None,
    ) -> None:
        if self._rules is None:
            return
        skipped = _rules_not_checked(errors)
        if skipped is not None:
            errors.append(skipped)
        else:
            errors += self._rules.check(value, None if old is ABSENT else old, correlation, warnings=warnings)

    def check(self, value: Any, path: str = "") -> list[FieldError]:
        """Return the errors of the OpenAPI keywords alone."""
        found: list[KeywordViolation] = []
        self._check(value, None, "", found)
        return field_errors(found, path)

    def apply_defaults(self, value: Any, *, keep_nulls: bool = False) -> None:
        """Apply the schema's defaults to a value, in place; see `compile_defaults` for nulls."""
        (self._keeping_defaulter if keep_nulls else self._defaulter)(value)

    def prune(self, value: Any, *, resource: bool = True) -> list[str]:
        """Remove unknown fields in place; return their paths, sorted."""
        dropped: list[str] = []
        (self._resource_pruner if resource else self._value_pruner)(value, "", dropped)
        return sorted(dropped)

    def _has_list_errors(self, old: Any, path: str) -> bool:
        errors: list[FieldError] = []
        if self._list_check is not None:
            self._list_check(old, path, errors)
        return bool(errors)

    @cached_property
    def _ratcheting_only_drops(self) -> bool:
        """Return True if a value that is valid by itself is valid as a change too.

        Under `oneOf` and `not` it may not be: an option that fails by itself may pass because the part did not change.
        """
        return not _has_keyword(self.schema, ("oneOf", "not"))

    @cached_property
    def _check(self) -> KeywordCheck:
        return compile_check(self.schema)

    @cached_property
    def _embedded_check(self) -> EmbeddedCheck | None:
        return compile_embedded_checks(self.schema)

    @cached_property
    def _list_check(self) -> ListCheck | None:
        return compile_list_checks(self.schema)

    @cached_property
    def _rules(self) -> RuleTree | None:
        return RuleTree(self.schema, resource=True) if has_rules(self.schema) else None

    @cached_property
    def _keeping_defaulter(self) -> Defaulter:
        return compile_defaults(self.schema, keep_nulls=True)

    @cached_property
    def _defaulter(self) -> Defaulter:
        return compile_defaults(self.schema)

    @cached_property
    def _resource_pruner(self) -> Pruner:
        return compile_pruning(self.schema, resource=True)

    @cached_property
    def _value_pruner(self) -> Pruner:
        return compile_pruning(self.schema, resource=False)


_compiled: OrderedDict[int, Validator] = OrderedDict()


def compile_schema(schema: Schema) -> Validator:
    """Return the Validator of a schema, cached by identity: the schema must not be changed afterwards."""
    validator = _compiled.get(id(schema))
    # The validator keeps the schema alive, so its id cannot have been reused.
    if validator is None:
        validator = _compiled[id(schema)] = Validator(schema)
        if len(_compiled) > _CACHE_SIZE:
            _compiled.popitem(last=False)
    return validator


def validate(schema: Schema, value: Any, *, old: Any = ABSENT, path: str = "") -> list[FieldError]:
    """Return the errors in a value, or in the change from `old` to it, with the API server's messages."""
    return compile_schema(schema).validate(value, old=old, path=path)


def apply_defaults(schema: Schema, value: Any) -> None:
    """Apply the schema's defaults to a value, in place."""
    compile_schema(schema).apply_defaults(value)


def prune(schema: Schema, value: Any, *, resource: bool = True) -> list[str]:
    """Remove unknown fields in place; return their paths, sorted, as strict field validation names them."""
    return compile_schema(schema).prune(value, resource=resource)


def _has_keyword(node: Any, names: Sequence[str]) -> bool:
    """Return True if one of the keywords is somewhere in a schema; a field of that name counts too."""
    if isinstance(node, dict):
        tree = cast(Schema, node)
        return any(name in tree for name in names) or any(_has_keyword(item, names) for item in tree.values())
    if isinstance(node, list):
        return any(_has_keyword(item, names) for item in cast(list[Any], node))
    return False


def _rules_not_checked(errors: list[FieldError]) -> FieldError | None:
    """Return the error that reports skipped rules, or None if earlier errors do not prevent them."""
    if any(error.type in _BLOCKING for error in errors):
        return problems.invalid(NO_PATH, None, _RULES_NOT_CHECKED)
    return None
