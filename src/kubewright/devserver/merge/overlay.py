"""Merge an apply configuration into an object without field ownership, as mutating admission policies do."""

from collections.abc import Iterator
from typing import Any

from kubewright.devserver.merge.merging import merge
from kubewright.devserver.merge.schema import ApplyError, MergeSchema
from kubewright.devserver.merge.validation import check_fits
from kubewright.devserver.merge.values import LIST, MAP, view
from kubewright.devserver.objects import is_list, is_object


def overlay(live: dict[str, Any], configuration: dict[str, Any], schema: MergeSchema) -> dict[str, Any]:
    """Return the live object with the configuration merged into it; raise `ApplyError` if it does not match the schema."""
    try:
        check_fits(configuration, schema)
    except ApplyError as error:
        raise ApplyError(f"failed to convert patch object to typed object: {error}") from None
    # Setting one field of an atomic value would silently drop all others.
    if found := list(_atomics("", configuration, schema)):
        text = ", ".join(found)
        raise ApplyError(f"invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {text}")
    return merge(live, configuration, schema)


def _atomics(place: str, value: Any, schema: MergeSchema) -> Iterator[str]:
    how = view(schema, value)
    if how == MAP and schema.mapping is not None and is_object(value):
        if schema.mapping.atomic:
            yield place
        for key, item in value.items():
            if (inner := schema.mapping.fields.get(key)) is not None:
                yield from _atomics(f"{place}.{key}", item, inner)
    elif how == LIST and schema.sequence is not None and is_list(value):
        if not schema.sequence.associative:
            yield place
        for index, item in enumerate(value):
            yield from _atomics(f"{place}[{index}]", item, schema.sequence.item)
