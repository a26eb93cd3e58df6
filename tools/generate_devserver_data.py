"""Generate the embedded API server's data bundle from Kubernetes' published Go types, OpenAPI and discovery.

    tools/generate_devserver_data.py            write src/kubewright/devserver/data
    tools/generate_devserver_data.py --check    fail when the committed bundle is not what the sources give

Names, types, numbers and defaults are taken over; description texts are not. Without the sources (a Go
module cache with the release that bundle.json names) the check falls back to the hashes recorded in the bundle.
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

DATA = BUNDLE.parent

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
    prefixes = dict(SPECIAL.values())
    for full, rows in table.structs.items():
        package, name = full.rsplit(".", 1)
        prefix = prefixes.get(package, "io.k8s.api." + package.replace("/", "."))
        definition = definitions.get(f"{prefix}.{name}")
        if definition is None:
            continue
        if definition.get("x-kubernetes-map-type") == "atomic":
            table.atomic.add(full)
        properties = definition.get("properties", {})
        for row in rows:
            schema = properties.get(row[0], {})
            for key, name_in_table in (
                ("x-kubernetes-list-type", "list"),
                ("x-kubernetes-list-map-keys", "keys"),
                ("x-kubernetes-map-type", "map"),
                ("default", "default"),
            ):
                if key in schema:
                    row[4][name_in_table] = schema[key]


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


def served_versions(discovery: JsonObject) -> list[tuple[str, JsonObject]]:
    """List group versions a default server serves: the stable ones, in the server's order."""
    return [
        (group["metadata"].get("name", ""), version)
        for group in discovery["items"]
        for version in group["versions"]
        if re.fullmatch(r"v\d+", version["version"])
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


def build(sources: Sources) -> dict[str, bytes]:
    """Make every file of the bundle, by file name."""
    core = sources.discovery("", "v1")
    versions = served_versions(sources.aggregated_discovery())
    table, definitions, files = Table(), dict[str, JsonObject](), dict[str, bytes]()
    parse_package(table, sources, "k8s.io/apimachinery/pkg/apis/meta/v1")
    parse_package(table, sources, "k8s.io/apimachinery/pkg/types")
    for group, version in [("", "v1"), *((group, version["version"]) for group, version in versions)]:
        path = package_of(group, version)
        package = short_package(path)
        names = [f"{package}.{name}" for name in sorted(parse_package(table, sources, path))]
        kinds = [name for name in names if is_kind(table.structs[name])]
        table.kinds[f"{group}/{version}"] = {name.rsplit(".", 1)[1]: name for name in kinds}
        document = read_openapi(sources, group, version)
        definitions.update(document["components"]["schemas"])
        files[f"openapi/{document_name(group, version)}.json.xz"] = compressed(document)
    meta_kinds = [
        n for n, rows in sorted(table.structs.items()) if n.startswith("meta/v1.") and is_kind(rows)
    ]
    table.kinds["meta.k8s.io/v1"] = {name.rsplit(".", 1)[1]: name for name in meta_kinds}
    parse_references(table, sources)
    add_schema_facts(table, definitions)
    files["types.json"] = render_table(table)
    files["discovery.json"] = render_lines("groups", discovery_groups(core, versions))
    files["bundle.json"] = render_bundle(files)
    return files


def read_openapi(sources: Sources, group: str, version: str) -> JsonObject:
    document = strip_descriptions(sources.openapi(group, version))
    for operations in document["paths"].values():
        for operation in operations.values():
            if is_object(operation):
                for response in operation.get("responses", {}).values():
                    response["description"] = "OK"
    return document


def compressed(document: JsonObject) -> bytes:
    text = json.dumps(document, separators=(",", ":"), sort_keys=True)
    return lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)


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


def check(sources: Sources) -> int:
    present = committed()
    if sources.present():
        expected = build(sources)
        changed = [
            name for name in sorted(expected.keys() | present.keys()) if differs(name, expected, present)
        ]
    else:
        print(f"Go modules of Kubernetes {sources.version} are not here: checking the recorded hashes only")
        recorded = json.loads(present["bundle.json"])["sha256"]
        rest = {name: data for name, data in present.items() if name != "bundle.json"}
        found = json.loads(render_bundle(rest))["sha256"]
        names = sorted(recorded.keys() | found.keys())
        changed = [name for name in names if recorded.get(name) != found.get(name)]
    for name in changed:
        print(f"out of date: {name}")
    return 1 if changed else 0


def write(sources: Sources) -> int:
    if not sources.present():
        print(
            f"needs the Go modules of Kubernetes {sources.version}: run `scripts/kubernetes --only version`"
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
