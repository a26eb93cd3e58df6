"""Generate the embedded API server's data bundle from Kubernetes' published Go types, OpenAPI and discovery.

    tools/generate_devserver_data.py            write src/kubewright/devserver/data
    tools/generate_devserver_data.py --check    fail when the committed bundle is not what the sources give

Names, types, numbers and defaults are taken over; description texts are not. The release of the project is written
as it is, the earlier releases that bundle.json names as differences to it. Without the sources (a Go module cache
with these releases) the check falls back to the hashes recorded in the bundle.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeGuard

from go_sources import BUNDLE, GoField, Sources, document_name
from release_data import (
    GATED_SUBRESOURCES,
    Marks,
    bootstrap_roles,
    difference,
    dropped_fields,
    enabled_minors,
    feature_defaults,
    gated_fields,
    identity,
    legacy_betas,
    removed_flow_schemas,
)

DATA = BUNDLE.parent
BOOTSTRAP = DATA.parent / "auth/bootstrap.json"

# Go import path -> (short package name in the table, prefix of its OpenAPI definitions)
API = "k8s.io/api/"
SPECIAL = {
    "k8s.io/apimachinery/pkg/apis/meta/v1": ("meta/v1", "io.k8s.apimachinery.pkg.apis.meta.v1"),
    "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1": (
        "apiextensions/v1",
        "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1",
    ),
    "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1": (
        "apiregistration/v1",
        "io.k8s.kube-aggregator.pkg.apis.apiregistration.v1",
    ),
}
SHORT_ONLY = {
    "k8s.io/apimachinery/pkg/api/resource": "resource",
    "k8s.io/apimachinery/pkg/util/intstr": "intstr",
    "k8s.io/apimachinery/pkg/runtime": "runtime",
    "k8s.io/apimachinery/pkg/types": "types",
}
# Types with a JSON form of their own; the decoder knows them by name.
OPAQUE = {
    "meta/v1.Time",
    "meta/v1.MicroTime",
    "meta/v1.Duration",
    "meta/v1.FieldsV1",
    "resource.Quantity",
    "intstr.IntOrString",
    "runtime.RawExtension",
    "apiextensions/v1.JSON",
    "apiextensions/v1.JSONSchemaPropsOrBool",
    "apiextensions/v1.JSONSchemaPropsOrArray",
    "apiextensions/v1.JSONSchemaPropsOrStringArray",
}
PRIMITIVES = {"string", "bool", "int", "int32", "int64", "float64", "uint64", "byte"}
OMITEMPTY, OMITZERO, INLINE = 1, 2, 4

LIST_FORMS = re.compile(r"\[\]|\*|map\[([\w./]+)\]")

JsonObject = Any


@dataclass
class Table:
    """What the Go sources declare: structs by name, named non-struct types, kinds by group version."""

    structs: dict[str, list[list[JsonObject]]] = field(default_factory=dict[str, list[list[JsonObject]]])
    aliases: dict[str, str] = field(default_factory=dict[str, str])
    kinds: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    atomic: set[str] = field(default_factory=set[str])


def short_package(path: str) -> str:
    if path in SPECIAL:
        return SPECIAL[path][0]
    return SHORT_ONLY.get(path, path.removeprefix(API))


def parse_package(table: Table, sources: Sources, path: str) -> list[str]:
    """Read one Go package into the table and return the struct names found."""
    package, found = short_package(path), list[str]()
    for file in sources.files(path):

        def qualify(go_type: str, imports: dict[str, str] = file.imports) -> str:
            return qualified(go_type, package, imports)

        for name, fields in file.structs.items():
            full = f"{package}.{name}"
            if full in OPAQUE:
                continue
            table.structs[full] = [row(item, qualify) for item in fields]
            found.append(name)
        for name, target in file.aliases.items():
            if f"{package}.{name}" not in OPAQUE and not target.endswith("interface"):
                table.aliases[f"{package}.{name}"] = qualify(target)
    return found


def qualified(go_type: str, package: str, imports: dict[str, str]) -> str:
    """Spell a Go type with short package names: `[]v1.Container` -> `[]core/v1.Container`."""
    prefix, rest = "", go_type
    while match := LIST_FORMS.match(rest):
        key = match.group(1)
        prefix += f"map[{qualified(key, package, imports)}]" if key else match.group(0)
        rest = rest[match.end() :]
    if rest in PRIMITIVES:
        return prefix + rest
    if rest == "interface{}":
        return prefix + "any"
    if "." in rest:
        alias, name = rest.split(".")
        return f"{prefix}{short_package(imports.get(alias, alias))}.{name}"
    return f"{prefix}{package}.{rest}"


def row(item: GoField, qualify: Callable[[str], str]) -> list[JsonObject]:
    """Describe a field: its name, protobuf number, type, flags, and how patches merge it."""
    proto = item.tagged("protobuf")
    flags = (
        (OMITEMPTY if "omitempty" in item.options else 0)
        + (OMITZERO if "omitzero" in item.options else 0)
        + (INLINE if item.inline else 0)
    )
    extras: dict[str, JsonObject] = {}
    if strategy := item.tagged("patchStrategy"):
        extras["strategy"] = strategy
    if key := item.tagged("patchMergeKey"):
        extras["key"] = key
    return [item.name, int(proto.split(",")[1]) if proto else 0, qualify(item.go_type), flags, extras]


def add_schema_facts(table: Table, definitions: dict[str, JsonObject]) -> None:
    """Copy what only the OpenAPI definitions say (list and map types, defaults) into the fields."""
    for full, rows in table.structs.items():
        definition = definitions.get(definition_name(full))
        if definition is None:
            continue
        if definition.get("x-kubernetes-map-type") == "atomic":
            table.atomic.add(full)
        add_field_facts(table, rows, definition.get("properties", {}), definitions)


def add_field_facts(
    table: Table,
    rows: list[list[JsonObject]],
    properties: dict[str, JsonObject],
    definitions: dict[str, JsonObject],
) -> None:
    """Copy the facts of a struct's properties into its fields, and into those of embedded structs without a definition."""
    for row in rows:
        embedded = row[2].lstrip("*")
        if row[3] & INLINE and definition_name(embedded) not in definitions:
            add_field_facts(table, table.structs[embedded], properties, definitions)
        schema = properties.get(row[0], {})
        for key, name_in_table in (
            ("x-kubernetes-list-type", "list"),
            ("x-kubernetes-list-map-keys", "keys"),
            ("x-kubernetes-map-type", "map"),
            ("default", "default"),
        ):
            if key in schema:
                row[4][name_in_table] = schema[key]


