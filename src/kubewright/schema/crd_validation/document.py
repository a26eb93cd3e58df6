"""Validation of a whole CustomResourceDefinition: names, versions, subresources, columns, selectable fields; warnings."""

from collections.abc import Iterator
from typing import Any

from kubewright.api import FieldError, names, problems
from kubewright.schema.crd_validation.internal_types import (
    ROOT_FIELDS_TEXT,
    field_not_allowed_at_root,
    internal_schema,
    internal_versions,
)
from kubewright.schema.crd_validation.keywords import check_defaults, check_keywords
from kubewright.schema.crd_validation.rules import check_rules
from kubewright.schema.crd_validation.structure import check_structure, conversion_error
from kubewright.schema.crd_validation.webhooks import check_conversion
from kubewright.schema.formats import is_known_format
from kubewright.schema.go_urls import is_request_uri
from kubewright.schema.json_tree import (
    FieldPathError,
    Schema,
    additional,
    items,
    part,
    properties,
    resolve_field_path,
)

_APPROVAL = "api-approved.kubernetes.io"
_PER_VERSION = ("schema", "subresources", "additionalPrinterColumns", "selectableFields")


def check_crd(crd: dict[str, Any], *, old: dict[str, Any] | None = None) -> list[FieldError]:
    """Return the errors for which the API server rejects a CustomResourceDefinition, or the change from `old` to it."""
    spec = part(crd, "spec")
    errors = [] if old is not None else [*_names(crd, spec)]
    errors += _spec(spec)
    if old is not None:
        errors += _changes(spec, old)
    errors += _stored_versions(part(crd, "status").get("storedVersions"), spec.get("versions") or [])
    errors += _approval(crd, spec, old)
    if spec.get("preserveUnknownFields"):
        if any(
            _has_default(part(version, "schema", "openAPIV3Schema")) for version in spec.get("versions") or ()
        ):
            text = "must be false in order to use defaults in the schema"
            errors.append(problems.invalid("spec.preserveUnknownFields", True, text))
        text = "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
        errors.append(problems.invalid("spec.preserveUnknownFields", True, text))
    return errors


def _names(crd: dict[str, Any], spec: dict[str, Any]) -> Iterator[FieldError]:
    metadata = part(crd, "metadata")
    expected = f"{part(spec, 'names').get('plural', '')}.{spec.get('group', '')}"
    # The check of all metadata reports a missing name.
    for field in ("generateName", "name"):
        if not (name := metadata.get(field)):
            continue
        syntax = names.dns1123_subdomain
        for message in syntax(name) if field == "name" else names.generated(syntax, name):
            yield problems.invalid(f"metadata.{field}", name, message)
        if name != expected:
            yield problems.invalid(f"metadata.{field}", name, 'must be spec.names.plural+"."+spec.group')


def _has_default(schema: Schema) -> bool:
    """Return True if a schema, or one below it, has a default."""
    if schema.get("default") is not None:
        return True
    below: list[Schema | None] = [*properties(schema).values(), items(schema), additional(schema)]
    below.append(schema.get("not"))
    for keyword in ("allOf", "oneOf", "anyOf"):
        below += schema.get(keyword) or ()
    return any(_has_default(sub) for sub in below if sub is not None)


def _spec(spec: dict[str, Any]) -> Iterator[FieldError]:
    yield from _group(spec.get("group", ""))
    scope = spec.get("scope", "")
    if not scope:
        yield problems.required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield problems.not_supported("spec.scope", scope, ("Cluster", "Namespaced"))
    versions: list[dict[str, Any]] = spec.get("versions") or []
    for position, version in enumerate(versions):
        if part(version, "schema").get("openAPIV3Schema") is None:
            yield problems.required(f"spec.versions[{position}].schema.openAPIV3Schema")
    common, separate = _split_common(versions)
    for position, version in enumerate(separate):
        yield from _version(version, versions[position], f"spec.versions[{position}]")
    yield from _version_set(versions, separate)
    first = versions[0].get("name", "") if versions else ""
    if first and names.dns1035_label(first):
        yield problems.invalid("spec.version", first, ",".join(names.dns1035_label(first)))
    yield from check_required_names(part(spec, "names"))
    yield from check_names(with_default_names(part(spec, "names")), "spec.names")
    has_status = any("status" in part(version, "subresources") for version in versions)
    yield from _parts(common, "spec", has_status=has_status, whole=common)
    if spec.get("conversion") is not None:
        strategy = spec["conversion"].get("strategy", "")
        if spec.get("preserveUnknownFields") and strategy != "None":
            text = "must be None if spec.preserveUnknownFields is true"
            yield problems.invalid("spec.conversion.strategy", strategy, text)
        yield from check_conversion(spec["conversion"], "spec.conversion")


