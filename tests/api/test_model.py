"""Declaring models and kinds."""

import types
from datetime import datetime, timedelta
from enum import Enum
from typing import Annotated, Any, Generic, Literal, TypeVar

import msgspec
import pytest

from kubewright.api import (
    Column,
    DeclarationError,
    Duration,
    Field,
    Kind,
    Meta,
    Model,
    Object,
    ObjectKey,
    Quantity,
    Resource,
    Rule,
    Scale,
    field_info,
    field_types,
    kind_of,
    model_rules,
    owner_reference,
    plural_of,
    to_wire,
)
from kubewright.api.builtin import core_v1


class ShellSpec(Model):
    size: Annotated[int, Field(ge=0, description="Number of shell pods.")]


class ShellStatus(Model):
    ready: int = 0
    healthy: Annotated[bool | None, Field(name="Healthy")] = None


class Shell(Resource[ShellSpec, ShellStatus], group="example.com", version="v1alpha1", short_names=["sh"]):
    """Pods to open a shell in."""


class Foo(Object, kind="Foo", group="example.com", version="v1", scope="Cluster"):
    test_string: str = ""
    test_num: int = 0


def test_metadata_is_the_one_positional_field() -> None:
    shell = Shell(Meta("demo", namespace="default"), spec=ShellSpec(size=3))
    assert shell.key == ObjectKey("default", "demo")
    assert str(shell.key) == "default/demo"


def test_status_is_never_none_and_never_shared() -> None:
    first, second = (Shell(Meta(name), spec=ShellSpec(size=1)) for name in "ab")
    first.status.ready = 4
    assert second.status == ShellStatus(ready=0)


def test_describes_the_kind_from_class_keywords() -> None:
    kind = kind_of(Shell)
    assert kind == Kind(
        group="example.com",
        version="v1alpha1",
        kind="Shell",
        plural="shells",
        singular="shell",
        list_kind="ShellList",
        short_names=("sh",),
        status=True,
    )
    assert (kind.api_version, kind.path, kind.resource) == (
        "example.com/v1alpha1",
        "/apis/example.com/v1alpha1",
        "shells.example.com",
    )
    assert kind_of(Shell(spec=ShellSpec(size=1))) is kind_of(kind) is kind


def test_keeps_columns_scale_and_the_rest() -> None:
    class Wide(
        Resource[ShellSpec, ShellStatus],
        group="example.com",
        version="v1",
        columns=[Column("Ready", ".status.ready", type="integer")],
        scale=Scale(spec=".spec.size", status=".status.ready"),
        stored=True,
        deprecated="use v2",
        selectable_fields=[".spec.size"],
        categories=["all"],
        rules=[Rule("self.spec.size < 10")],
    ): ...

    kind = kind_of(Wide)
    assert kind.columns == (Column("Ready", ".status.ready", type="integer"),)
    assert kind.scale == Scale(spec=".spec.size", status=".status.ready")
    assert (kind.stored, kind.deprecated, kind.selectable_fields) == (True, "use v2", (".spec.size",))
    assert model_rules(Wide) == (Rule("self.spec.size < 10"),)


def test_gives_a_kind_without_spec_its_own_name_and_scope() -> None:
    kind = kind_of(Foo)
    assert (kind.kind, kind.plural, kind.namespaced, kind.status) == ("Foo", "foos", False, False)


@pytest.mark.parametrize(
    ("name", "plural"), [("Foo", "foos"), ("Policy", "policies"), ("Ingress", "ingresses"), ("Key", "keys")]
)
def test_a_kind_without_a_plural_gets_the_usual_one(name: str, plural: str) -> None:
    made = types.new_class(name, (Object,), {"group": "example.com", "version": "v1"})
    assert kind_of(made).plural == plural_of(name) == plural


def test_a_class_without_keywords_is_not_a_kind() -> None:
    class Shared(Object):
        note: str = ""

    with pytest.raises(DeclarationError, match="Shared is no kind: give its class group= and version="):
        kind_of(Shared)
    with pytest.raises(DeclarationError, match="'pods' is no kind: give a class of it, or a Kind"):
        kind_of("pods")


def test_subclasses_inherit_fields_and_wire_names() -> None:
    class More(ShellStatus):
        extra_note: str = "x"

    assert More.__struct_encode_fields__ == ("ready", "Healthy", "extraNote")