def definition_name(struct: str) -> str:
    """Return the name of a struct's OpenAPI definition."""
    package, name = struct.rsplit(".", 1)
    prefix = dict(SPECIAL.values()).get(package, "io.k8s.api." + package.replace("/", "."))
    return f"{prefix}.{name}"


def referenced(table: Table) -> set[str]:
    """Name every struct and alias reachable from a kind."""
    pending = [name for kinds in table.kinds.values() for name in kinds.values()]
    seen = set[str]()
    while pending:
        name = pending.pop()
        if name in seen:
            continue
        seen.add(name)
        types = [row[2] for row in table.structs.get(name, ())] + [table.aliases.get(name, "")]
        for go_type in types:
            pending += re.findall(r"[\w/]+\.\w+", go_type)
    return seen


def parse_references(table: Table, sources: Sources) -> None:
    """Read the packages that the kinds take types from, though their own versions are not served."""
    parsed = {name.rsplit(".", 1)[0] for name in (*table.structs, *table.aliases, *OPAQUE)}
    while new := {name.rsplit(".", 1)[0] for name in referenced(table)} - parsed:
        for package in sorted(new):
            parse_package(table, sources, f"{API}{package}")
        parsed |= new


def served_versions(discovery: JsonObject, betas: set[tuple[str, str]]) -> list[tuple[str, JsonObject]]:
    """List group versions a default server serves: the stable ones and old betas, in the server's order."""
    return [
        (name, version)
        for group in discovery["items"]
        for name in [group["metadata"].get("name", "")]
        for version in group["versions"]
        if re.fullmatch(r"v\d+", version["version"]) or (name.partition(".")[0], version["version"]) in betas
    ]


def package_of(group: str, version: str) -> str:
    name = group.partition(".")[0]
    for path, (short, _) in SPECIAL.items():
        if short == f"{name}/{version}":
            return path
    return f"{API}{name or 'core'}/{version}"


def is_object(value: JsonObject) -> TypeGuard[dict[str, JsonObject]]:
    return isinstance(value, dict)


