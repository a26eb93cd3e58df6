"""The scale subresource: a Scale that represents the replicas of an object."""

from typing import Any

from kubewright.api import GroupVersionKind, problems
from kubewright.devserver.handlers.object_write import AdmissionView, ObjectWrite
from kubewright.devserver.handlers.patch import (
    Patch,
    Patched,
    check_configuration,
    configuration,
    invalid_patch,
    read_applied,
    report_repeated_keys,
    reporting_conflicts,
)
from kubewright.devserver.handlers.pipeline import run_update
from kubewright.devserver.handlers.update import ObjectChange
from kubewright.devserver.merge import apply_scale, disown, scale_owners, sort_entries
from kubewright.devserver.objects import JsonObject, copy, decode, encode, items, meta, order_meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.storage import Record
from kubewright.devserver.strategy import ScaleAccess, Strategy, TableColumn
from kubewright.devserver.strategy.tables import age
from kubewright.devserver.wire import WireDecodeError

SCALE = GroupVersionKind("autoscaling", "v1", "Scale")
_REPLICAS = (TableColumn("Desired", "integer"), TableColumn("Available", "integer"))
_IDENTITY = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")


def scale_of(access: ScaleAccess, obj: JsonObject) -> JsonObject:
    """Build the Scale of an object."""
    desired, present, selector = access.read(obj)
    status: JsonObject = {"replicas": present}
    if selector:
        status["selector"] = selector
    metadata = {name: value for name, value in meta(obj).items() if name in _IDENTITY}
    spec: JsonObject = {"replicas": desired} if desired else {}
    return {
        "kind": "Scale",
        "apiVersion": SCALE.api_version,
        "metadata": order_meta(metadata),
        "spec": spec,
        "status": status,
    }


def read_scale(resource: ServedResource, record: Record) -> bytes:
    """Return the Scale of a record."""
    return encode(scale_of(_access(resource), resource.read(record)))


def _row(scale: JsonObject, now: float) -> list[Any]:
    metadata = meta(scale)
    desired, present = (section(scale, part).get("replicas", 0) for part in ("spec", "status"))
    return [metadata["name"], desired, present, age(metadata.get("creationTimestamp"), now)]


_BUILTIN = Strategy(columns=(TableColumn("Name"), *_REPLICAS, TableColumn("Age")), row=_row)
_CUSTOM = Strategy(
    columns=(TableColumn("Name", format="name"), *_REPLICAS, TableColumn("Age", "date")), row=_row
)


def scale_columns(resource: ServedResource) -> Strategy:
    """Return the strategy whose columns show the Scale of a kind."""
    return _CUSTOM if resource.custom else _BUILTIN


def _access(resource: ServedResource) -> ScaleAccess:
    if resource.strategy.scale is None:
        raise StatusError.no_such_path()
    return resource.strategy.scale


async def replace_scale(write: ObjectWrite, body: JsonObject) -> bytes:
    """Take the replicas from a whole Scale."""
    named = {"name": write.name, **meta(body)}
    whole = {**copy(body), "kind": SCALE.kind, "apiVersion": SCALE.api_version, "metadata": named}
    return await _write(write, lambda _: Patched(whole, []))


async def apply_to_scale(write: ObjectWrite, body: bytes) -> bytes:
    """Set the replicas from an applied Scale; its manager owns them."""
    access = _access(write.resource)

    def change(old: JsonObject | None) -> JsonObject:
        if old is None:
            raise write.not_found()
        config, repeated = configuration(body)
        check_configuration(write, config, SCALE)
        merged = reporting_conflicts(
            lambda: apply_scale(
                write.resource.codec.merge_schema,
                old,
                access.path,
                config,
                write.core.types.merge_schema(SCALE),
                write.field_write(),
                force=bool(write.options.force),
                empty=write.empty(),
            )
        )
        report_repeated_keys(write, repeated)
        _keep_times(merged, old)
        return read_applied(write, merged, old, config)

    return await _update(write, access, change)


async def patch_scale(write: ObjectWrite, patch: Patch) -> bytes:
    """Take the replicas from a patched Scale."""
    return await _write(write, patch)


