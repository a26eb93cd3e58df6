"""The text of generated modules, for schemas that projects have and for odd ones."""

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from kubewright.api import DeclarationError, DecodeError, from_wire, kind_of, to_wire
from kubewright.controller import Controller, Operator
from kubewright.documents import read_yaml
from kubewright.generate import manifests
from kubewright.scaffold.external import DefinitionError, external_modules, read_definitions
from kubewright.schema import crd, structural

CRD = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: lamps.light.example.com}
spec:
  group: light.example.com
  scope: Namespaced
  names: {kind: Lamp, plural: lamps, shortNames: [lp]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema:
      openAPIV3Schema:
        type: object
        description: A lamp.
        required: [spec]
        properties:
          apiVersion: {type: string}
          kind: {type: string}
          metadata: {type: object}
          spec:
            type: object
            description: What the lamp should do.
            required: [colour, bulbs]
            x-kubernetes-validations:
            - {rule: "self.bulbs.size() < 9", message: too many bulbs}
            properties:
              bulbs:
                type: array
                description: The bulbs, by socket.
                x-kubernetes-list-type: map
                x-kubernetes-list-map-keys: [socket]
                items:
                  type: object
                  required: [socket]
                  properties:
                    socket: {type: string, pattern: '^E\\d+$'}
                    watts: {type: integer, format: int32, minimum: 1, default: 5}
              colour:
                type: string
                enum: [warm, cold]
              from: {type: string}
              hostIPs: {type: array, items: {type: string}, x-kubernetes-list-type: set}
              limit: {x-kubernetes-int-or-string: true, anyOf: [{type: integer}, {type: string}]}
          status:
            type: object
            required: [burning]
            properties:
              burning: {type: boolean}
              since: {type: string, format: date-time}
"""
MODULE = '''\
# Written by `kubewright create types`: change the CRDs, then run the command again.
# ruff: noqa: D205, D212, D400, D415, E501, ERA001, RUF001, RUF002, RUF003, RUF100
# fmt: off
"""The kinds of light.example.com/v1, which another project installs."""

from datetime import datetime
from typing import Annotated, Literal

import kubewright as kw


class Bulb(kw.Model):
    """`spec.bulbs[]` of Lamp."""

    socket: Annotated[str, kw.Field(pattern=r"^E\\d+$")]
    watts: Annotated[int | None, kw.Field(default=5, ge=1)] = None


class LampSpec(
    kw.Model,
    rules=[
        kw.Rule("self.bulbs.size() < 9", message="too many bulbs"),
    ],
):
    """What the lamp should do."""

    bulbs: Annotated[list[Bulb], kw.Field(list_type="map", list_keys=["socket"])]
    """The bulbs, by socket."""
    colour: Literal["warm", "cold"]
    from_: str | None = None
    host_ips: Annotated[list[str] | None, kw.Field(name="hostIPs", list_type="set")] = None
    limit: int | str | None = None


class LampStatus(kw.Model):
    """`status` of Lamp."""

    burning: Annotated[bool | None, kw.Field(optional=False)] = None
    since: datetime | None = None


class Lamp(
    kw.Resource[LampSpec, LampStatus],
    group="light.example.com",
    version="v1",
    plural="lamps",
    short_names=["lp"],
    external=True,
):
    """A lamp."""


__all__ = [
    "Bulb",
    "Lamp",
    "LampSpec",
    "LampStatus",
]
'''


def definitions(text: str = CRD) -> list[dict[str, Any]]:
    return [document.value for document in read_yaml(text)]


def with_spec(properties: dict[str, Any], **more: Any) -> list[dict[str, Any]]:
    """Return the CRD with another spec."""
    (definition,) = definitions()
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"] = {"type": "object", "properties": properties, **more}
    return [definition]


@pytest.fixture
def imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Write the module of a CRD and import it."""

    def load(documents: list[dict[str, Any]]) -> ModuleType:
        folder = tmp_path / f"kinds_{len(list(tmp_path.iterdir()))}_{tmp_path.name}"
        folder.mkdir()
        for name, text in external_modules(read_definitions(documents).versions).items():
            (folder / name).write_text(text)
        monkeypatch.syspath_prepend(str(tmp_path))
        importlib.invalidate_caches()
        module = importlib.import_module(f"{folder.name}.light_v1")
        monkeypatch.delitem(sys.modules, folder.name)
        return module

    return load


def lamp(spec: Any) -> dict[str, Any]:
    return {"apiVersion": "light.example.com/v1", "kind": "Lamp", "metadata": {"name": "one"}, "spec": spec}


def test_a_generated_module_equals_the_handwritten_one() -> None:
    modules = external_modules(read_definitions(definitions()).versions)
    assert list(modules) == ["__init__.py", "light_v1.py"]
    assert modules["light_v1.py"] == MODULE


def test_names_that_python_cannot_use_keep_their_wire_names(imported: Any) -> None:
    names = [
        "class",
        "list",
        "str",
        "foo-bar",
        "fooBar",
        "foo_bar",
        "$ref",
        "1st",
        "None",
        "_private",
        "type",
    ]
    module = imported(
        with_spec(
            {name: {"type": "string"} for name in names}
            | {"many": {"type": "array", "items": {"type": "string"}}}
        )
    )
    value = lamp(dict.fromkeys(names, "x") | {"many": ["y"]})
    read = from_wire(module.Lamp, value)
    assert (read.spec.class_, read.spec.list_, read.spec.type) == ("x", "x", "x")
    assert to_wire(read) == value
    assert set(structural(module.Lamp)["properties"]["spec"]["properties"]) == {*names, "many"}


def test_descriptions_may_hold_quotes_and_backslashes(imported: Any) -> None:
    text = 'A "quoted" path C:\\new, and """three""".\n\n    indented\n\nends with "'
    module = imported(with_spec({"path": {"type": "string", "description": text}}, description=text))
    assert module.LampSpec.__doc__.startswith('A "quoted" path C:\\new, and """three""".')
    assert module.LampSpec.__doc__.rstrip().endswith('ends with "')


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
        {
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": True,
            "properties": {"known": {"type": "string"}},
        },
        {
            "type": "object",
            "x-kubernetes-embedded-resource": True,
            "x-kubernetes-preserve-unknown-fields": True,
        },
        {"x-kubernetes-preserve-unknown-fields": True},
        {"type": "object", "additionalProperties": True},
    ],
)
def test_fields_that_a_schema_keeps_unnamed_are_kept(schema: dict[str, Any], imported: Any) -> None:
    module = imported(with_spec({"part": schema}))
    value = lamp({"part": {"apiVersion": "v1", "kind": "Thing", "known": "x", "more": [{"deep": None}]}})
    assert to_wire(from_wire(module.Lamp, value)) == value
    crd(module.Lamp)