def is_list(value: JsonObject) -> TypeGuard[list[JsonObject]]:
    return isinstance(value, list)


def strip_descriptions(value: JsonObject) -> JsonObject:
    if is_object(value):
        kept = {k: v for k, v in value.items() if k != "description" or not isinstance(v, str)}
        return {k: strip_descriptions(v) for k, v in kept.items()}
    if is_list(value):
        return [strip_descriptions(item) for item in value]
    return value


def is_kind(rows: list[list[JsonObject]]) -> bool:
    return any(row[2] == "meta/v1.TypeMeta" and row[3] & INLINE for row in rows)


@dataclass(frozen=True)
class Release:
    """The documents of one release."""

    types: JsonObject
    discovery: JsonObject
    openapi: dict[str, JsonObject]
    """By file name."""
    rendered_types: bytes
    marks: Marks
    """Fields that the release marks with feature gates."""


def read_release(sources: Sources, features: dict[str, bool]) -> Release:
    """Make the documents of a release."""
    core = sources.discovery("", "v1")
    versions = served_versions(sources.aggregated_discovery(), legacy_betas(sources))
    table, openapi, packages = Table(), dict[str, JsonObject](), list[tuple[str, str]]()
    definitions: dict[str, JsonObject] = {}
    parse_package(table, sources, "k8s.io/apimachinery/pkg/apis/meta/v1")
    parse_package(table, sources, "k8s.io/apimachinery/pkg/types")
    for group, version in [("", "v1"), *((group, version["version"]) for group, version in versions)]:
        path = package_of(group, version)
        package = short_package(path)
        packages.append((path, package))
        names = [f"{package}.{name}" for name in sorted(parse_package(table, sources, path))]
        kinds = [name for name in names if is_kind(table.structs[name])]
        table.kinds[f"{group}/{version}"] = {name.rsplit(".", 1)[1]: name for name in kinds}
        document = read_openapi(sources, group, version)
        definitions.update(document["components"]["schemas"])
        openapi[document_name(group, version)] = document
    for version in ("v1", "v1beta1"):
        # Webhooks are sent these; they are not served.
        path = f"{API}admission/{version}"
        parse_package(table, sources, path)
        table.kinds[f"admission.k8s.io/{version}"] = {
            "AdmissionReview": f"{short_package(path)}.AdmissionReview"
        }
    meta_kinds = [
        n for n, rows in sorted(table.structs.items()) if n.startswith("meta/v1.") and is_kind(rows)
    ]
    table.kinds["meta.k8s.io/v1"] = {name.rsplit(".", 1)[1]: name for name in meta_kinds}
    parse_references(table, sources)
    add_schema_facts(table, definitions)
    groups = discovery_groups(core, versions)
    remove_gated_subresources(groups, openapi, features)
    rendered = render_table(table)
    return Release(json.loads(rendered), groups, openapi, rendered, gated_fields(sources, packages))


def remove_gated_subresources(
    groups: list[JsonObject], openapi: dict[str, JsonObject], features: dict[str, bool]
) -> None:
    """Remove subresources whose feature gate is off."""
    off = {key for key, gate in GATED_SUBRESOURCES.items() if not features[gate]}
    for row in groups:
        for resource in row["resources"]:
            group, name = row["group"], resource["name"]
            parts = resource["subresources"]
            resource["subresources"] = [part for part in parts if (group, name, part["name"]) not in off]
    for group, name, part in off:
        for document in openapi.values():
            document["paths"] = {
                path: item
                for path, item in document["paths"].items()
                if not (
                    path.endswith(f"/{name}/{{name}}/{part}")
                    and path.startswith(f"/apis/{group}/" if group else "/api/")
                )
            }


