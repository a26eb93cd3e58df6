"""The areas that are compared: a generator of cases each, and which servers they need."""

from dataclasses import dataclass

from area_admission import admission
from area_apply import applies
from area_definitions import definitions
from area_fields import fields
from area_garbage import garbage
from area_objects import objects
from area_rbac import rights
from area_reads import reads
from area_writes import dry_runs, writes
from compare_case import Generator


@dataclass(frozen=True)
class Area:
    """Requests of one kind."""

    name: str
    generator: Generator
    controllers: bool = False
    """The garbage collector and the namespace controller must run."""


AREAS = {
    area.name: area
    for area in (
        Area("writes", writes),
        Area("apply", applies),
        Area("dryrun", dry_runs),
        Area("fields", fields),
        Area("objects", objects),
        Area("rbac", rights),
        Area("reads", reads),
        Area("garbage", garbage, controllers=True),
        Area("admission", admission),
        Area("definitions", definitions),
    )
}
