"""Writes the Python modules of the built-in kinds from the facts about them."""

import json
import re
from dataclasses import dataclass
from itertools import chain
from typing import Any

from builtin_facts import GROUPS, META, META_TYPES, REFERENCE, Facts

from kubewright.api.model import camel, snake

APIEXTENSIONS = "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1."
PACKAGES = {f"io.k8s.api.{module.replace('_', '.')}": module for module in GROUPS}
PACKAGES |= {APIEXTENSIONS.rstrip("."): "apiextensions_v1", META.rstrip("."): "meta_v1"}
# Types that Python has a better word for. A schema inside a CRD is data to a program, not a structure to fill in.
SPECIAL = {
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": "int | str",
    "io.k8s.apimachinery.pkg.api.resource.Quantity": "Quantity",
    "io.k8s.apimachinery.pkg.runtime.RawExtension": "dict[str, Any]",
    META + "Time": "datetime",
    META + "MicroTime": "MicroTime",
    META + "ObjectMeta": "Meta",
    META + "Condition": "Condition",
    META + "OwnerReference": "OwnerReference",
    META + "FieldsV1": "dict[str, Any]",
    APIEXTENSIONS + "JSON": "Any",
    APIEXTENSIONS + "JSONSchemaProps": "dict[str, Any]",
}
TIMES = (META + "Time", META + "MicroTime")
SOURCES = {
    "Condition": "conditions",
    "Meta": "meta",
    "MicroTime": "times",
    "Model": "model",
    "Object": "resource",
    "OwnerReference": "meta",
    "Quantity": "quantities",
    "Scale": "fields",
    "zero": "codec",
}
SHARED = ("Condition", "Meta", "OwnerReference")
NULLABLE = frozenset({"int | str", "Quantity", "datetime", "MicroTime", "Condition", "OwnerReference", "Any"})
SCALARS = {
    "string": ("str", '""'),
    "integer": ("int", "0"),
    "number": ("float", "0.0"),
    "boolean": ("bool", "False"),
}
NAMES = {"openAPIV3Schema": "openapi_v3_schema"}
# The kinds of a group that has too many classes to create them all at each start: each part becomes a module, with the
# classes that its kinds use and no earlier part has. What no part uses is in the last.
PARTS: dict[str, dict[str, tuple[str, ...]]] = {
    "core_v1": {
        "basic": (
            "Binding",
            "ComponentStatus",
            "ConfigMap",
            "Event",
            "LimitRange",
            "Namespace",
            "ResourceQuota",
            "Secret",
            "ServiceAccount",
        ),
        "services": ("Endpoints", "Service"),
        "volumes": ("PersistentVolume", "PersistentVolumeClaim"),
        "nodes": ("Node",),
        "pods": ("Pod", "PodTemplate", "ReplicationController"),
    }
}
SCALE = 'Scale(spec=".spec.replicas", status=".status.replicas", selector=".status.selector")'


@dataclass
class Written:
    """One field of a class, as text."""

    name: str
    wire: str
    annotation: str
    default: str
    needs: set[str]
    keys: tuple[str, ...] | None


def python_name(wire: str) -> str:
    """Return the Python name of a field."""
    return NAMES.get(wire) or snake(wire)


def render(facts: Facts) -> dict[str, str]:
    """Return the text of each module by file name."""
    writer = Writer(facts)
    names = [*GROUPS, "meta_v1"]
    listed = "\n".join(f"- `{name}`" for name in sorted(names))
    first = (
        "The kinds that every cluster has, one module for each group and version; import the module you need."
    )
    found = {"__init__.py": f'"""{first}\n\n{listed}\n"""\n'}
    for name in names:
        found |= writer.package(name) if name in PARTS else {f"{name}.py": writer.module(name)}
    return found


