"""Patches: JSON patch, merge patch, strategic merge patch and server-side apply, each a function of the old object."""

from collections.abc import Callable
from typing import Any, NamedTuple, cast

from kubewright.api import GroupVersionKind, PatchError, json_patch, merge_patch, problems, strategic_patch
from kubewright.devserver.handlers.bodies import find_kind, media_type
from kubewright.devserver.handlers.object_write import ObjectWrite
from kubewright.devserver.handlers.update import ObjectChange
from kubewright.devserver.merge import ApplyConflicts, ApplyError, apply, resets_ownership
from kubewright.devserver.objects import JsonObject, encode, encode_sorted, meta, section
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.registry import ServedResource
from kubewright.devserver.request.options import APPLY_PATCH
from kubewright.devserver.wire import WireDecodeError, parse_json, parse_yaml, sort_keys, yaml_errors
from kubewright.http.server import Request

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
MAX_OPERATIONS = 10_000
_MALFORMED = "invalid patch format"
"""The start of messages about invalid directives; other patches fail on the object they are applied to."""


class Patched(NamedTuple):
    """A patched document, and what was wrong with the patch strictly speaking."""

    document: JsonObject
    strict: list[str]
    touched: JsonObject
    """The objects that the patch reaches into, as nested objects."""
    strategic: JsonObject | None = None
    """The patch itself, if it is a strategic one: errors then show the patch and not the document."""


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
    value, strict = _parse(body, doing)
    if kind == JSON_PATCH:
        operations = _operations(value, doing)
        touched = _reached(operations)

        def patch_by_operations(document: JsonObject) -> Patched:
            try:
                return Patched(
                    json_patch(document, operations), [f"json patch {text}" for text in strict], touched
                )
            except PatchError:
                raise StatusError.rejected_patch() from None

        return patch_by_operations
    if value is None and kind == MERGE_PATCH:
        raise StatusError.bad_request("Invalid JSON Patch")
    if value is not None and not isinstance(value, dict):
        raise _undecodable(value, "map[string]interface {}", doing)
    patch = cast(JsonObject, value or {})
    if kind == MERGE_PATCH:
        return lambda document: Patched(merge_patch(document, patch), strict, patch)

    def patch_strategically(document: JsonObject) -> Patched:
        try:
            return Patched(strategic_patch(document, patch, schema), strict, patch, patch)
        except PatchError as error:
            malformed = str(error).startswith(_MALFORMED)
            raise (StatusError.bad_request if malformed else StatusError.unknown)(str(error)) from None

    return patch_strategically


def _undecodable(value: Any, wanted: str, doing: str) -> StatusError:
    kinds: dict[type[object], str] = {
        str: "string",
        bool: "bool",
        int: "number",
        float: "number",
        list: "array",
    }
    sort = kinds.get(type(cast(object, value)), "object")
    return StatusError.bad_request(f"{doing}json: cannot unmarshal {sort} into Go value of type {wanted}")


def _parse(body: bytes, doing: str) -> tuple[Any, list[str]]:
    try:
        return parse_json(body)
    except WireDecodeError as error:
        raise StatusError.bad_request(f"{doing}{error}") from None


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
    else:
        document = _sorted_where_reached(document, made.touched)
    try:
        if made.strategic is None and not resource.custom:
            find_kind(document)
    except WireDecodeError as error:
        raise invalid_patch(made, f"couldn't get version/kind; json parse error: {error}") from None
    try:
        new, unknown = resource.codec.decode(document, old)
    except WireDecodeError as error:
        raise invalid_patch(made, _converted(write, made, str(error))) from None
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


def _converted(write: ObjectWrite, made: Patched, why: str) -> str:
    """Return the reason of a decoding error: after a strategic patch, Go converts the value instead of decoding JSON."""
    if made.strategic is None:
        return why
    return write.core.types.conversion_problem(write.resource.gvk, made.document) or why


def invalid_patch(made: Patched, why: str) -> StatusError:
    """Return the error of a patch whose result cannot be decoded."""
    if made.strategic is None:
        shown = _echo(made.document, made.touched)
    else:
        shown = _as_go(_without_used_directives(made.strategic))
    return StatusError.invalid("", "", "", [problems.invalid("patch", shown, why)])


def _without_used_directives(patch: Any) -> Any:
    """Return a strategic patch without the directives that kube-apiserver removes from it when it uses them."""
    if not isinstance(patch, dict):
        return patch
    return {
        name: _without_used_directives(item)
        for name, item in cast(JsonObject, patch).items()
        if name != "$retainKeys" and (name, item) != ("$patch", "replace")
    }


def _echo(value: Any, touched: Any) -> str:
    """Encode a patched document as kube-apiserver does: only the objects that the patch reaches are sorted."""
    if isinstance(touched, list):
        return encode_sorted(value).decode()
    if not isinstance(touched, dict) or not isinstance(value, dict | list):
        return encode(value).decode()
    reached = cast(JsonObject, touched)
    if isinstance(value, list):
        items = enumerate(cast(list[Any], value))
        return f"[{','.join(_echo(item, reached.get(str(index))) for index, item in items)}]"
    parts = sorted(cast(JsonObject, value).items())
    return (
        f"{{{','.join(f'{encode(name).decode()}:{_echo(item, reached.get(name))}' for name, item in parts)}}}"
    )


