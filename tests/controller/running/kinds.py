"""Kinds of the tests that need a cluster."""

from typing import Annotated

from kubewright.api import Condition, Field, Model, Object, Resource


class BoxSpec(Model):
    size: int = 1
    labels: dict[str, str] = {}


class BoxStatus(Model):
    ready: int = 0
    note: str | None = None
    conditions: Annotated[list[Condition], Field(list_type="map", list_keys=("type",))] = []


class Box(Resource[BoxSpec, BoxStatus], group="running.example.com", version="v1", plural="boxes"):
    """Has children."""


class Route(Model):
    host: str = ""
    protocol: str | None = None
    status: str | None = None


class PolicySpec(Model):
    allow: list[str] | None = None
    routes: list[Route] = []
    level: int = 3


class Policy(Resource[PolicySpec, BoxStatus], group="running.example.com", version="v1", plural="policies"):
    """Has atomic lists, and a list that may be stated empty."""


class Paper(Object, group="running.example.com", version="v1"):
    """Is a child, or is watched."""

    text: str = ""
    number: int | None = None
    friend: str = ""
