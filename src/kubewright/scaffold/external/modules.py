"""The text of the modules: one for each group and version."""

import re
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence

from kubewright.api import JsonObject
from kubewright.scaffold.external.annotations import (
    WIDTH,
    Annotation,
    Annotator,
    field_names,
    literal,
    rule,
)
from kubewright.scaffold.external.class_names import (
    ClassKey,
    Occurrence,
    SchemaFacts,
    class_names,
    element_of,
    is_class,
    occurrences,
    properties,
    required,
)
from kubewright.scaffold.external.definitions import APPROVAL, ExternalVersion

MARKER = "# Written by `kubewright create types`: change the CRDs, then run the command again.\n"
_HEAD = f"{MARKER}# ruff: noqa: D205, D212, D400, D415, E501, ERA001, RUF001, RUF002, RUF003, RUF100\n# fmt: off\n"
_PACKAGE = f'{MARKER}"""Typed classes of other projects\' CRDs, one module for each group and version."""\n'
_TYPE_META = ("apiVersion", "kind", "metadata")
_CLASS = re.compile(r"^class (\w+)", re.MULTILINE)


def external_modules(versions: Sequence[ExternalVersion]) -> dict[str, str]:
    """Return the text of each module by file name, and that of the package."""
    groups: dict[tuple[str, str], list[ExternalVersion]] = {}
    for each in versions:
        groups.setdefault((each.group, each.version.name), []).append(each)
    names = _module_names(list(groups))
    found = {f"{names[key]}.py": _Module(members).text() for key, members in groups.items()}
    return {"__init__.py": _PACKAGE, **dict(sorted(found.items()))}


def kinds_in(source: str) -> set[str]:
    """Return the names of the kinds in a generated module."""
    return {name for name, block in _classes(source).items() if "external=True" in block.partition('"""')[0]}


def class_differences(before: str, after: str) -> str:
    """Return the names of the classes of a generated module that were added, removed or changed, as text."""
    old, new = _classes(before), _classes(after)
    parts = (
        ("added", sorted(new.keys() - old.keys())),
        ("removed", sorted(old.keys() - new.keys())),
        ("changed", sorted(name for name in old.keys() & new.keys() if old[name] != new[name])),
    )
    return "; ".join(f"{what}: {', '.join(names)}" for what, names in parts if names)


def _classes(source: str) -> dict[str, str]:
    source = source.partition("\n__all__ = ")[0]
    found = list(_CLASS.finditer(source))
    ends = [match.start() for match in found[1:]] + [len(source)]
    return {match[1]: source[match.start() : end].strip() for match, end in zip(found, ends, strict=False)}


