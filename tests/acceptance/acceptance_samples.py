"""The five sample operators: where they lie, what they are made of."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

import foo
import mycustomresource
import myownshell
import pulsarconsumer
import vmgroup
from kubewright.api.builtin import apps_v1, core_v1
from kubewright.controller import Operator

ROOT = Path(__file__).parents[2]
JsonObject = dict[str, Any]


@dataclass(frozen=True)
class Sample:
    """One sample operator."""

    name: str
    operator: Callable[[], Operator]
    kind: type[Any]
    children: tuple[type[Any], ...]
    settled: Callable[[Any], object]
    """Returns True if there is nothing left to do for one of its objects."""
    malformed: JsonObject
    """What no object of the kind may hold, laid over one of its samples."""

    @property
    def target(self) -> Path:
        """The package, as `kubewright run` takes it."""
        return ROOT / "examples" / self.name

    def documents(self) -> list[JsonObject]:
        """Read the YAML files of its samples."""
        files = sorted((self.target / "samples").glob("*.yaml"))
        return [document for file in files for document in yaml.safe_load_all(file.read_text())]


SAMPLES = (
    Sample(
        "mycustomresource",
        mycustomresource.operator,
        mycustomresource.MyCustomResource,
        (),
        lambda it: it.status.healthy is not None,
        {"spec": {"name": ["a", "list"]}},
    ),
    Sample(
        "myownshell",
        myownshell.operator,
        myownshell.MyOwnShell,
        (apps_v1.Deployment, core_v1.Pod),
        lambda it: it.status.ready == it.spec.size,
        {"spec": {"size": "three"}},
    ),
    Sample(
        "foo",
        foo.operator,
        foo.Foo,
        (core_v1.Pod,),
        lambda it: it.status.pod,
        {"apiVersion": "example.com/v1beta1", "spec": {"testNum": "one"}},
    ),
    Sample(
        "vmgroup",
        vmgroup.operator,
        vmgroup.VmGroup,
        (),
        lambda it: it.status.phase == "RUNNING",
        {"spec": {"cpu": "one", "memory": 1, "replicas": 1, "template": "vm-operator-template"}},
    ),
    Sample(
        "pulsarconsumer",
        pulsarconsumer.operator,
        pulsarconsumer.PulsarConsumer,
        (apps_v1.Deployment, core_v1.Pod),
        lambda it: it.status.replicas == it.spec.replicas,
        {"spec": {"replicas": "one"}},
    ),
)