def build(sources: Sources) -> dict[str, bytes]:
    """Make every file of the bundle, by file name."""
    every = [sources, *earlier(sources)]
    defaults = {item.minor: feature_defaults(item) for item in every}
    present, files = read_release(sources, defaults[sources.minor]), dict[str, bytes]()
    for name, document in present.openapi.items():
        files[f"openapi/{name}.json.xz"] = compressed(document)
    files["types.json"] = present.rendered_types
    files["discovery.json"] = render_lines("groups", present.discovery)
    files["features.json"] = render_features(enabled_minors(defaults))
    recorded: list[JsonObject] = json.loads(BOOTSTRAP.read_text())
    releases = {item.minor: read_release(item, defaults[item.minor]) for item in every[1:]}
    marks = [release.marks for release in (present, *releases.values())]
    dropped = dropped_fields(present.types, defaults[sources.minor], present.marks, [])
    files["dropped.json"] = (json.dumps(dropped, indent=1) + "\n").encode()
    for item in every[1:]:
        release, features = releases[item.minor], defaults[item.minor]
        document = release_difference(item, release, present, recorded)
        document["dropped"] = dropped_fields(release.types, features, release.marks, marks)
        files[f"releases/1.{item.minor}.json.xz"] = compressed(document)
    files["bundle.json"] = render_bundle(files)
    return files


def earlier(sources: Sources) -> list[Sources]:
    """Return the sources of the earlier releases that bundle.json names."""
    releases: dict[str, str] = json.loads(BUNDLE.read_text())["releases"]
    return [sources.of(version) for version in releases.values()]


def release_difference(
    sources: Sources, release: Release, present: Release, recorded: list[JsonObject]
) -> JsonObject:
    """Return how an earlier release differs from the present one."""
    roles = {identity(item): item for item in bootstrap_roles(sources)}
    # What is recorded and is not a role is the same in all of these releases.
    bootstrap = [item for item in recorded if not item["apiVersion"].startswith("rbac.authorization.k8s.io/")]
    return {
        "types": difference(present.types, release.types),
        "discovery": difference(present.discovery, release.discovery),
        "openapi": {
            name: difference(present.openapi.get(name, {}), document)
            for name, document in release.openapi.items()
        },
        "hashes": {
            name: hashlib.sha256(document_text(document)).hexdigest()
            for name, document in release.openapi.items()
        },
        "bootstrap": difference(recorded, [*roles.values(), *bootstrap, *removed_flow_schemas(sources)]),
    }


def render_features(minors: dict[str, list[int]]) -> bytes:
    lines = ",\n".join(f"{compact(name)}:{compact(value)}" for name, value in minors.items())
    return f"{{\n{lines}\n}}\n".encode()


def read_openapi(sources: Sources, group: str, version: str) -> JsonObject:
    document = strip_descriptions(sources.openapi(group, version))
    for operations in document["paths"].values():
        for operation in operations.values():
            if is_object(operation):
                for response in operation.get("responses", {}).values():
                    response["description"] = "OK"
    return document


def document_text(document: JsonObject) -> bytes:
    return json.dumps(document, separators=(",", ":"), sort_keys=True).encode()


def compressed(document: JsonObject) -> bytes:
    return lzma.compress(document_text(document), preset=9 | lzma.PRESET_EXTREME)


def compact(value: JsonObject) -> str:
    return json.dumps(value, separators=(",", ":"))


def render_table(table: Table) -> bytes:
    used = referenced(table)
    structs = {
        name: [row if row[4] else row[:4] for row in rows]
        for name, rows in sorted(table.structs.items())
        if name in used
    }
    aliases = {k: target for k, target in sorted(table.aliases.items()) if k in used and k not in structs}
    missing = {name for name in used if name not in structs and name not in aliases and name not in OPAQUE}
    if missing:
        raise SystemExit(f"types without a declaration: {', '.join(sorted(missing))}")
    lines = ",\n".join(f'"{name}":{compact(rows)}' for name, rows in structs.items())
    parts = [
        f'"kinds":{compact(table.kinds)}',
        f'"aliases":{compact(aliases)}',
        f'"atomic":{compact(sorted(table.atomic & used))}',
        f'"structs":{{\n{lines}\n}}',
    ]
    return ("{" + ",\n".join(parts) + "}\n").encode()


def discovery_groups(core: JsonObject, versions: list[tuple[str, JsonObject]]) -> list[JsonObject]:
    """Describe resources as rows, one group version each."""
    rows: list[JsonObject] = [{"group": "", "version": "v1", "resources": core_resources(core)}]
    for group, version in versions:
        resources = [resource_row(resource, group, version["version"]) for resource in version["resources"]]
        rows.append({"group": group, "version": version["version"], "resources": resources})
    return rows


