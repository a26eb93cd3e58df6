"""Managers of fields: their entries in `metadata.managedFields`, read and written."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from msgspec import Struct

from kubewright.devserver.merge.elements import go_json
from kubewright.devserver.merge.fieldsets import FieldSet, decode, encode, union
from kubewright.devserver.merge.schema import ApplyError

APPLY, UPDATE = "Apply", "Update"
MAX_UPDATE_MANAGERS = 10
ANCIENT = "ancient-changes"


class ManagerId(NamedTuple):
    """A field manager; for apply it is the same in every version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    def shown(self) -> str:
        """Return the manager as it is shown in conflicts: `"upd" with subresource "status" using v1`."""
        text = go_json(self.manager)
        if self.subresource:
            text += f" with subresource {go_json(self.subresource)}"
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text

    def sort_key(self) -> str:
        """Return the text by which conflicts are put in order."""
        version = f',"apiVersion":{go_json(self.api_version)}' if self.api_version else ""
        part = f',"subresource":{go_json(self.subresource)}' if self.subresource else ""
        return f'{{"manager":{go_json(self.manager)},"operation":"{self.operation}"{version}{part}}}'


class Managed(Struct, frozen=True):
    """The fields that one manager owns, with their apiVersion and the time of the last change."""

    fields: FieldSet
    api_version: str
    time: str | None = None

    def owning(self, fields: FieldSet) -> "Managed":
        """Return the same manager with another set."""
        return self if fields is self.fields else Managed(fields, self.api_version, self.time)


Managers = dict[ManagerId, Managed]


def manager_id(manager: str, operation: str, api_version: str, subresource: str) -> ManagerId:
    """Identify a manager; without a name it is unknown."""
    version = "" if operation == APPLY else api_version
    return ManagerId(manager or "unknown", operation, version, subresource)


def read_managers(entries: Iterable[Mapping[str, Any]]) -> Managers:
    """Read `metadata.managedFields`; raise `ApplyError` for entries that cannot be understood."""
    managers: Managers = {}
    for index, entry in enumerate(entries):
        operation = entry.get("operation", "")
        if operation not in {APPLY, UPDATE}:
            raise ApplyError("operation must be `Apply` or `Update`")
        api_version = entry.get("apiVersion", "")
        if not api_version:
            raise ApplyError("apiVersion must not be empty")
        kind = entry.get("fieldsType", "")
        if not kind:
            raise ApplyError(f"missing fieldsType in managed fields entry {index}")
        if kind != "FieldsV1":
            raise ApplyError(f'invalid fieldsType "{kind}" in managed fields entry {index}')
        version = "" if operation == APPLY else api_version
        manager = ManagerId(entry.get("manager", ""), operation, version, entry.get("subresource", ""))
        managers[manager] = Managed(decode(entry.get("fieldsV1")), api_version, entry.get("time"))
    return managers


def write_managers(managers: Managers) -> list[dict[str, Any]]:
    """Write `metadata.managedFields`."""
    return sort_entries([_entry(manager, managed) for manager, managed in managers.items()])


def sort_entries(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return entries of `metadata.managedFields` in their order: appliers first, then by time and name."""
    return sorted(
        entries,
        key=lambda entry: (
            entry["operation"],
            entry.get("time") or "",
            entry.get("manager", ""),
            entry["apiVersion"],
            entry.get("subresource", ""),
        ),
    )


def _entry(identity: ManagerId, managed: Managed) -> dict[str, Any]:
    entry: dict[str, Any] = {"manager": identity.manager} if identity.manager else {}
    entry |= {"operation": identity.operation, "apiVersion": managed.api_version}
    if managed.time is not None:
        entry["time"] = managed.time
    entry |= {"fieldsType": "FieldsV1", "fieldsV1": encode(managed.fields)}
    if identity.subresource:
        entry["subresource"] = identity.subresource
    return entry


def cap_update_managers(managers: Managers) -> None:
    """Merge the oldest updaters of a version into one when there are too many."""
    updaters = [manager for manager in managers if manager.operation == UPDATE]
    surplus = len(updaters) - MAX_UPDATE_MANAGERS
    if surplus <= 0:
        return
    updaters.sort(key=lambda manager: (managers[manager].time or "", manager.sort_key()))
    first_of: dict[str, ManagerId] = {}
    for manager in updaters:
        if surplus <= 0:
            return
        version = managers[manager].api_version
        first = first_of.setdefault(version, manager)
        if first == manager:
            continue
        bucket = ManagerId(ANCIENT, UPDATE, version, "")
        if bucket not in managers:
            managers[bucket] = managers.pop(first)
        if manager != bucket:
            merged = managers.pop(manager)
            fields = union(merged.fields, managers[bucket].fields)
            managers[bucket] = Managed(fields, version, merged.time)
        surplus -= 1
