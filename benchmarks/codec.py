"""What reading a big list costs, typed and as bytes with metadata, against msgspec alone."""

import time
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import msgspec
import pydantic
from harness import Bench, alternate
from pydantic import BaseModel

import kubewright as kw
from kubewright.api import decode, encode, split_list

ITEMS = 10_000
FEW = 2_000


class Part(kw.Model):
    """One part of a widget."""

    name: str
    image: str
    size: Annotated[int, kw.Field(ge=0)] = 1
    env: dict[str, str] = {}


class WidgetSpec(kw.Model):
    """The desired state of a widget."""

    replicas: Annotated[int, kw.Field(ge=0)]
    parts: list[Part] = []
    selector: dict[str, str] = {}
    paused: bool = False


class WidgetStatus(kw.Model):
    """What a widget is."""

    ready: int = 0
    conditions: list[kw.Condition] = []


class Widget(kw.Resource[WidgetSpec, WidgetStatus], group="bench.example.com", version="v1"):
    """A custom resource of about 2 KB."""


class PydanticPart(BaseModel):
    """One part of a widget."""

    name: str
    image: str
    size: Annotated[int, pydantic.Field(ge=0)] = 1
    env: dict[str, str] = {}


class PydanticSpec(BaseModel):
    """The desired state of a widget."""

    replicas: Annotated[int, pydantic.Field(ge=0)]
    parts: list[PydanticPart] = []
    selector: dict[str, str] = {}
    paused: bool = False


class PydanticWidget(kw.Resource[PydanticSpec, WidgetStatus], group="bench.example.com", version="v1"):
    """The same resource with a pydantic model as its spec."""


class ListMeta(msgspec.Struct, rename="camel"):
    """The metadata of a list."""

    resource_version: str = ""


class WidgetList(msgspec.Struct):
    """The list, typed."""

    metadata: ListMeta
    items: list[Widget]


class RawItems(msgspec.Struct):
    """The list, its items as bytes."""

    metadata: ListMeta
    items: list[msgspec.Raw]


def document() -> bytes:
    """Make the list as a server would write it."""
    items = [widget(number) for number in range(ITEMS)]
    listed = {
        "apiVersion": "bench.example.com/v1",
        "kind": "WidgetList",
        "metadata": {"resourceVersion": "9", "continue": ""},
    }
    return msgspec.json.encode({**listed, "items": items})


def widget(number: int) -> dict[str, Any]:
    name = f"widget-{number:05}"
    owned = {f"f:field{index}": {".": {}, "f:value": {}} for index in range(12)}
    managed = {
        "manager": "bench",
        "operation": "Apply",
        "apiVersion": "bench.example.com/v1",
        "fieldsType": "FieldsV1",
    }
    condition = {
        "status": "True",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "reason": "Fine",
        "message": "x" * 60,
    }
    return {
        "apiVersion": "bench.example.com/v1",
        "kind": "Widget",
        "metadata": {
            "name": name,
            "namespace": f"ns-{number % 50}",
            "uid": f"00000000-0000-0000-0000-{number:012}",
            "resourceVersion": str(1000 + number),
            "generation": 3,
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "labels": {"app": name, "tier": "bench"},
            "annotations": {"note": "y" * 120},
            "managedFields": [{**managed, "time": "2026-01-01T00:00:00Z", "fieldsV1": {"f:spec": owned}}],
        },
        "spec": {
            "replicas": 3,
            "selector": {"app": name},
            "paused": False,
            "parts": [
                {
                    "name": f"part-{index}",
                    "image": "example/part:1.0",
                    "size": index,
                    "env": {"A": "1", "B": "z" * 40},
                }
                for index in range(4)
            ],
        },
        "status": {
            "ready": 3,
            "conditions": [{**condition, "type": kind} for kind in ("Ready", "Available")],
        },
    }


def milliseconds(work: Callable[[], object]) -> Callable[[], float]:
    def run() -> float:
        # Reading is nothing but computing: processor time leaves out what else the machine does meanwhile.
        started = time.thread_time()
        kept = work()
        elapsed = time.thread_time() - started
        del kept
        return elapsed * 1000

    return run


def main() -> int:
    bench = Bench("codec", f"reading a list of {ITEMS:,} custom resources", rounds=7)
    data = document()
    bench.note(f"the list is {len(data) / 1e6:.1f} MB, {len(data) // ITEMS} bytes an object")
    typed, raw = msgspec.json.Decoder(WidgetList), msgspec.json.Decoder(RawItems)
    bench.progress("typed decoding")
    runs = alternate(
        bench.rounds,
        {
            "kubewright": milliseconds(lambda: decode(WidgetList, data)),
            "msgspec": milliseconds(lambda: typed.decode(data)),
        },
    )
    bench.row(f"decode {ITEMS:,} typed objects", "processor time", "ms", runs, goal="<= 1.3")
    bench.progress("bytes with metadata")
    runs = alternate(
        bench.rounds,
        {
            "kubewright": milliseconds(lambda: split_list(data)),
            "msgspec": milliseconds(lambda: raw.decode(data)),
        },
    )
    bench.row(f"split {ITEMS:,} into bytes and metadata", "processor time", "ms", runs, goal="<= 2.2")
    bench.progress("pydantic models")
    objects = [msgspec.json.encode(widget(number)) for number in range(FEW)]
    for title, work in (
        ("read", lambda cls: [decode(cls, each) for each in objects]),
        ("read and write", lambda cls: [encode(decode(cls, each)) for each in objects]),
    ):
        runs = alternate(
            bench.rounds,
            {
                "kubewright": milliseconds(partial(work, PydanticWidget)),
                "kw.Model": milliseconds(partial(work, Widget)),
            },
        )
        bench.row(f"{title} {FEW:,} objects, spec of a pydantic model", "processor time", "ms", runs)
    return bench.report()


if __name__ == "__main__":
    raise SystemExit(main())
