"""Update field ownership when an object is updated or applied."""

from collections.abc import Callable
from dataclasses import dataclass

from kubewright.devserver.merge.comparison import Comparison, compare
from kubewright.devserver.merge.conflicts import ApplyConflicts, OwnershipConflict
from kubewright.devserver.merge.fieldsets import (
    FieldSet,
    difference,
    intersection,
    paths,
    union,
    without_below,
)
from kubewright.devserver.merge.managers import Managed, ManagerId, Managers
from kubewright.devserver.merge.membership import fields_of, reconciled, with_parents
from kubewright.devserver.merge.merging import merge, remove
from kubewright.devserver.merge.schema import ApplyError, MergeSchema
from kubewright.devserver.merge.values import ABSENT, same
from kubewright.devserver.objects import JsonObject

# (object, apiVersion) -> the object in that version and its schema; None when there is no such version any more
Convert = Callable[[JsonObject, str], tuple[JsonObject, MergeSchema] | None]

_PRUNE = "failed to prune fields"


@dataclass(frozen=True, slots=True)
class Updater:
    """Field ownership in one version of a kind; `ignored` paths are never owned."""

    schema: MergeSchema
    api_version: str
    ignored: FieldSet
    convert: Convert | None

    def update(self, live: JsonObject, new: JsonObject, managers: Managers) -> tuple[Managers, FieldSet]:
        """Return the managers after an update, and what the update itself changed."""
        managers = self._reconcile(live, managers)
        comparison = self._share(live, new, managers, applier=None, force=True)
        changed = union(comparison.modified, comparison.added)
        return managers, without_below(changed, self.ignored)

    def apply(
        self, live: JsonObject, config: JsonObject, managers: Managers, applier: ManagerId, *, force: bool
    ) -> tuple[JsonObject | None, Managers]:
        """Return the object after an apply, None when it is as it was, and the managers."""
        managers = self._reconcile(live, managers)
        merged = merge(live, config, self.schema)
        last = managers.get(applier)
        applied = without_below(fields_of(config, self.schema), self.ignored)
        managers[applier] = Managed(applied, self.api_version, last.time if last else None)
        new = self._prune(merged if merged is not ABSENT else {}, managers, applier, last)
        self._share(live, new, managers, applier=applier, force=force)
        return (None if same(live, new) else new), managers

    def _reconcile(self, live: JsonObject, managers: Managers) -> Managers:
        out: Managers = {}
        for manager, managed in managers.items():
            version = self._in_version(live, managed.api_version)
            if version is not None:
                out[manager] = managed.owning(reconciled(managed.fields, version[1]))
        return out

    def _in_version(self, value: JsonObject, api_version: str) -> tuple[JsonObject, MergeSchema] | None:
        if self.convert is None or api_version == self.api_version == value.get("apiVersion"):
            return value, self.schema
        return self.convert(value, api_version)

    def _share(
        self, live: JsonObject, new: JsonObject, managers: Managers, *, applier: ManagerId | None, force: bool
    ) -> Comparison:
        """Remove changed fields from other managers; raise conflicts for an apply without force."""
        here = compare(live, new, self.schema).without(self.ignored)
        versions: dict[str, Comparison | None] = {self.api_version: here}
        taken: dict[ManagerId, FieldSet] = {}
        gone: dict[ManagerId, FieldSet] = {}
        for manager, managed in list(managers.items()):
            if manager == applier:
                continue
            if managed.api_version not in versions:
                versions[managed.api_version] = self._compare_in(live, new, managed.api_version)
            comparison = versions[managed.api_version]
            if comparison is None:
                del managers[manager]
                continue
            lost = intersection(managed.fields, union(comparison.modified, comparison.added))
            if lost:
                taken[manager] = lost
            gone[manager] = comparison.removed
        if taken and not force:
            raise _conflicts(taken)
        for losses in (taken, gone):
            for manager, lost in losses.items():
                managers[manager] = managers[manager].owning(difference(managers[manager].fields, lost))
        for manager in [manager for manager, managed in managers.items() if not managed.fields]:
            del managers[manager]
        return here

    def _compare_in(self, live: JsonObject, new: JsonObject, api_version: str) -> Comparison | None:
        old_version = self._converted(live, api_version, "failed to convert old object")
        new_version = self._converted(new, api_version, "failed to convert new object")
        if old_version is None or new_version is None:
            return None
        return compare(old_version[0], new_version[0], new_version[1]).without(self.ignored)

    def _converted(
        self, value: JsonObject, api_version: str, failed: str
    ) -> tuple[JsonObject, MergeSchema] | None:
        try:
            return self._in_version(value, api_version)
        except ApplyError as error:
            raise ApplyError(f"{failed}: {error}") from None

    def _prune(
        self, merged: JsonObject, managers: Managers, applier: ManagerId, last: Managed | None
    ) -> JsonObject:
        """Remove fields that the applier owned, no longer applies, and no other manager owns."""
        if last is None or not last.fields:
            return merged
        if last.api_version == self.api_version and not difference(last.fields, managers[applier].fields):
            return merged
        version = self._converted(
            merged, last.api_version, f"{_PRUNE}: failed to convert merged object to last applied version"
        )
        if version is None:
            return merged
        value, schema = version
        owned = with_parents(last.fields, schema)
        pruned = self._add_back_owned(value, remove(value, owned, schema) or {}, last.api_version, managers)
        compared = self._converted(
            pruned,
            last.api_version,
            f"{_PRUNE}: failed add back dangling items: failed to convert pruned object to last applied version",
        )
        if compared is None:
            return merged
        had = with_parents(fields_of(value, schema), schema)
        kept = with_parents(fields_of(compared[0], schema), schema)
        dangling = intersection(difference(had, kept), owned)
        back = self._converted(remove(value, dangling, schema) or {}, self.api_version, _PRUNE)
        return back[0] if back is not None else merged

    def _add_back_owned(
        self, merged: JsonObject, pruned: JsonObject, api_version: str, managers: Managers
    ) -> JsonObject:
        """Restore fields that any manager owns, the new configuration included."""
        by_version: dict[str, FieldSet] = {api_version: {}}
        for managed in managers.values():
            by_version[managed.api_version] = union(by_version.get(managed.api_version, {}), managed.fields)
        for version, owned in by_version.items():
            failed = (
                f"{_PRUNE}: failed add back owned items: failed to convert {{}} object at version {version}"
            )
            old = self._converted(merged, version, failed.format("merged"))
            less = self._converted(pruned, version, failed.format("pruned"))
            if old is None or less is None:
                continue
            value, schema = old
            had = with_parents(fields_of(value, schema), schema)
            kept = with_parents(fields_of(less[0], schema), schema)
            surplus = difference(had, union(kept, with_parents(owned, schema)))
            merged, pruned = value, remove(value, surplus, schema) or {}
        return pruned


def _conflicts(taken: dict[ManagerId, FieldSet]) -> ApplyConflicts:
    found: list[OwnershipConflict] = []
    for manager in sorted(taken, key=ManagerId.sort_key):
        found += [OwnershipConflict(manager.shown(), path) for path in paths(taken[manager])]
    return ApplyConflicts(found)