def test_gives_mutable_defaults_to_each_object() -> None:
    class Ports(Model):
        numbers: list[int] = [80]
        spec: ShellSpec = ShellSpec(size=2)

    first, second = Ports(), Ports()
    first.numbers.append(81)
    first.spec.size = 9
    assert second == Ports(numbers=[80], spec=ShellSpec(size=2))


def test_a_spec_of_defaults_may_be_left_out() -> None:
    class Easy(Resource[ShellStatus, ShellStatus], group="example.com", version="v1"): ...

    assert msgspec.convert({}, Easy).spec == ShellStatus()


S = TypeVar("S")


class Staged(Resource[S, ShellStatus], Generic[S]):
    stage: str = ""


def test_generic_parents_can_be_in_between() -> None:
    class Stage(Staged[ShellSpec], group="example.com", version="v1"): ...

    class Next(Stage, group="example.com", version="v2"): ...

    made = Next(Meta("a"), spec=ShellSpec(size=1), stage="x")
    assert (made.status, field_types(Next)["spec"]) == (ShellStatus(), ShellSpec)
    assert (kind_of(Stage).version, kind_of(Next).version, kind_of(Next).kind) == ("v1", "v2", "Next")


def test_field_descriptions_are_kept() -> None:
    assert field_info(ShellSpec)["size"] == Field(ge=0, description="Number of shell pods.")
    assert field_info(ShellStatus)["healthy"].name == "Healthy"
    assert field_types(ShellStatus)["ready"] is int


class Colour(Enum):
    RED = "red"


def test_accepts_every_supported_type() -> None:
    class Everything(Model):
        text: str = ""
        number: int = 0
        fraction: float = 0.0
        flag: bool = False
        data: bytes = b""
        time: datetime | None = None
        amount: Quantity = Quantity("1Gi")
        wait: Duration = Duration(seconds=5)
        port: int | str = 0
        colour: Colour = Colour.RED
        mode: Literal["a", "b"] = "a"
        nested: ShellStatus = ShellStatus()
        items: list[ShellSpec] = []
        table: dict[str, list[Quantity]] = {}
        anything: Any = None
        itself: "Everything | None" = None

    assert to_wire(Everything())["amount"] == "1Gi"
    assert to_wire(Everything())["wait"] == "5s"
    assert field_types(Everything)["itself"] == Everything | None


def refused(name: str, annotation: Any, **keywords: Any) -> str:
    body = {"__module__": __name__, "__annotations__": {"part": annotation}}
    with pytest.raises(DeclarationError) as caught:
        types.new_class(name, (Model,), keywords, lambda namespace: namespace.update(body))
    return str(caught.value)


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (set[str], 'Bad.part: set[str] cannot be carried: use list[...] with Field(list_type="set")'),
        (tuple[int, int], "Bad.part: tuple[int, int] cannot be carried: use list[...]"),
        (timedelta, "Bad.part: timedelta cannot be carried: use Duration, which is written as Go does"),
        (dict[int, str], "Bad.part: keys of a map are text on the wire, not int: use dict[str, str]"),
        (list, "Bad.part: list cannot be carried: give the type of its elements: list[str]"),
        (complex, "Bad.part: complex cannot be carried: use a Model, a list, a map or a plain value"),
        (
            ShellSpec | ShellStatus,
            (
                "Bad.part: the union ShellSpec | ShellStatus has no structural schema, only X | None and int | str "
                "have: use one type, or Any with Field(preserve_unknown_fields=True)"
            ),
        ),
        (list[set[int]], 'Bad.part: set[int] cannot be carried: use list[...] with Field(list_type="set")'),
        (Literal["a", 1], "Bad.part: the values of a Literal must be of one type: use only str or only int"),
        (None, "Bad.part: None alone has no value: use X | None"),
        (msgspec.Struct, "Bad.part: Struct is no Model: derive it from Model"),
    ],
)
def test_refuses_unsupported_types(annotation: Any, message: str) -> None:
    assert refused("Bad", type(None) if annotation is None else annotation) == message