def _group(group: str) -> Iterator[FieldError]:
    messages = names.dns1123_subdomain(group) if group else []
    if not group:
        yield problems.required("spec.group")
    elif messages:
        yield problems.invalid("spec.group", group, ",".join(messages))
    elif "." not in group:
        yield problems.invalid("spec.group", group, "should be a domain with at least one dot")


def _split_common(versions: list[dict[str, Any]]) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Split versions as the server does: fields that all versions share are validated and reported once for the CRD."""
    if not versions:
        return {}, []
    common = {
        name: versions[0][name]
        for name in _PER_VERSION
        if versions[0].get(name) and all(version.get(name) == versions[0][name] for version in versions)
    }
    return common, [
        {key: value for key, value in version.items() if key not in common} for version in versions
    ]


def _version(version: dict[str, Any], whole: dict[str, Any], path: str) -> Iterator[FieldError]:
    messages = names.dns1035_label(version.get("name", ""))
    if messages:
        yield problems.invalid(f"{path}.name", version.get("name", ""), ",".join(messages))
    warning = version.get("deprecationWarning")
    for message in _deprecation(bool(version.get("deprecated")), warning):
        yield problems.invalid(f"{path}.deprecationWarning", warning, message)
    has_status = "status" in part(whole, "subresources")
    yield from _parts(version, path, has_status=has_status, whole=whole)


def _deprecation(deprecated: bool, warning: str | None) -> Iterator[str]:
    if warning is None:
        return
    if not deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(warning.encode()) > 256:
        yield "must be <= 256 characters long"
    if not warning:
        yield "must not be an empty string"
    for position, char in enumerate(warning):
        if not char.isprintable():
            yield f"must only contain printable UTF-8 characters; non-printable character found at index {position}"
            break


def _parts(
    version: dict[str, Any], path: str, *, has_status: bool, whole: dict[str, Any]
) -> Iterator[FieldError]:
    """Validate schema, subresources, columns and selectable fields, of one version or of all versions."""
    schema = part(version, "schema").get("openAPIV3Schema")
    if schema is not None:
        location = "validation" if path == "spec" else "schema"
        yield from check_schema(schema, f"{path}.{location}.openAPIV3Schema", has_status=has_status)
    yield from check_subresources(part(version, "subresources"), f"{path}.subresources")
    columns: list[dict[str, Any]] = version.get("additionalPrinterColumns") or []
    for position, column in enumerate(columns):
        yield from check_column(column, f"{path}.additionalPrinterColumns[{position}]")
    fields: list[dict[str, str]] = version.get("selectableFields") or []
    known = part(whole, "schema", "openAPIV3Schema")
    if fields and not known:
        # The server reports this for the CRD, whichever version it is about.
        text = "may only be set when validations.schema is included"
        yield problems.invalid("spec.selectableFields", "", text)
    elif fields and not schema:
        # The schema, but not the fields, is the same in all versions.
        text = "may only be set when `version.schema.openAPIV3Schema` is not included"
        yield problems.invalid(f"{path}.selectableFields", "", text)
    elif fields:
        yield from check_selectable_fields(fields, known, f"{path}.selectableFields")


def check_schema(schema: Schema, path: str, *, has_status: bool = False) -> list[FieldError]:
    """Return the errors in the schema of a custom resource."""
    errors: list[FieldError] = []
    if has_status:
        kind = schema.get("type", "")
        if kind and kind != "object":
            text = 'only "object" is allowed as the type at the root of the schema if the status subresource is enabled'
            errors.append(problems.invalid(f"{path}.type", kind, text))
        elif field_not_allowed_at_root(schema):
            text = f"only {ROOT_FIELDS_TEXT} fields are allowed at the root of the schema if the status subresource is enabled"
            errors.append(problems.invalid(path, internal_schema(schema), text))
    if schema.get("nullable"):
        errors.append(problems.forbidden(f"{path}.nullable", "nullable cannot be true at the root"))
    message = conversion_error(schema)
    structure = [] if message else check_structure(schema, path) or check_defaults(schema, path)
    keywords, faulty = check_keywords(schema, path)
    errors += structure + keywords
    if not errors and message:
        errors.append(problems.invalid(path, "", message))
    if not message and not structure:
        errors += check_rules(schema, path, faulty)
    return errors


def _version_set(versions: list[dict[str, Any]], separate: list[dict[str, Any]]) -> Iterator[FieldError]:
    known = [version.get("name") for version in versions]
    if len(set(known)) != len(known):
        yield problems.invalid(
            "spec.versions", internal_versions(separate), "must contain unique version names"
        )
    if sum(bool(version.get("storage")) for version in versions) != 1:
        text = "must have exactly one version marked as storage version"
        yield problems.invalid("spec.versions", internal_versions(separate) or None, text)


def _stored_versions(stored: list[str] | None, versions: list[dict[str, Any]]) -> Iterator[FieldError]:
    # The server fills in the first version that is marked as stored.
    stored = stored or [version.get("name", "") for version in versions if version.get("storage")][:1]
    if not stored:
        yield problems.invalid("status.storedVersions", None, "must have at least one stored version")
    path, known = "status.storedVersions", {version.get("name") for version in versions}
    pending = set(stored)
    for version in versions:
        name = version.get("name", "")
        if version.get("storage") and name not in pending:
            yield problems.invalid(path, stored, f"must have the storage version {name}")
        # A second version of the same name does not find it any more.
        pending.discard(name)
    # Of a repeated name, kube-apiserver reports the last position.
    for name, position in {name: position for position, name in enumerate(stored)}.items():
        if name not in known:
            text = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in spec.versions "
                f"until a storage migration ensures no data remains persisted in {name} and removes {name} from "
                "status.storedVersions"
            )
            yield problems.invalid(f"{path}[{position}]", name, text)


def _changes(spec: dict[str, Any], old: dict[str, Any]) -> Iterator[FieldError]:
    before = part(old, "spec")
    conditions: list[dict[str, Any]] = part(old, "status").get("conditions") or []
    established = any(
        item.get("type") == "Established" and item.get("status") == "True" for item in conditions
    )
    immutable = ["scope", "names.kind"] if established else []
    for path in (*immutable, "group", "names.plural"):
        new, previous = _at(spec, path), _at(before, path)
        if new != previous:
            yield problems.invalid(f"spec.{path}", new, "field is immutable")


def _at(spec: dict[str, Any], path: str) -> Any:
    *outer, name = path.split(".")
    return part(spec, *outer).get(name) or ""


def _approval(crd: dict[str, Any], spec: dict[str, Any], old: dict[str, Any] | None) -> Iterator[FieldError]:
    group = spec.get("group", "")
    if not (group in ("k8s.io", "kubernetes.io") or group.endswith((".k8s.io", ".kubernetes.io"))):
        return
    annotation: str = part(crd, "metadata", "annotations").get(_APPROVAL, "")
    if old is not None and part(old, "metadata", "annotations").get(_APPROVAL, "") == annotation:
        return
    path, see = (
        f"metadata.annotations[{_APPROVAL}]",
        "see https://github.com/kubernetes/enhancements/pull/1111",
    )
    if not annotation:
        yield problems.required(path, f'protected groups must have approval annotation "{_APPROVAL}", {see}')
    elif not annotation.startswith("unapproved") and not ("://" in annotation and is_request_uri(annotation)):
        text = (
            f'protected groups must have approval annotation "{_APPROVAL}" with either a URL or a reason starting '
            f'with "unapproved", {see}'
        )
        yield problems.invalid(path, annotation, text)


_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_SELECTABLE_TYPES = ("string", "boolean", "integer")
_MAX_SELECTABLE = 8


def with_default_names(given: dict[str, Any]) -> dict[str, Any]:
    """Return the names of a kind with the two that the server defaults."""
    kind = given.get("kind", "")
    defaults = {"singular": kind.lower(), "listKind": f"{kind}List" if kind else ""}
    return {**given, **{name: value for name, value in defaults.items() if not given.get(name)}}


def check_required_names(given: dict[str, Any]) -> Iterator[FieldError]:
    """Yield an error for each missing name."""
    filled = with_default_names(given)
    for name in ("plural", "singular", "kind", "listKind"):
        if not filled.get(name):
            yield problems.required(f"spec.names.{name}")


def check_names(given: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Yield an error for each malformed name."""
    for name in ("plural", "singular"):
        yield from _label(given.get(name, ""), f"{path}.{name}")
    for name in ("kind", "listKind"):
        value = given.get(name, "")
        messages = names.dns1035_label(value.lower()) if value else []
        if messages:
            text = "may have mixed case, but should otherwise match: " + ",".join(messages)
            yield problems.invalid(f"{path}.{name}", value, text)
    for position, value in enumerate(given.get("shortNames") or ()):
        yield from _listed(value, f"{path}.shortNames[{position}]")
    if given.get("kind") and given["kind"] == given.get("listKind"):
        yield problems.invalid(f"{path}.listKind", given["listKind"], "kind and listKind may not be the same")
    for position, value in enumerate(given.get("categories") or ()):
        yield from _listed(value, f"{path}.categories[{position}]")


