"""The areas that are compared: a generator of cases each, and which servers they need."""

from dataclasses import dataclass

from area_apply import applies
from area_definitions import definitions
from area_fields import fields
from area_garbage import garbage
from area_objects import objects, recorded
from area_policies import policies
from area_rbac import rights
from area_reads import reads
from area_versions import versions
from area_webhooks import webhooks
from area_writes import dry_runs, writes
from compare_case import Generator


@dataclass(frozen=True)
class Area:
    """Requests of one kind."""

    name: str
    covers: str
    """What is compared, as the summary shows it."""
    generator: Generator
    controllers: bool = False
    """The garbage collector and the namespace controller must run."""


AREAS = {
    area.name: area
    for area in (
        Area(
            "writes",
            "create, update, JSON, merge and strategic patches, delete of each namespaced kind",
            writes,
        ),
        Area("apply", "server-side apply by several managers, conflicts, force, mixed with updates", applies),
        Area("dryrun", "dry runs of all writes, and what they leave behind", dry_runs),
        Area("fields", "unknown, repeated and misspelled fields under each fieldValidation", fields),
        Area(
            "objects",
            "objects of each kind with a wrong part, from recorded cases and OpenAPI schemas",
            objects,
        ),
        Area("recorded", "objects of the recorded cases, of which earlier releases refuse others", recorded),
        Area(
            "rbac",
            "roles, bindings, requests as users, access and rules reviews, escalation and bind",
            rights,
        ),
        Area(
            "reads", "lists, selectors, pages under writes, tables, watches, initial events, bookmarks", reads
        ),
        Area(
            "garbage",
            "graphs of owners deleted in each way, finalizers, blocking owners",
            garbage,
            controllers=True,
        ),
        Area(
            "webhooks",
            "rules, selectors, conditions, failures, reinvocation, dry runs, bad responses",
            webhooks,
        ),
        Area(
            "policies",
            "validating and mutating policies, parameters, variables, messages, bindings",
            policies,
        ),
        Area(
            "definitions",
            "structural schemas, defaults, pruning, CEL rules, objects of these kinds",
            definitions,
        ),
        Area(
            "versions",
            "served and storage versions, conversion webhooks, bad responses, storedVersions",
            versions,
        ),
    )
}