def _sorted_where_reached(value: Any, touched: Any) -> Any:
    """Sort the keys of the objects that a patch reaches, as kube-apiserver does: unknown fields are reported in order."""
    if isinstance(touched, list):
        return sort_keys(value)
    if not isinstance(touched, dict) or not isinstance(value, dict | list):
        return value
    reached = cast(JsonObject, touched)
    if isinstance(value, list):
        items = enumerate(cast(list[Any], value))
        return [_sorted_where_reached(item, reached.get(str(index))) for index, item in items]
    parts = sorted(cast(JsonObject, value).items())
    return {name: _sorted_where_reached(item, reached.get(name)) for name, item in parts}


def _reached(operations: list[JsonObject]) -> JsonObject:
    """Return the objects that a JSON patch reaches into, as nested objects."""
    reached: JsonObject = {}
    for operation in operations:
        for pointer in (operation.get("from", ""), operation.get("path", "")):
            level = reached
            for name in str(pointer).split("/")[1:-1]:
                level = level.setdefault(name.replace("~1", "/").replace("~0", "~"), {})
    return reached


def _as_go(value: Any) -> str:
    """Write a value as Go prints it."""
    if isinstance(value, dict):
        pairs = sorted(cast(JsonObject, value).items())
        return f"map[{' '.join(f'{name}:{_as_go(item)}' for name, item in pairs)}]"
    if isinstance(value, list):
        return f"[{' '.join(map(_as_go, cast(list[Any], value)))}]"
    return (
        {None: "<nil>", True: "true", False: "false"}[value]
        if value is None or isinstance(value, bool)
        else str(value)
    )


def applied(write: ObjectWrite, body: bytes) -> ObjectChange:
    """Return the change of a server-side apply."""
    config = configuration(body)
    check_configuration(write, config, write.resource.gvk)
    empty = write.empty()

    def change(old: JsonObject | None) -> JsonObject:
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
            )
        )
        # An apply without effect does not default either: new defaults appear with the next change.
        if old is None or not _only_owners_differ(merged, old):
            merged = read_applied(write, merged, old, meta(config).get("namespace", ""))
        report_repeated_keys(write, body)
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


def configuration(body: bytes) -> JsonObject:
    """Read the configuration that is applied."""
    try:
        value, _ = parse_yaml(body)
    except WireDecodeError as error:
        raise StatusError.bad_request(
            f"error decoding YAML: error converting YAML to JSON: {error}"
        ) from None
    if not isinstance(value, dict):
        raise StatusError.bad_request(
            "error decoding YAML: error unmarshaling JSON: json: cannot unmarshal into Go value"
        )
    return cast(JsonObject, value)


def report_repeated_keys(write: ObjectWrite, body: bytes) -> None:
    """Reject repeated keys of an applied configuration or warn about them, after it was found to be applicable."""
    validation = write.options.field_validation
    repeated = parse_yaml(body)[1] if validation in ("Strict", "Warn") else []
    if repeated and validation == "Strict":
        raise StatusError.bad_request(
            f"error strict decoding YAML: error converting YAML to JSON: {yaml_errors(repeated)}"
        )
    write.warnings.extend(repeated)


def check_configuration(write: ObjectWrite, config: JsonObject, wanted: GroupVersionKind) -> None:
    """Refuse a configuration of another kind, or one that claims to know the owners."""
    group, _, version = str(config.get("apiVersion") or "").rpartition("/")
    kind = str(config.get("kind") or "")
    if not version or not kind:
        raise _wrong_type(group, version, kind)
    if section(config, "metadata").get("managedFields") is not None:
        raise StatusError.bad_request("metadata.managedFields must be nil")
    if config["apiVersion"] == wanted.api_version and write.subresource == "scale" and kind != wanted.kind:
        raise _wrong_type(group, version, kind)
    if (config["apiVersion"], kind) != (wanted.api_version, wanted.kind):
        raise StatusError.bad_request(
            f"Incorrect version specified in apply patch. Specified patch version: {config['apiVersion']}, "
            f"expected: {wanted.api_version}"
        )


def _wrong_type(group: str, version: str, kind: str) -> StatusError:
    return StatusError.bad_request(f"invalid object type: {group}/{version}, Kind={kind}")


def read_applied(
    write: ObjectWrite, merged: JsonObject, old: JsonObject | None, namespace: str = ""
) -> JsonObject:
    """Bring a merged object into form; it is named with the namespace that its author gave."""
    resource = write.resource
    try:
        new, _ = resource.codec.decode(merged, old)
    except WireDecodeError as error:
        why = str(error)
        kind = f"{resource.group}/{resource.version}, Kind={resource.kind}"
        if not resource.custom:
            why = write.core.types.conversion_problem(resource.gvk, merged) or why
            why = f"unable to convert unstructured object to {kind}: {why}"
        where = f"{namespace}/{write.name}; {kind}"
        raise StatusError.unknown(
            f"failed to convert new object ({where}) to proper version: {why}"
        ) from None
    resource.codec.default_merged(new)
    return new