async def _write(write: ObjectWrite, patch: Patch) -> bytes:
    access = _access(write.resource)

    def change(old: JsonObject | None) -> JsonObject:
        if old is None:
            raise write.not_found()
        document = scale_of(access, old)
        if owners := scale_owners(old, access.path):
            document["metadata"]["managedFields"] = owners
        made = patch(document)
        scale = _read(write, made)
        new = copy(old)
        if revision := meta(scale).get("resourceVersion"):
            meta(new)["resourceVersion"] = revision
        replicas = scale.get("spec", {}).get("replicas", 0)
        access.write(new, replicas)
        new = write.manage_fields(old, new)
        if not replicas and access.read(old)[0]:
            # A Scale without replicas has no such field: it has no owner, as in kube-apiserver.
            disown(new, access.path)
        _keep_times(new, old)
        return new

    return await _update(write, access, change)


async def _update(write: ObjectWrite, access: ScaleAccess, change: ObjectChange) -> bytes:
    write.view = AdmissionView(
        SCALE,
        lambda obj: scale_of(access, obj),
        lambda obj, scale: access.write(obj, section(scale, "spec").get("replicas", 0)),
    )
    stored, _ = await run_update(write, change)
    return encode(scale_of(access, decode(stored)))


def _keep_times(new: JsonObject, old: JsonObject) -> None:
    """Keep the times of the managers of scale: scaling sets none, as in kube-apiserver."""
    known = {_scaler(entry): entry.get("time") for entry in items(meta(old), "managedFields")}
    for entry in items(meta(new), "managedFields"):
        if entry.get("subresource") == "scale":
            time = known.get(_scaler(entry))
            if time is None:
                entry.pop("time", None)
            else:
                entry["time"] = time
    if entries := items(meta(new), "managedFields"):
        meta(new)["managedFields"] = sort_entries(entries)


def _scaler(entry: JsonObject) -> tuple[Any, ...]:
    return tuple(entry.get(name) for name in ("manager", "operation", "apiVersion", "subresource"))


def _decode(write: ObjectWrite, made: Patched) -> tuple[JsonObject, list[str]]:
    """Decode a Scale; after a strategic patch Go converts it instead, with other errors."""
    types = write.core.types
    try:
        return types.decode(SCALE, made.document)
    except WireDecodeError:
        if made.strategic is None:
            raise
        if why := types.conversion_problem(SCALE, made.document):
            raise WireDecodeError(why) from None
        return types.decode(SCALE, types.converted(SCALE, made.document))


def _read(write: ObjectWrite, made: Patched) -> JsonObject:
    document = made.document
    kind, version = document.get("kind", ""), document.get("apiVersion", "")
    dropped = made.strategic is not None and not kind and not version
    if (kind, version) != (SCALE.kind, SCALE.api_version) and not dropped:
        where = 'in scheme "pkg/runtime/scheme.go:111"'
        raise invalid_patch(made, f'no kind "{kind}" is registered for version "{version}" {where}')
    try:
        scale, unknown = _decode(write, made)
    except WireDecodeError as error:
        raise invalid_patch(made, str(error)) from None
    found = [*made.strict, *(unknown if made.strategic is None else sorted(unknown))]
    if found and write.options.field_validation == "Strict":
        raise invalid_patch(made, f"strict decoding error: {', '.join(found)}")
    if write.options.field_validation == "Warn":
        write.warnings.extend(found)
    if meta(scale).get("namespace", write.namespace) not in ("", write.namespace):
        write.place(scale)
    name = meta(scale).get("name", "")
    if not name:
        text = f"the name of the object ({write.name} based on URL) was undeterminable: name must be provided"
        raise StatusError.bad_request(text)
    if name != write.name:
        text = f"the name of the object ({name}) does not match the name on the URL ({write.name})"
        raise StatusError.bad_request(text)
    replicas = scale.get("spec", {}).get("replicas", 0)
    if replicas < 0 and not write.resource.custom:
        error = problems.invalid("spec.replicas", replicas, "must be greater than or equal to 0")
        raise StatusError.invalid("autoscaling", "Scale", write.name, [error])
    return scale
