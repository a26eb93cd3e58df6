"""Kinds as users write them; a real API server accepted their CRDs without a warning."""

from datetime import date, datetime
from enum import Enum
from typing import Annotated, Any, Literal
from uuid import UUID

from kubewright.api import (
    Column,
    Condition,
    Duration,
    Field,
    Meta,
    Model,
    Object,
    Quantity,
    Resource,
    Rule,
    Scale,
)
from kubewright.api.builtin import core_v1
from kubewright.schema import crd


class Mode(Enum):
    FAST = "Fast"
    SAFE = "Safe"


class Port(Model):
    """A port and its protocol."""

    port: Annotated[int, Field(ge=1, le=65535)]
    protocol: Literal["TCP", "UDP"] = "TCP"
    name: Annotated[str, Field(pattern="^[a-z]+$", max_length=15)] = ""


class Template(Model):
    metadata: Meta = Meta()
    image: str
    pull: bool = True


class EverythingSpec(
    Model, rules=[Rule("self.least <= self.most", message="least is above most", field_path=".least")]
):
    """Every type that a spec can hold."""

    least: Annotated[int, Field(ge=0, lt=100, description="The least.")]
    most: Annotated[int, Field(gt=0, le=100)] = 10
    big: Annotated[int, Field(int64=True, multiple_of=2)] = 0
    ratio: Annotated[float, Field(ge=0, le=1)] = 0.5
    flag: bool = False
    on: bool = True
    text: Annotated[str, Field(min_length=1, max_length=63, pattern=r"^\w+$")] = "a"
    mail: Annotated[str, Field(format="email")] = ""
    secret: bytes = b""
    mode: Mode = Mode.SAFE
    level: Literal[1, 2, 3] = 1
    when: datetime | None = None
    day: date | None = None
    ident: UUID | None = None
    memory: Quantity = Quantity("1Gi")
    timeout: Duration | None = None
    surge: int | str = "25%"
    names: Annotated[list[Annotated[str, Field(max_length=10)]], Field(list_type="set", max_items=5)] = []
    ports: Annotated[list[Port], Field(list_type="map", list_keys=["port", "protocol"])] = []
    matrix: list[list[int]] = []
    limits: Annotated[dict[str, Quantity], Field(max_properties=4)] = {}
    labels: dict[str, str] = {}
    extra: Any = None
    open: Annotated[dict[str, Any], Field(preserve_unknown_fields=True)] = {}
    template: Template | None = None
    port: Port = Port(port=80)
    fixed: Annotated[str, Field(immutable=True)] = ""
    passphrase: Annotated[str, Field(sensitive=True)] = ""
    maybe: Annotated[str | None, Field(nullable=True)] = None
    chosen: Annotated[str, Field(rules=[Rule("self != 'never'")], example="now", title="Chosen")] = ""
    whole: Annotated[dict[str, Any] | None, Field(embedded_resource=True, preserve_unknown_fields=True)] = (
        None
    )
    capital: Annotated[str, Field(name="Capital")] = ""


class EverythingStatus(Model):
    replicas: int = 0
    phase: str = "Pending"
    selector: str = ""
    conditions: Annotated[list[Condition], Field(list_type="map", list_keys=["type"])] = []


class Everything(
    Resource[EverythingSpec, EverythingStatus],
    group="ex.io",
    version="v1",
    plural="everythings",
    short_names=["ev"],
    categories=["all"],
    columns=[
        Column("Mode", ".spec.mode", description="How it runs."),
        Column("Most", ".spec.most", type="integer", priority=1),
        Column("Age", ".metadata.creationTimestamp", type="date"),
    ],
    scale=Scale(spec=".spec.most", status=".status.replicas", selector=".status.selector"),
    selectable_fields=[".spec.text"],
    rules=[Rule("self.metadata.name != 'missing'")],
):
    """A kind that has everything."""


class OldFoo(
    Object, kind="Foo", group="ex.io", version="v1alpha1", stored=False, deprecated="use v1", plural="foos"
):
    test_string: str = ""
    test_num: int = 0


class FooSpec(Model):
    test_string: str = "first"
    test_num: Annotated[int, Field(le=100)] = 0


class FooStatus(Model):
    seen: int = 0


class Foo(
    Resource[FooSpec, FooStatus], group="ex.io", version="v1", stored=True, plural="foos", scope="Cluster"
):
    """The new one."""


class OldClusterFoo(
    Object,
    kind="Foo",
    group="ex.io",
    version="v1alpha1",
    stored=False,
    deprecated="use v1",
    plural="foos",
    scope="Cluster",
):
    test_string: str = ""
    test_num: int = 0


class ShellSpec(Model):
    size: Annotated[int, Field(ge=0, description="Number of shell pods.")]


class ShellStatus(Model):
    ready: int = 0


class MyOwnShell(
    Resource[ShellSpec, ShellStatus],
    group="my-first-operator.jgato.io",
    version="v1alpha1",
    columns=[Column("Ready", ".status.ready", type="integer")],
):
    """Pods to open a shell in."""


class PodsSpec(Model):
    template: core_v1.PodTemplateSpec
    env: list[core_v1.EnvVar] = []
    whole: core_v1.Pod | None = None


class PodsStatus(Model):
    pods: int = 0


class Pods(Resource[PodsSpec, PodsStatus], group="ex.io", version="v1", plural="podses"):
    """Built-in types inside a spec."""


class OddSpec(Model):
    text: Annotated[str, Field(format="nonsense")] = ""
    number: Annotated[int, Field(format="int8")] = 0


class OddStatus(Model):
    seen: int = 0


class Odd(Resource[OddSpec, OddStatus], group="ex.io", version="v1"):
    """A kind with unknown formats."""


ODD = crd(Odd)
CRDS = {
    "everything": crd(Everything),
    "foo": crd(Foo, OldClusterFoo),
    "shell": crd(MyOwnShell),
    "pods": crd(Pods),
}
