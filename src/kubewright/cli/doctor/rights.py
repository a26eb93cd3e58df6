"""May you do what an operator does? Asked where it does it: in its namespaces, or in the whole cluster."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kubewright.api import PolicyRule, kind_of
from kubewright.api.builtin import authorization_v1
from kubewright.cli.doctor.finding import Finding, doubtful, well
from kubewright.client import Client
from kubewright.controller import Operator

EVERYWHERE = frozenset({""})
Resource = tuple[str, str]


class Question(NamedTuple):
    """One right; no namespace stands for all of them."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        what = f"{self.verb} {'.'.join(filter(None, (self.resource, self.group)))}"
        return f"{what} in {self.namespace}" if self.namespace else what


def places_of(operator: Operator, namespaces: Sequence[str] = ()) -> Mapping[Resource, Collection[str]]:
    """Say in which namespaces an operator meets each kind: those it is run for, or those its scopes name."""
    found: defaultdict[Resource, set[str]] = defaultdict(set)
    for controller in operator.controllers:
        own = kind_of(controller.kind)
        home = controller.selector.namespace
        met = [(own, home)]
        met += [(kind_of(child.kind), child.selector.namespace or home) for child in controller.owns]
        met += [(kind_of(other.kind), other.selector.namespace) for other in controller.watches]
        met += [(need.kind, home) for need in controller.needs]
        for kind, namespace in met:
            wanted = namespaces if namespaces and not namespace else (namespace,)
            found[kind.group, kind.plural].update(wanted if kind.namespaced else EVERYWHERE)
        found["events.k8s.io", "events"].update(namespaces or (home,) if own.namespaced else EVERYWHERE)
    return found


def questions(
    rules: Iterable[PolicyRule], places: Mapping[Resource, Collection[str]] | None = None
) -> Iterator[Question]:
    """Take rules apart into single rights, each where it is used."""
    for rule in rules:
        (group,), name = rule.api_groups, (*rule.resource_names, "")[0]
        for resource in rule.resources:
            there = (places or {}).get((group, resource.partition("/")[0])) or EVERYWHERE
            for verb in rule.verbs:
                for namespace in EVERYWHERE if "" in there else sorted(there):
                    yield Question(verb, group, resource, namespace, name)


async def check_rights(client: Client, check: str, asked: Iterable[Question], remedy: str) -> Finding:
    """Ask the cluster for each right."""
    wanted = list(asked)
    missing = [str(question) for question in wanted if not await _may(client, question)]
    if not missing:
        return well(check, f"all {len(wanted)} of them")
    return doubtful(check, f"you may not {', '.join(missing)}", f"{remedy}, or take another context")


async def _may(client: Client, question: Question) -> bool:
    plain, _, subresource = question.resource.partition("/")
    attributes = authorization_v1.ResourceAttributes(
        group=question.group,
        resource=plain,
        subresource=subresource,
        verb=question.verb,
        namespace=question.namespace,
        name=question.name,
    )
    review = authorization_v1.SelfSubjectAccessReview(
        spec=authorization_v1.SelfSubjectAccessReviewSpec(resource_attributes=attributes)
    )
    return (await client.create(review)).status.allowed
