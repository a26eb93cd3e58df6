"""The kind CustomResourceDefinition itself: its defaults, its rules, and what happens when one is deleted."""

from typing import Any

from kubewright.api import FieldError
from kubewright.devserver.definitions.naming import set_condition
from kubewright.devserver.objects import JsonObject, items, meta, section
from kubewright.devserver.objects.clock import Clock
from kubewright.devserver.strategy import MetaChecks, Strategy, TableColumn
from kubewright.devserver.strategy.tables import CREATED_AT, NAME
from kubewright.schema import check_crd, crd_warnings

CLEANUP = "customresourcecleanup.apiextensions.k8s.io"


def definition_strategy(clock: Clock) -> Strategy:
    """Make the strategy of CustomResourceDefinition."""

    def begin_delete(crd: JsonObject) -> None:
        finalizers: list[str] = meta(crd).setdefault("finalizers", [])
        if CLEANUP not in finalizers:
            finalizers.append(CLEANUP)
        text = "CustomResourceDefinition marked for deletion; CustomResource deletion will begin soon"
        set_condition(crd, "Terminating", "True", "InstanceDeletionPending", text, clock.stamp())

    return Strategy(
        default=default,
        prepare_create=note_stored_version,
        prepare_update=lambda new, old: note_stored_version(new),
        validate=lambda crd: list(check_crd(crd)),
        validate_update=check_update,
        has_generation=True,
        allow_unconditional_update=False,
        meta_checks=MetaChecks(qualified=False),
        repeats_errors=True,
        warnings=lambda new, old: crd_warnings(new, old=old),
        begin_delete=begin_delete,
        columns=_COLUMNS,
        row=_row,
    )


_COLUMNS = (
    NAME,
    TableColumn("Scope", "string"),
    TableColumn("Versions", "string"),
    CREATED_AT,
    TableColumn("Group", "string", priority=1),
    TableColumn("Kind", "string", priority=1),
    TableColumn("ShortNames", "string", priority=1),
    TableColumn("Established", "boolean", priority=1),
)


def _row(crd: JsonObject, now: float) -> list[Any]:
    spec, names = crd["spec"], crd["spec"]["names"]
    versions = [
        version["name"] + ("(storage)" if version.get("storage") else "")
        for version in items(spec, "versions")
    ]
    established = any(
        condition.get("type") == "Established" and condition.get("status") == "True"
        for condition in items(section(crd, "status"), "conditions")
    )
    return [
        meta(crd)["name"],
        spec.get("scope", ""),
        ",".join(versions),
        meta(crd).get("creationTimestamp"),
        spec.get("group", ""),
        names.get("kind", ""),
        ",".join(items(names, "shortNames")),
        established,
    ]


def default(crd: JsonObject) -> None:
    """Fill in names, the conversion and the stored version."""
    spec: JsonObject = crd.setdefault("spec", {})
    names: JsonObject = spec.setdefault("names", {})
    kind = names.get("kind", "")
    if not names.get("singular"):
        names["singular"] = kind.lower()
    if not names.get("listKind") and kind:
        names["listKind"] = f"{kind}List"
    conversion: JsonObject = spec.setdefault("conversion", {"strategy": "None"})
    if service := section(conversion, "webhook", "clientConfig", "service"):
        service.setdefault("port", 443)
    if not section(crd, "status").get("storedVersions"):
        note_stored_version(crd)


def note_stored_version(crd: JsonObject) -> None:
    """Remember that objects are now stored in the storage version."""
    status: JsonObject = crd.setdefault("status", {})
    stored: list[str] = list(items(status, "storedVersions"))
    for version in items(crd["spec"], "versions"):
        if version.get("storage"):
            if version["name"] not in stored:
                stored.append(version["name"])
            break
    status["storedVersions"] = stored or None


def check_update(new: JsonObject, old: JsonObject) -> list[FieldError]:
    """Validate a changed definition; the name is immutable, so a plural that no longer matches is reported as a change."""
    return [error for error in check_crd(new, old=old) if error.field != "metadata.name"]