def test_null_stays_null_where_it_is_required(imported: Any) -> None:
    module = imported(with_spec({"size": {"type": "integer", "nullable": True}}, required=["size"]))
    assert to_wire(from_wire(module.Lamp, lamp({"size": None}))) == lamp({"size": None})
    assert to_wire(from_wire(module.Lamp, lamp({"size": 3}))) == lamp({"size": 3})


def test_defaults_are_the_servers_and_never_sent_back(imported: Any) -> None:
    defaults = {
        "text": {"type": "string", "default": ""},
        "flag": {"type": "boolean", "default": False},
        "names": {"type": "array", "items": {"type": "string"}, "default": ["a"]},
        "part": {"type": "object", "default": {}, "properties": {"x": {"type": "string", "default": "y"}}},
    }
    module = imported(with_spec(defaults, required=["flag"]))
    empty = lamp({})
    read = from_wire(module.Lamp, empty)
    assert read.spec.names is None
    assert to_wire(read) == empty
    rendered = structural(module.Lamp)["properties"]["spec"]
    assert {name: inner["default"] for name, inner in rendered["properties"].items()} == {
        "text": "",
        "flag": False,
        "names": ["a"],
        "part": {},
    }
    assert rendered["required"] == ["flag"]
    assert "default" not in rendered


