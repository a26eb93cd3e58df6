"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply, each a function of the old object."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from kubewright.api import GroupVersionKind, PatchError, json_patch, merge_patch, problems
from kubewright.api.patches import merge_strategically
from kubewright.devserver.handlers.bodies import media_type
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.handlers.update import ObjectChange
from kubewright.devserver.merge import ApplyConflicts, ApplyError, apply, resets_ownership
from kubewright.devserver.objects import JsonObject, copy, encode, encode_sorted, go_text, meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.options import APPLY_PATCH
from kubewright.devserver.wire import (
    WireDecodeError,
    find_kind,
    parse_json,
    parse_yaml,
    sort_keys,
    untyped,
    yaml_errors,
)
from kubewright.http.server import Request

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
MAX_OPERATIONS = 10_000
_ENTRY = "meta/v1.ManagedFieldsEntry"
_MALFORMED = "invalid patch format"
"""The start of messages about invalid directives; other patches fail on the object they are applied to."""


class Patched(NamedTuple):
    """A patched document, and what was wrong with the patch strictly speaking."""

    document: JsonObject
    """Its objects that a JSON or merge patch reaches into are sorted, as in kube-apiserver."""
    strict: list[str]
    strategic: JsonObject | None = None
    """What is left of the patch, if it is a strategic one: errors then show the patch and not the document."""


Patch = Callable[[JsonObject], Patched]
"""Patch a document, which stays as it is."""


def patch_type(request: Request, resource: ServedResource) -> str:
    """Return the patch type of a request; custom resources do not support strategic merge patch."""
    media = media_type(request) if request.headers.get("content-type") else ""
    if resource.custom:
        accepted = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
        if media not in accepted:
            raise StatusError.unsupported_media_type(accepted)
    elif media not in (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH):
        raise StatusError(415, "UnsupportedMediaType", "415: Unsupported Media Type", {})
    return media


def document_patch(kind: str, body: bytes, schema: Any) -> Patch:
    """Read a JSON, merge or strategic patch; a strategic one follows the schema."""
    # kube-apiserver has no such prefix for strategic patches.
    doing = "" if kind == STRATEGIC_PATCH else "error decoding patch: "
    value, strict = _parse(body)
    if kind == JSON_PATCH:
        operations = _operations(value, doing)

        def patch_by_operations(document: JsonObject) -> Patched:
            try:
                patched = json_patch(document, operations)
            except PatchError:
                raise StatusError.rejected_patch() from None
            return Patched(patched, [f"json patch {text}" for text in strict])

        return patch_by_operations
    if value is None and kind == MERGE_PATCH:
        raise StatusError.bad_request("Invalid JSON Patch")
    if value is not None and not isinstance(value, dict):
        raise _undecodable(value, "map[string]interface {}", doing)
    patch = cast(JsonObject, value or {})
    if kind == MERGE_PATCH:

        def patch_by_merging(document: JsonObject) -> Patched:
            return Patched(_sorted_where_reached(merge_patch(document, patch), patch, document), strict)

        return patch_by_merging
    # As in kube-apiserver, numbers beyond 64 bits are floats.
    patch = cast(JsonObject, untyped(patch))

    def patch_strategically(document: JsonObject) -> Patched:
        left = copy(patch)
        try:
            return Patched(merge_strategically(copy(document), left, schema), strict, left)
        except PatchError as error:
            malformed = str(error).startswith(_MALFORMED)
            raise (StatusError.bad_request if malformed else StatusError.unknown)(str(error)) from None

    return patch_strategically


def _undecodable(value: Any, expected: str, doing: str) -> StatusError:
    kinds: dict[type[object], str] = {
        str: "string",
        bool: "bool",
        int: "number",
        float: "number",
        list: "array",
    }
    sort = kinds.get(type(cast(object, value)), "object")
    return StatusError.bad_request(f"{doing}json: cannot unmarshal {sort} into Go value of type {expected}")


def _parse(body: bytes) -> tuple[Any, list[str]]:
    try:
        return parse_json(body)
    except WireDecodeError:
        raise StatusError.bad_request("invalid JSON patch") from None