def resource_row(resource: JsonObject, group: str, version: str) -> JsonObject:
    row: JsonObject = {
        "name": resource["resource"],
        "singular": resource["singularResource"],
        "namespaced": resource["scope"] == "Namespaced",
        "kind": resource["responseKind"]["kind"],
        "verbs": resource["verbs"],
        "shortNames": resource.get("shortNames", []),
        "categories": resource.get("categories", []),
        "subresources": [],
    }
    for sub in resource.get("subresources", ()):
        of = sub["responseKind"]
        row["subresources"].append(
            {
                "name": sub["subresource"],
                "group": of["group"] or group,
                "version": of["version"] or version,
                "kind": of["kind"],
                "verbs": sub["verbs"],
            }
        )
    return row


def core_resources(core: JsonObject) -> list[JsonObject]:
    rows: dict[str, JsonObject] = {}
    for resource in core["resources"]:
        name, _, sub = resource["name"].partition("/")
        if not sub:
            rows[name] = {
                "name": name,
                "singular": resource["singularName"],
                "namespaced": resource["namespaced"],
                "kind": resource["kind"],
                "verbs": resource["verbs"],
                "shortNames": resource.get("shortNames", []),
                "categories": resource.get("categories", []),
                "subresources": [],
            }
        else:
            rows[name]["subresources"].append(
                {
                    "name": sub,
                    "group": resource.get("group", ""),
                    "version": resource.get("version", "v1"),
                    "kind": resource["kind"],
                    "verbs": resource["verbs"],
                }
            )
    return list(rows.values())


def render_lines(name: str, rows: list[JsonObject]) -> bytes:
    lines = ",\n".join(compact(row) for row in rows)
    return f'{{"{name}":[\n{lines}\n]}}\n'.encode()


def content(name: str, data: bytes) -> bytes:
    """Look through the compression: its bytes may differ between versions of the compressor."""
    return lzma.decompress(data) if name.endswith(".xz") else data


def render_bundle(files: dict[str, bytes]) -> bytes:
    hashes = {name: hashlib.sha256(content(name, data)).hexdigest() for name, data in sorted(files.items())}
    present = json.loads(BUNDLE.read_text())
    return (json.dumps({**present, "sha256": hashes}, indent=1) + "\n").encode()


def committed() -> dict[str, bytes]:
    names = [file for file in DATA.rglob("*") if file.suffix in {".json", ".xz"}]
    return {str(file.relative_to(DATA)): file.read_bytes() for file in names}


def differs(name: str, left: dict[str, bytes], right: dict[str, bytes]) -> bool:
    if name not in left or name not in right:
        return True
    return content(name, left[name]) != content(name, right[name])


def missing_sources(sources: Sources) -> list[str]:
    """Return the releases whose Go modules are not in the module cache."""
    return [item.version for item in (sources, *earlier(sources)) if not item.present()]


def check(sources: Sources) -> int:
    present = committed()
    if not (missing := missing_sources(sources)):
        expected = build(sources)
        changed = [
            name for name in sorted(expected.keys() | present.keys()) if differs(name, expected, present)
        ]
    else:
        print(
            f"Go modules of Kubernetes {', '.join(missing)} are not here: checking the recorded hashes only"
        )
        recorded = json.loads(present["bundle.json"])["sha256"]
        rest = {name: data for name, data in present.items() if name != "bundle.json"}
        found = json.loads(render_bundle(rest))["sha256"]
        names = sorted(recorded.keys() | found.keys())
        changed = [name for name in names if recorded.get(name) != found.get(name)]
    for name in changed:
        print(f"out of date: {name}")
    return 1 if changed else 0


def write(sources: Sources) -> int:
    if missing := missing_sources(sources):
        print(
            f"needs the Go modules of Kubernetes {', '.join(missing)}: run `scripts/kubernetes --only version`"
        )
        return 1
    files = build(sources)
    present = committed()
    for name in present.keys() - files.keys():
        (DATA / name).unlink()
    for name, data in files.items():
        target = DATA / name
        target.parent.mkdir(parents=True, exist_ok=True)
        if differs(name, files, present):
            target.write_bytes(data)
    print(f"{len(files)} files, {sum(map(len, files.values())) // 1024} KiB")
    return 0


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", 1)[0])
    parser.add_argument(
        "--check", action="store_true", help="compare with the committed bundle, write nothing"
    )
    options = parser.parse_args()
    sources = Sources()
    return check(sources) if options.check else write(sources)


if __name__ == "__main__":
    sys.exit(main())