def test_empty_values_stay_apart_from_absent_ones(imported: Any) -> None:
    parts = {
        "names": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "selector": {"type": "object", "properties": {"app": {"type": "string"}}},
        "text": {"type": "string"},
    }
    module = imported(with_spec(parts))
    value = lamp({"names": [], "labels": {}, "selector": {}, "text": ""})
    assert to_wire(from_wire(module.Lamp, value)) == value


def test_a_value_outside_an_enumeration_is_an_error_that_names_it(imported: Any) -> None:
    module = imported(definitions())
    with pytest.raises(DecodeError, match=r"Lamp: spec\.colour: invalid enum value 'green'"):
        from_wire(module.Lamp, lamp({"colour": "green", "bulbs": []}))


def test_objects_of_one_name_and_other_fields_get_longer_names(imported: Any) -> None:
    def part(field: str) -> dict[str, Any]:
        return {"type": "object", "properties": {field: {"type": "string"}}}

    parts = {name: {"type": "object", "properties": {"secretRef": part(name)}} for name in ("jks", "pem")}
    module = imported(with_spec(parts))
    assert {"JksSecretRef", "PemSecretRef"} <= set(module.__all__)


def test_only_served_versions_get_classes() -> None:
    (definition,) = definitions()
    (version,) = definition["spec"]["versions"]
    definition["spec"]["versions"] = [
        {**version, "name": "v1beta1", "storage": False, "deprecated": True},
        {**version, "name": "v1alpha1", "storage": False, "served": False},
        version,
    ]
    found = read_definitions([definition])
    modules = external_modules(found.versions)
    assert list(modules) == ["__init__.py", "light_v1.py", "light_v1beta1.py"]
    assert "stored=True" in modules["light_v1.py"]
    assert "deprecated=True" in modules["light_v1beta1.py"]
    assert found.skipped == ["Lamp of light.example.com/v1alpha1: the version is not served"]


def test_a_kind_without_declared_fields_is_left_out() -> None:
    (definition,) = definitions()
    definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = {
        "type": "object",
        "x-kubernetes-preserve-unknown-fields": True,
    }
    assert read_definitions([definition]).skipped == [
        "Lamp of light.example.com/v1: its schema declares no fields; use it as a kw.Kind"
    ]


def test_groups_of_one_first_word_get_modules_of_their_own() -> None:
    (first,), (second,) = definitions(), definitions(CRD.replace("light.example.com", "light.example.org"))
    assert list(external_modules(read_definitions([first, second]).versions)) == [
        "__init__.py",
        "light_example_com_v1.py",
        "light_example_org_v1.py",
    ]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("apiextensions.k8s.io/v1\n", "apiextensions.k8s.io/v1beta1\n"),
            r"only apiextensions\.k8s\.io/v1 is",
        ),
        (("  group: light.example.com", "  grp: x"), r"spec: Object missing required field `group`"),
    ],
)
def test_a_malformed_crd_is_an_error_that_names_it(change: tuple[str, str], message: str) -> None:
    with pytest.raises(DefinitionError, match=rf"^CustomResourceDefinition lamps\.light.*{message}"):
        read_definitions(definitions(CRD.replace(*change)))


def test_the_same_kind_twice_is_an_error() -> None:
    with pytest.raises(DefinitionError, match=r"Lamp of light\.example\.com/v1 is declared by two"):
        read_definitions([*definitions(), *definitions()])


def test_an_operator_never_installs_external_kinds(imported: Any) -> None:
    module = imported(definitions())

    async def reconcile(lamp: Any, ctx: Any) -> None: ...

    operator = Operator(Controller(module.Lamp, reconcile))
    assert operator.kinds == ()
    assert [each["kind"] for each in manifests(operator, ["crds"])] == []
    (role,) = [each for each in manifests(operator, ["rbac"]) if each["kind"] == "ClusterRole"][:1]
    assert any(rule.get("apiGroups") == ["light.example.com"] for rule in role["rules"])
    with pytest.raises(DeclarationError, match=r"kinds=\[Lamp\]: its CRD is installed by another project"):
        Operator(Controller(module.Lamp, reconcile), kinds=[module.Lamp])
    assert kind_of(module.Lamp).external