def _module_names(groups: Sequence[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Return a module name for each group: its first word, as for built-in kinds; all of it if two would be equal."""
    short = {key: _identifier(f"{key[0].partition('.')[0]}_{key[1]}") for key in groups}
    alike = {name for name in short.values() if list(short.values()).count(name) > 1}
    return {key: _identifier(f"{key[0]}_{key[1]}") if name in alike else name for key, name in short.items()}


def _identifier(text: str) -> str:
    name = re.sub(r"\W", "_", text, flags=re.ASCII)
    return name if name.isidentifier() else f"_{name}"


class _Module:
    """Writes the classes of one group and version."""

    def __init__(self, versions: Sequence[ExternalVersion]) -> None:
        self._versions = versions
        self._facts = SchemaFacts()
        self._found = [
            place for each in versions for place in occurrences(_class_name(each), each.schema, self._facts)
        ]
        self._names = class_names(self._found, map(_class_name, versions))
        self._annotator = Annotator(self._class_of)

    def text(self) -> str:
        """Return the whole module."""
        places: dict[ClassKey, Occurrence] = {}
        for place in self._found:
            places.setdefault(place.key, place)
            if "".join(place.words) == self._names[place.key]:
                places[place.key] = place
        written: dict[ClassKey, list[str]] = {}
        for key in places:
            self._write(key, places, written)
        blocks = [*written.values(), *(list(self._kind(each)) for each in self._versions)]
        body = "\n\n\n".join("\n".join(block) for block in blocks)
        exported = sorted({*self._names.values(), *map(_class_name, self._versions)})
        listed = "".join(f'    "{name}",\n' for name in exported)
        group, version = self._versions[0].group, self._versions[0].version.name
        title = f'"""The kinds of {group}/{version}, which another project installs."""\n'
        return f"{_HEAD}{title}\n{_imports(blocks)}\n\n{body}\n\n\n__all__ = [\n{listed}]\n"

    def _write(
        self, key: ClassKey, places: Mapping[ClassKey, Occurrence], written: dict[ClassKey, list[str]]
    ) -> None:
        """Write a class after those that its fields name."""
        if key in written:
            return
        place = places[key]
        for inner in _inner_classes(place.schema):
            self._write(self._facts.class_key(inner), places, written)
        written[key] = list(self._model(place))

    def _model(self, place: Occurrence) -> Iterator[str]:
        schema = place.schema
        yield from _statement(self._names[place.key], ["kw.Model", *_rules(schema)])
        description = "" if "." in place.path else schema.get("description", "")
        yield from _docstring(description or f"`{place.path}` of {place.kind}.")
        fields = self._fields(schema, is_status=place.key.is_status)
        if fields:
            yield ""
        yield from _with_descriptions(fields, schema)

    def _kind(self, version: ExternalVersion) -> Iterator[str]:
        schema = version.schema
        shown = {wire: inner for wire, inner in properties(schema).items() if wire not in _TYPE_META}
        parts = [part for part in ("spec", "status") if part in shown and is_class(shown[part])]
        is_resource = len(parts) == 2
        own: list[str] = []
        for part in parts:
            inner = shown.pop(part)
            own += self._part(part, inner, is_required=part in required(schema), is_inherited=is_resource)
        classes = ", ".join(self._class_of(properties(schema)[part], part) for part in parts)
        base = f"kw.Resource[{classes}]" if is_resource else "kw.Object"
        yield from _statement(_class_name(version), [base, *_kind_keywords(version), *_rules(schema)])
        yield from _docstring(schema.get("description") or f"{version}.")
        fields = self._fields({**schema, "properties": shown}, is_kind=True)
        if own or fields:
            yield ""
        yield from own
        yield from _with_descriptions(fields, schema)

    def _part(self, part: str, schema: JsonObject, *, is_required: bool, is_inherited: bool) -> list[str]:
        """Declare spec or status, unless `kw.Resource` declares the same.

        Both always exist in Python. A spec with required fields is required in Python even if it is not in the
        schema: every object has one in practice.
        """
        name = self._class_of(schema, part)
        needs_arguments = part == "spec" and any(
            "default" not in inner for wire, inner in properties(schema).items() if wire in required(schema)
        )
        keywords = [] if needs_arguments == is_required else [f"optional={not is_required}"]
        keywords += self._annotator.keywords(schema)
        if is_inherited and not keywords:
            return []
        return Annotation(part, name, tuple(keywords), "" if needs_arguments else f"{name}()").lines()

    def _class_of(self, schema: JsonObject, part: str = "") -> str:
        return self._names[self._facts.class_key(schema, is_status=part == "status")]

    def _fields(
        self, schema: JsonObject, *, is_status: bool = False, is_kind: bool = False
    ) -> dict[str, Annotation]:
        names = field_names(properties(schema), is_kind=is_kind)
        return {
            wire: self._annotator.field(
                names[wire], wire, inner, is_required=wire in required(schema), is_status=is_status
            )
            for wire, inner in properties(schema).items()
        }


def _class_name(version: ExternalVersion) -> str:
    return re.sub(r"\W", "", version.names.kind, flags=re.ASCII)


def _inner_classes(schema: JsonObject) -> Iterator[JsonObject]:
    for inner in properties(schema).values():
        yield from _classes_at(inner)


def _classes_at(schema: JsonObject) -> Iterator[JsonObject]:
    if is_class(schema):
        yield schema
        return
    if inner := element_of(schema):
        yield from _classes_at(inner)


def _kind_keywords(version: ExternalVersion) -> Iterator[str]:
    names, declared = version.names, version.version
    if names.kind != _class_name(version):
        yield f"kind={literal(names.kind)}"
    yield f"group={literal(version.group)}"
    yield f"version={literal(declared.name)}"
    yield f"plural={literal(names.plural)}"
    if names.singular not in ("", names.kind.lower()):
        yield f"singular={literal(names.singular)}"
    if names.list_kind not in ("", f"{names.kind}List"):
        yield f"list_kind={literal(names.list_kind)}"
    if not version.namespaced:
        yield 'scope="Cluster"'
    if names.short_names:
        yield f"short_names={literal(names.short_names)}"
    if names.categories:
        yield f"categories={literal(names.categories)}"
    if scale := declared.subresources.scale:
        selector = f", selector={literal(scale.label_selector_path)}" if scale.label_selector_path else ""
        paths = f"spec={literal(scale.spec_replicas_path)}, status={literal(scale.status_replicas_path)}"
        yield f"scale=kw.Scale({paths}{selector})"
    has_subresource = declared.subresources.status is not None
    if has_subresource != ("status" in properties(version.schema)):
        yield f"status={has_subresource}"
    if declared.storage and not version.alone:
        yield "stored=True"
    if declared.deprecated:
        yield f"deprecated={literal(declared.deprecation_warning or True)}"
    if declared.selectable_fields:
        yield f"selectable_fields={literal([each.json_path for each in declared.selectable_fields])}"
    if version.approval:
        yield f"crd_annotations={literal({APPROVAL: version.approval})}"
    yield "external=True"


def _rules(schema: JsonObject) -> list[str]:
    declared: list[JsonObject] = schema.get("x-kubernetes-validations") or []
    if not declared:
        return []
    lines = "".join(f"        {rule(each)},\n" for each in declared)
    return [f"rules=[\n{lines}    ]"]


def _statement(name: str, arguments: Sequence[str]) -> Iterator[str]:
    line = f"class {name}({', '.join(arguments)}):"
    if len(line) <= WIDTH and "\n" not in line:
        yield line
        return
    yield f"class {name}("
    for argument in arguments:
        yield f"    {argument},"
    yield "):"


def _with_descriptions(fields: Mapping[str, Annotation], schema: JsonObject) -> Iterator[str]:
    # Fields without a default come first, as in handwritten classes.
    for wire, annotation in sorted(fields.items(), key=lambda item: bool(item[1].default)):
        yield from annotation.lines()
        yield from _docstring(properties(schema)[wire].get("description", ""))


def _docstring(text: str) -> Iterator[str]:
    if not text.strip():
        return
    escaped = text.strip().expandtabs(4).replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
    if escaped.endswith('"'):
        escaped = f'{escaped[:-1]}\\"'
    lines = [part for line in escaped.splitlines() for part in _wrapped(line.rstrip())]
    if len(lines) == 1:
        yield f'    """{lines[0]}"""'
        return
    yield f'    """{lines[0]}'
    yield from (f"    {line}" if line else "" for line in lines[1:])
    yield '    """'


def _wrapped(line: str) -> list[str]:
    indent = line[: len(line) - len(line.lstrip())]
    width = max(WIDTH - 7, len(indent) + 20)
    return textwrap.wrap(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    ) or [""]


def _imports(blocks: Iterable[list[str]]) -> str:
    code = _without_docstrings("\n".join(line for block in blocks for line in block))
    lines: list[str] = []
    if re.search(r"\bdatetime\b", code):
        lines.append("from datetime import datetime")
    names = [name for name in ("Annotated", "Any", "Literal") if re.search(rf"\b{name}\b", code)]
    if names:
        lines.append(f"from typing import {', '.join(names)}")
    if lines:
        lines.append("")
    return "\n".join([*lines, "import kubewright as kw"]) + "\n"


def _without_docstrings(code: str) -> str:
    return re.sub(r'^ {4}""".*?(?<!\\)"""$', "", code, flags=re.DOTALL | re.MULTILINE)
