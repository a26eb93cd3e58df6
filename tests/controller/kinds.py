"""Kinds that the tests of this folder declare controllers for."""

from kubewright.api import Condition, Model, Object, Resource


class ShellSpec(Model):
    size: int


class ShellStatus(Model):
    ready: int = 0
    conditions: list[Condition] = []


class Shell(Resource[ShellSpec, ShellStatus], group="shells.example.com", version="v1"):
    """Has a spec and a status."""


class Note(Object, group="shells.example.com", version="v1"):
    """Has neither."""

    text: str = ""
    friend: str = ""


class Zone(Object, group="shells.example.com", version="v1", scope="Cluster"):
    """Lies outside namespaces."""

    text: str = ""