class Writer:
    """Knows every schema and writes classes from them."""

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.modules = self.modules_of_types()
        # Where the classes of the group that is being written are, if it has parts.
        self.places: dict[str, str] = {}
        self.classes = [name for name in facts.schemas if self.is_class(name)]
        self.needing = self.types_that_need_arguments()
        self.fields = {
            name: [self.field(name, wire) for wire in self.properties(name)] for name in self.classes
        }

    def modules_of_types(self) -> dict[str, str]:
        """Return the module of each type; types of groups that have none are in the module that uses them."""
        known = {name: PACKAGES.get(name.rpartition(".")[0], "") for name in self.facts.schemas}
        pending = [name for name, module in known.items() if module]
        while pending:
            name = pending.pop()
            for used in REFERENCE.findall(json.dumps(self.facts.schemas[name])):
                if not known[used] and used.startswith("io.k8s.api."):
                    known[used] = known[name]
                    pending.append(used)
        return known

    def is_class(self, name: str) -> bool:
        return name not in SPECIAL and bool(self.modules[name]) and "properties" in self.facts.schemas[name]

    def is_kind(self, name: str) -> bool:
        schema = self.facts.schemas[name]
        served = bool(schema.get("x-kubernetes-group-version-kind")) and not name.startswith(META)
        return served and "metadata" in schema["properties"]

    def properties(self, name: str) -> dict[str, Any]:
        skipped = ("apiVersion", "kind", "metadata") if self.is_kind(name) else ()
        found = self.facts.schemas[name]["properties"]
        return {wire: prop for wire, prop in found.items() if wire not in skipped}

    def types_that_need_arguments(self) -> set[str]:
        """Return the classes that cannot be made without arguments."""
        needing: set[str] = set()
        while True:
            found = {
                name
                for name in self.classes
                if any(self.is_required(name, wire, needing) for wire in self.properties(name))
            }
            if found == needing:
                return needing
            needing = found

    def is_required(self, name: str, wire: str, needing: set[str]) -> bool:
        """Return True if a maker must give the field; a spec that cannot be empty is one, though OpenAPI is silent."""
        schema = self.facts.schemas[name]
        prop = schema["properties"][wire]
        target = reference(prop)
        if target in TIMES:
            return False
        implied = wire == "spec" and prop.get("default") == {} and target in needing
        return implied or wire in schema.get("required", ())

    def field(self, owner: str, wire: str) -> Written:
        prop = self.facts.schemas[owner]["properties"][wire]
        needs: set[str] = set()
        text = self.type_text(prop, needs)
        default = "" if self.is_required(owner, wire, self.needing) else self.default(owner, wire, text)
        if default == "None" and text != "Any":
            text = f"{text} | None"
        keys = None
        if prop.get("x-kubernetes-list-type") in ("map", "set"):
            keys = tuple(prop.get("x-kubernetes-list-map-keys", ()))
        return Written(python_name(wire), wire, text, default, needs, keys)

    def default(self, owner: str, wire: str, text: str) -> str:
        prop = self.facts.schemas[owner]["properties"][wire]
        target = reference(prop)
        if wire in self.facts.pointers.get(owner, ()) or text in NULLABLE:
            return "None"
        if text == "bytes":
            return 'b""'
        if text.startswith("list["):
            return "[]"
        if text.startswith("dict[") and target is None:
            return "{}"
        if prop.get("type") in SCALARS:
            return SCALARS[prop["type"]][1]
        if prop.get("default") != {} or text.startswith("dict["):
            return "None"
        return f"_field(default_factory={f'lambda: zero({text})' if target in self.needing else text})"

    def type_text(self, prop: dict[str, Any], needs: set[str]) -> str:
        target = reference(prop)
        if target in SPECIAL:
            return SPECIAL[target]
        if target is not None and "properties" not in self.facts.schemas[target]:
            return "dict[str, Any]"
        if target is not None:
            needs.add(target)
            return target.rpartition(".")[2]
        if prop.get("type") == "array":
            return f"list[{self.element_text(prop['items'], needs)}]"
        if prop.get("type") == "object":
            inner = prop.get("additionalProperties")
            return f"dict[str, {self.element_text(inner, needs) if inner else 'Any'}]"
        if prop.get("format") == "byte":
            return "bytes"
        return SCALARS[prop["type"]][0] if "type" in prop else "Any"

    def element_text(self, prop: dict[str, Any], needs: set[str]) -> str:
        """Return the type of an element; Go writes a time that is not set as null there."""
        text = self.type_text(prop, needs)
        return f"{text} | None" if reference(prop) in TIMES else text

    def package(self, module: str) -> dict[str, str]:
        """Return the modules of a group's parts, and a package that imports their names on demand."""
        parts = self.parts_of(module)
        self.places = {name: f"{module}.{part}" for part, names in parts.items() for name in names}
        found = {
            f"{module}/{part}.py": self.classes_text(module, f"{module}.{part}", names)
            for part, names in parts.items()
        }
        self.places = {}
        short = {
            part: sorted(name.rpartition(".")[2] for name in names) for part, names in sorted(parts.items())
        }
        lines = [
            f'"""{title(module)}; written by tools/generate_builtin.py.',
            "",
            "Each module is imported when one of its classes is first used.",
            '"""',
            "",
            "from typing import TYPE_CHECKING",
            "",
            "from kubewright.api.on_demand import names_on_demand",
            "",
            "if TYPE_CHECKING:",
            *(
                f"    from kubewright.api.builtin.{module}.{part} import {', '.join(names)}"
                for part, names in short.items()
            ),
            "else:",
            f"    __getattr__, __dir__ = names_on_demand(__name__, {short!r})",
        ]
        return found | {
            f"{module}/__init__.py": "\n".join(lines) + listing([*chain.from_iterable(short.values())])
        }

    def parts_of(self, module: str) -> dict[str, list[str]]:
        """Divide the classes of a group, each to the first part whose kinds use it."""
        left = [name for name in self.fields if self.modules[name] == module]
        parts: dict[str, list[str]] = {}
        for part, kinds in PARTS[module].items():
            used = self.used_by([name for name in left if name.rpartition(".")[2] in kinds])
            parts[part] = [name for name in left if name in used]
            left = [name for name in left if name not in used]
        parts[part] += left
        return parts

    def used_by(self, names: list[str]) -> set[str]:
        """Return classes and all that their fields name, directly or not."""
        found: set[str] = set()
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            if name in self.fields and name not in found:
                found.add(name)
                waiting += [needed for item in self.fields[name] for needed in item.needs]
        return found

    def module(self, module: str) -> str:
        names = [name for name in self.fields if self.modules[name] == module]
        if module == "meta_v1":
            needed = set[str]().union(*(item.needs for fields in self.fields.values() for item in fields))
            names = [name for name in names if name in needed or name.removeprefix(META) in META_TYPES]
        return self.classes_text(module, module, names)

    def classes_text(self, module: str, place: str, names: list[str]) -> str:
        """Return the text of a module with these classes of a group."""
        ordered = self.in_order(names)
        body = "\n\n".join(self.class_text(name, module) for name in ordered)
        exported = [name.rpartition(".")[2] for name in ordered] + list(SHARED if module == "meta_v1" else ())
        head = f'"""{title(module)}; written by tools/generate_builtin.py."""\n\n{self.imports(ordered, body, place)}'
        return f"{head}\n\n{body}\n{listing(exported)}"

    def in_order(self, names: list[str]) -> list[str]:
        """Put each class after those that its fields name."""
        ordered: list[str] = []

        def put(name: str) -> None:
            if name in names and name not in ordered:
                for needed in sorted(set[str]().union(*(item.needs for item in self.fields[name]))):
                    put(needed)
                ordered.append(name)

        for name in sorted(names):
            put(name)
        return ordered

    def imports(self, names: list[str], body: str, module: str) -> str:
        lines: list[str] = []
        if re.search(r"\bdatetime\b", body):
            lines.append("from datetime import datetime")
        if re.search(r"\bAny\b", body):
            lines.append("from typing import Any")
        lines += ["", "from msgspec import field as _field", ""] if "_field(" in body else [""]
        own = {name.rpartition(".")[2] for name in names}
        imported: dict[str, set[str]] = {}
        for word, source in SOURCES.items():
            used = word not in own and re.search(rf"\b{word}\b", body)
            if used or (module == "meta_v1" and word in SHARED):
                imported.setdefault(f"kubewright.api.{source}", set()).add(word)
        for needed in set[str]().union(*(item.needs for name in names for item in self.fields[name])):
            source = self.places.get(needed) or self.modules[needed]
            if source != module:
                short = needed.rpartition(".")[2]
                imported.setdefault(f"kubewright.api.builtin.{source}", set()).add(short)
        lines += [
            f"from {place} import {', '.join(sorted(words))}" for place, words in sorted(imported.items())
        ]
        return "\n".join(lines)

    def class_text(self, name: str, module: str) -> str:
        short, fields = name.rpartition(".")[2], self.fields[name]
        keywords = self.kind_keywords(short, module) if self.is_kind(name) else []
        keywords.append("builtin=True")
        renamed = {item.name: item.wire for item in fields if camel(item.name) != item.wire}
        if renamed:
            keywords.append(f"wire_names={json.dumps(renamed)}")
        lists = {item.name: item.keys for item in fields if item.keys is not None}
        if lists:
            keywords.append(f"lists={lists!r}")
        parent = "Object" if self.is_kind(name) else "Model"
        lines = [
            f"    {item.name}: {item.annotation}{' = ' if item.default else ''}{item.default}"
            for item in fields
        ]
        return f"class {short}({parent}, {', '.join(keywords)}):\n" + ("\n".join(lines) or "    pass") + "\n"

    def kind_keywords(self, kind: str, module: str) -> list[str]:
        group, version = GROUPS[module]
        found = self.facts.resources[module]
        arguments = [f"group={group!r}", f"version={version!r}"]
        main = next((item for item in found if item["kind"] == kind and "/" not in item["name"]), None)
        if main is None:
            return [*arguments, "status=False"]
        arguments.append(f"plural={main['name']!r}")
        if not main["namespaced"]:
            arguments.append('scope="Cluster"')
        for key, word in (("shortNames", "short_names"), ("categories", "categories")):
            if main.get(key):
                arguments.append(f"{word}={main[key]!r}")
        names = {item["name"] for item in found}
        arguments.append(f"status={main['name'] + '/status' in names}")
        if f"{main['name']}/scale" in names:
            arguments.append(f"scale={SCALE}")
        return arguments


def listing(names: list[str]) -> str:
    """Return the text of `__all__`."""
    listed = "".join(f'    "{name}",\n' for name in sorted(names))
    return f"\n__all__ = [\n{listed}]\n"


def reference(prop: dict[str, Any]) -> str | None:
    found = prop.get("$ref") or next((part["$ref"] for part in prop.get("allOf", ()) if "$ref" in part), None)
    return found.removeprefix("#/components/schemas/") if found else None


def title(module: str) -> str:
    if module == "meta_v1":
        return "Types of meta.k8s.io/v1 that kinds share"
    group, version = GROUPS[module]
    return f"The kinds of {group}/{version}" if group else f"The kinds of the core group, {version}"
