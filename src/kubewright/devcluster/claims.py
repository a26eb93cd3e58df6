"""Adoption: who selects an object that nobody controls takes it, and lets go of what it no longer selects."""

from typing import Any, TypeVar

from kubewright.api import (
    ApiError,
    LabelMatcher,
    Object,
    controller_of,
    owner_reference,
    to_wire,
)
from kubewright.controller import Change, Context, Index

T = TypeVar("T", bound=Object)


def family_of(obj: Object) -> list[str]:
    """Index objects by the uid of who controls them; those whom nobody controls by their namespace."""
    controller = controller_of(obj.metadata)
    return [controller.uid if controller is not None else orphans_of(obj.metadata.namespace)]


def orphans_of(namespace: str) -> str:
    """Name the orphans of a namespace in an index by family."""
    return f"orphans of {namespace}"


def is_orphaned(change: Change[Any]) -> bool:
    """Predicate: pass what nobody controls, which somebody may want to adopt."""
    after = change.after
    return (
        after is not None
        and after.meta.deletion_timestamp is None
        and not any(owner.controller for owner in after.meta.owner_references)
    )


async def claim(owner: Object, selector: LabelMatcher, index: Index[T], ctx: Context) -> list[T]:
    """Give the objects that an owner controls, after adopting orphans and letting go of strangers."""
    found = await ctx.list(index, owner.metadata.uid)
    if owner.metadata.deletion_timestamp is not None:
        return found
    kept: list[T] = []
    for obj in found:
        if selector.matches(obj.metadata.labels):
            kept.append(obj)
        else:
            await _release(owner, obj, ctx)
    for orphan in await ctx.list(index, orphans_of(owner.metadata.namespace)):
        if orphan.metadata.deletion_timestamp is None and selector.matches(orphan.metadata.labels):
            adopted = await _adopt(owner, orphan, ctx)
            if adopted is not None:
                kept.append(adopted)
    return kept


async def _adopt(owner: Object, orphan: T, ctx: Context) -> T | None:
    reference = to_wire(owner_reference(owner))
    patch = {"metadata": {"uid": orphan.metadata.uid, "ownerReferences": [reference]}}
    try:
        return await ctx.patch(orphan, patch, type="strategic")
    except ApiError as error:
        if error.status.code in (404, 409, 422):
            # It is gone, replaced, or another was quicker: its next change leads here again.
            return None
        raise


async def _release(owner: Object, obj: Object, ctx: Context) -> None:
    gone = {"$patch": "delete", "uid": owner.metadata.uid}
    patch = {"metadata": {"uid": obj.metadata.uid, "ownerReferences": [gone]}}
    try:
        await ctx.patch(obj, patch, type="strategic")
    except ApiError as error:
        if error.status.code not in (404, 409, 422):
            raise