def _operations(value: Any, doing: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _undecodable(value, "[]handlers.jsonPatchOp", doing)
    operations = cast(list[Any], value)
    for item in operations:
        if not isinstance(item, dict):
            raise _undecodable(item, "handlers.jsonPatchOp", doing)
    if len(operations) > MAX_OPERATIONS:
        raise StatusError.too_large(
            f"The allowed maximum operations in a JSON patch is {MAX_OPERATIONS}, got {len(operations)}"
        )
    return operations


def patched(write: ObjectWrite, patch: Patch) -> ObjectChange:
    """Return the change of a JSON, merge or strategic patch."""

    def change(old: JsonObject | None) -> JsonObject:
        if old is None:
            raise write.not_found()
        made = patch(old)
        forget = resets_ownership(made.document)
        return write.manage_fields(old, read_patched(write, made, old), reset=forget)

    return change


def read_patched(write: ObjectWrite, made: Patched, old: JsonObject) -> JsonObject:
    """Decode a patched document; errors are reported as errors of the patch."""
    resource, document = write.resource, made.document
    if made.strategic is not None:
        document = write.core.types.arranged(resource.gvk, document)
    try:
        if made.strategic is None and not resource.custom:
            find_kind(document)
    except WireDecodeError as error:
        raise invalid_patch(made, str(error)) from None
    try:
        new, unknown = _decode_patched(write, made, document, old)
    except WireDecodeError as error:
        raise invalid_patch(made, str(error)) from None
    found = [*made.strict, *(unknown if made.strategic is None else sorted(unknown))]
    validation = write.options.field_validation
    if found and validation == "Strict":
        raise invalid_patch(made, f"strict decoding error: {', '.join(found)}")
    if found and validation == "Warn":
        write.warnings.extend(found)
    if resource.custom and document.get("kind") != resource.kind:
        new["kind"] = document.get("kind", "")
    resource.codec.default(new)
    return new


def _decode_patched(
    write: ObjectWrite, made: Patched, document: JsonObject, old: JsonObject
) -> tuple[JsonObject, list[str]]:
    if made.strategic is None:
        return write.resource.codec.decode(document, old)
    return decode_converted(write, document, old)


def decode_converted(
    write: ObjectWrite, document: JsonObject, old: JsonObject | None
) -> tuple[JsonObject, list[str]]:
    """Decode an object that Go converts instead of decoding JSON: after a strategic patch and after an apply.

    The conversion reports other errors, and wraps a number that does not fit instead of refusing it.
    """
    resource = write.resource
    try:
        return resource.codec.decode(document, old)
    except WireDecodeError:
        if resource.custom:
            raise
        if why := write.core.types.conversion_problem(resource.gvk, document):
            raise WireDecodeError(why) from None
        return resource.codec.decode(write.core.types.converted(resource.gvk, document), old)


def invalid_patch(made: Patched, why: str) -> StatusError:
    """Return the error of a patch whose result cannot be decoded."""
    if made.strategic is None:
        shown = encode(made.document).decode()
    else:
        shown = go_text(made.strategic)
    return StatusError.invalid("", "", "", [problems.invalid("patch", shown, why)])


def _sorted_where_reached(value: Any, touched: Any, before: Any) -> Any:
    """Sort the keys of the objects that a patch reaches, as kube-apiserver does: unknown fields are reported in order.

    A list in place of an object is not reached into: its objects keep their order.
    """
    if isinstance(touched, list):
        return value if isinstance(before, dict) else sort_keys(value)
    if not isinstance(touched, dict) or not isinstance(value, dict):
        return value
    reached, former = cast(JsonObject, touched), cast(JsonObject, before if isinstance(before, dict) else {})
    parts = sorted(cast(JsonObject, value).items())
    return {name: _sorted_where_reached(item, reached.get(name), former.get(name)) for name, item in parts}


def applied(write: ObjectWrite, body: bytes) -> ObjectChange:
    """Return the change of a server-side apply."""
    empty = write.empty()

    def change(old: JsonObject | None) -> JsonObject:
        # As in kube-apiserver, a missing object is reported first.
        config, repeated = configuration(body)
        check_configuration(write, config, write.resource.gvk)
        merged = reporting_conflicts(
            lambda: apply(
                write.resource.codec.merge_schema,
                empty if old is None else old,
                config,
                write.field_write(),
                force=bool(write.options.force),
                empty=empty,
                reset_fields=write.reset_fields(),
                convert=write.convert,
                check_live=old is not None
                and (write.stored_otherwise or write.resource.strategy.optional_keys),
            )
        )
        # An apply without effect does not default either: new defaults appear with the next change.
        claimed = "managedFields" in section(config, "metadata")
        if old is None or claimed or not _only_owners_differ(merged, old):
            merged = read_applied(write, merged, old, config)
        report_repeated_keys(write, repeated)
        return merged

    return change


def _only_owners_differ(new: JsonObject, old: JsonObject) -> bool:
    before, after = (
        {**obj, "metadata": {name: part for name, part in meta(obj).items() if name != "managedFields"}}
        for obj in (old, new)
    )
    return encode_sorted(before) == encode_sorted(after)


def reporting_conflicts(merge: Callable[[], JsonObject]) -> JsonObject:
    """Return the merged object; raise conflicts and schema errors as kube-apiserver reports them."""
    try:
        return merge()
    except ApplyConflicts as conflicts:
        causes = [
            {"reason": "FieldManagerConflict", "message": item.message, "field": item.field}
            for item in conflicts.conflicts
        ]
        raise StatusError.apply_conflict(str(conflicts), causes) from None
    except ApplyError as error:
        raise StatusError.unknown(str(error)) from None


def configuration(body: bytes) -> tuple[JsonObject, list[str]]:
    """Read the configuration that is applied; also return its repeated keys."""
    try:
        value, repeated = parse_yaml(body)
    except WireDecodeError as error:
        raise StatusError.bad_request(f"error encoding patch: {error}") from None
    if not isinstance(value, dict):
        raise StatusError.bad_request(
            "error decoding YAML: error unmarshaling JSON: json: cannot unmarshal into Go value"
        )
    return cast(JsonObject, value), repeated


def report_repeated_keys(write: ObjectWrite, repeated: list[str]) -> None:
    """Reject repeated keys of an applied configuration or warn about them, after it was found to be applicable."""
    validation = write.options.field_validation
    if repeated and validation == "Strict":
        raise StatusError.bad_request(
            f"error strict decoding patch: error converting YAML to JSON: {yaml_errors(repeated)}"
        )
    if validation == "Warn":
        write.warnings.extend(repeated)


def check_configuration(write: ObjectWrite, config: JsonObject, expected: GroupVersionKind) -> None:
    """Refuse a configuration of another kind, or one that claims to know the owners."""
    group, _, version = str(config.get("apiVersion") or "").rpartition("/")
    kind = str(config.get("kind") or "")
    if not version or not kind:
        raise _wrong_type(group, version, kind)
    if _readable_entries(write, section(config, "metadata").get("managedFields")):
        raise StatusError.bad_request("metadata.managedFields must be nil")
    if (
        config["apiVersion"] == expected.api_version
        and write.subresource == "scale"
        and kind != expected.kind
    ):
        raise _wrong_type(group, version, kind)
    if (config["apiVersion"], kind) != (expected.api_version, expected.kind):
        raise StatusError.bad_request(
            f"Incorrect version specified in apply patch. Specified patch version: {config['apiVersion']}, "
            f"expected: {expected.api_version}"
        )


def _readable_entries(write: ObjectWrite, entries: Any) -> bool:
    """Return True if managedFields are what they should be: kube-apiserver does not see others, until it converts them."""
    if not isinstance(entries, list):
        return False
    return all(
        isinstance(entry, dict) and write.core.types.struct_problem(_ENTRY, entry) is None
        for entry in cast(list[Any], entries)
    )


def _wrong_type(group: str, version: str, kind: str) -> StatusError:
    return StatusError.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")


def _check_entries(write: ObjectWrite, merged: JsonObject, entries: Any) -> None:
    """Raise WireDecodeError if an object with the managedFields of its configuration, which merging drops, is invalid."""
    whole = {**merged, "metadata": {**meta(merged), "managedFields": entries}}
    if why := write.core.types.conversion_problem(write.resource.gvk, whole):
        raise WireDecodeError(why)


def read_applied(
    write: ObjectWrite, merged: JsonObject, old: JsonObject | None, config: JsonObject
) -> JsonObject:
    """Bring a merged object into form; errors name the object as its author did."""
    resource = write.resource
    try:
        if not resource.custom:
            if "managedFields" in section(config, "metadata"):
                _check_entries(write, merged, section(config, "metadata")["managedFields"])
            merged = write.core.types.arranged(resource.gvk, merged)
        new, _ = decode_converted(write, merged, old)
    except WireDecodeError as error:
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        why = str(error)
        if not resource.custom:
            why = f"unable to convert unstructured object to {kind}: {why}"
        metadata = meta(config)
        where = f"{metadata.get('namespace', '')}/{metadata.get('name', '')}; {kind}"
        raise StatusError.unknown(
            f"failed to convert new object ({where}) to proper version: {why}"
        ) from None
    resource.codec.default_merged(new)
    return new