def test_refuses_class_keywords_it_does_not_know() -> None:
    assert refused("Bad", str, colour="red") == "Bad: there is no class keyword colour="


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"version": "v1"}, "Bad: a kind needs group=: give group= and version="),
        ({"group": "example.com"}, "Bad: a kind needs version=: give group= and version="),
        (
            {"group": "example", "version": "v1"},
            "Bad: group='example' is no domain: use one with a dot, like",
        ),
        ({"group": "example.com", "version": "V1"}, "Bad: version='V1': a DNS-1035 label must consist of"),
        (
            {"group": "example.com", "version": "v1", "scope": "Global"},
            "Bad: scope='Global': use \"Namespaced\"",
        ),
        ({"group": "example.com", "version": "v1", "kind": "bad"}, "Bad: kind 'bad' is not CamelCase"),
        (
            {"group": "example.com", "version": "v1", "short_names": ["B"]},
            "Bad: short_names='B': a DNS-1035 label",
        ),
    ],
)
def test_refuses_invalid_kinds(keywords: dict[str, Any], message: str) -> None:
    with pytest.raises(DeclarationError) as caught:
        types.new_class("Bad", (Object,), keywords)
    assert str(caught.value).startswith(message)


def test_refuses_a_status_with_required_fields() -> None:
    with pytest.raises(DeclarationError, match=r"Bad.status: ShellSpec.size has no default: give it one"):

        class Bad(Resource[ShellStatus, ShellSpec], group="example.com", version="v1"): ...


def test_refuses_a_spec_that_is_not_a_model() -> None:
    with pytest.raises(DeclarationError, match=r"Bad.spec: <class 'dict'> is no Model: derive it from Model"):

        class Bad(Resource[dict, ShellStatus], group="example.com", version="v1"): ...  # pyright: ignore[reportMissingTypeArgument]


@pytest.mark.parametrize("field", ["kind", "api_version", "key"])
def test_refuses_fields_that_every_object_has(field: str) -> None:
    namespace = {"__module__": __name__, "__annotations__": {field: str}, field: ""}
    with pytest.raises(DeclarationError, match=rf"Bad\.{field}: "):
        types.new_class("Bad", (Object,), {}, lambda body: body.update(namespace))


def test_refuses_two_fields_of_one_wire_name() -> None:
    with pytest.raises(DeclarationError, match="Bad"):

        class Bad(Model):
            first: str = ""
            second: Annotated[str, Field(name="first")] = ""


def test_names_its_owner_only_when_it_was_read() -> None:
    shell = Shell(Meta("demo"), spec=ShellSpec(size=1))
    with pytest.raises(DeclarationError, match="Shell demo has no uid: only an object that was read"):
        owner_reference(shell)
    shell.metadata.uid = "u1"
    assert to_wire(owner_reference(shell)) == {
        "apiVersion": "example.com/v1alpha1",
        "kind": "Shell",
        "name": "demo",
        "uid": "u1",
        "controller": True,
        "blockOwnerDeletion": True,
    }
    assert "controller" not in to_wire(owner_reference(shell, controller=False))


class Port(Model):
    """A port."""

    target_port: int = 0


def test_an_unknown_keyword_argument_names_the_class_and_the_field_that_was_meant() -> None:
    make: Any = Port
    with pytest.raises(
        TypeError, match=r"^Port\(\) has no field 'targetPort': did you mean 'target_port'\?$"
    ):
        make(targetPort=80)
    with pytest.raises(TypeError, match=r"^Port\(\) has no field 'colour': its fields are target_port$"):
        make(colour="red")


def test_metadata_that_is_not_meta_is_refused() -> None:
    secret: Any = core_v1.Secret
    message = r"^Secret\(\): metadata must be kw\.Meta\('name'\), got 'name'$"
    for make in (lambda: secret("name", data={}), lambda: secret(metadata="name")):
        with pytest.raises(TypeError, match=message):
            make()
    with pytest.raises(TypeError, match=r"metadata must be kw\.Meta\(\.\.\.\), got \{'name': 'a'\}"):
        secret({"name": "a"})


def test_a_resource_needs_spec_and_status() -> None:
    generic: Any = Resource
    message = r"^Resource\[Port\] has no status: write Resource\[Port, PortStatus\] with a Model for the status, or derive "
    with pytest.raises(DeclarationError, match=message):
        generic[Port]