def _label(value: str, path: str) -> Iterator[FieldError]:
    """Validate a name unless it is missing, which is reported separately."""
    if value:
        yield from _listed(value, path)


def _listed(value: str, path: str) -> Iterator[FieldError]:
    if messages := names.dns1035_label(value):
        yield problems.invalid(path, value, ",".join(messages))


def check_subresources(subresources: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors in the paths of the scale subresource."""
    scale = subresources.get("scale")
    if scale is None:
        return
    for name, prefixes, text in (
        ("specReplicasPath", (".spec.",), "should be a json path under .spec"),
        ("statusReplicasPath", (".status.",), "should be a json path under .status"),
        ("labelSelectorPath", (".spec.", ".status."), "should be a json path under either .spec or .status"),
    ):
        value, field = scale.get(name) or "", f"{path}.scale.{name}"
        if not value:
            if name != "labelSelectorPath":
                yield problems.required(field)
        elif not value.startswith("."):
            yield problems.invalid(field, value, "must be a simple json path starting with .")
        elif not value.startswith(prefixes):
            yield problems.invalid(field, value, text)


def check_column(column: dict[str, Any], path: str) -> Iterator[FieldError]:
    """Yield the errors in a printer column."""
    kind, shape, json_path = column.get("type", ""), column.get("format", ""), column.get("jsonPath", "")
    if not column.get("name"):
        yield problems.required(f"{path}.name")
    known = f"must be one of {','.join(_COLUMN_TYPES)}"
    if not kind:
        yield problems.required(f"{path}.type", known)
    elif kind not in _COLUMN_TYPES:
        yield problems.invalid(f"{path}.type", kind, known)
    if shape and shape not in _COLUMN_FORMATS:
        yield problems.invalid(f"{path}.format", shape, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not json_path:
        yield problems.required(f"{path}.JSONPath")
    elif not json_path.startswith("."):
        yield problems.invalid(f"{path}.JSONPath", json_path, "must be a simple json path starting with .")


def check_selectable_fields(fields: list[dict[str, str]], schema: Schema, path: str) -> Iterator[FieldError]:
    """Yield the errors in the selectable fields."""
    seen: set[str] = set()
    for position, field in enumerate(fields):
        text, location = field.get("jsonPath", ""), f"{path}[{position}].jsonPath"
        if not text:
            yield problems.required(location)
            continue
        try:
            resolved, found = resolve_field_path(text, schema, brackets=False)
        except FieldPathError as error:
            yield problems.invalid(location, text, f"is an invalid path: {error}")
            continue
        if resolved.split(".")[0] == "metadata":
            yield problems.invalid(location, text, "must not point to fields in metadata")
        if found is None or found.get("type") not in _SELECTABLE_TYPES:
            message = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield problems.invalid(location, text, message)
        if resolved in seen:
            yield problems.duplicate(location, text)
        seen.add(resolved)
    if len(seen) > _MAX_SELECTABLE:
        yield problems.too_many(path, len(seen), _MAX_SELECTABLE)


def crd_warnings(
    crd: dict[str, Any], *, old: dict[str, Any] | None = None, only_strings: bool = False
) -> list[str]:
    """Return the API server's warnings for a CRD; with `old`, only those that the change adds.

    With `only_strings`, as before Kubernetes 1.36: formats of other types are not looked at.
    """

    def formats(document: dict[str, Any] | None) -> list[str]:
        unknown = () if document is None else _unknown_formats(document)
        return [name for name, kind in unknown if kind == "string" or not only_strings]

    known = formats(old)
    added = [name for name in formats(crd) if name not in known]
    return [f"unrecognized format {problems.quoted(name)}" for name in dict.fromkeys(added)]


def _unknown_formats(crd: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield the formats that the API server does not check, each with the type of its schema."""
    versions: list[dict[str, Any]] = part(crd, "spec").get("versions") or []
    for version in versions:
        yield from _in_schema(part(version, "schema", "openAPIV3Schema"))


def _in_schema(schema: Schema) -> Iterator[tuple[str, str]]:
    kind = "" if schema.get("x-kubernetes-int-or-string") else schema.get("type", "")
    if schema.get("format") and not is_known_format(schema["format"], kind):
        yield schema["format"], kind
    nested = [sub for keyword in ("allOf", "anyOf", "oneOf") for sub in schema.get(keyword) or ()]
    for sub in (items(schema), *nested, schema.get("not"), *properties(schema).values(), additional(schema)):
        if sub:
            yield from _in_schema(sub)
