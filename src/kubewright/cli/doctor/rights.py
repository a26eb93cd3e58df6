"""Checks of the user's permissions, in the operator's namespaces or cluster-wide."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from kubewright.api import PolicyRule, Right, kind_of
from kubewright.api.builtin import authorization_v1
from kubewright.cli.doctor.finding import Finding, doubtful, well
from kubewright.client import Client
from kubewright.controller import Operator

EVERYWHERE = frozenset({""})
_GroupResource = tuple[str, str]


class Question(NamedTuple):
    """One permission; an empty namespace means all namespaces."""

    verb: str
    group: str
    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        what = f"{self.verb} {'.'.join(filter(None, (self.resource, self.group)))}"
        return f"{what} in {self.namespace}" if self.namespace else what


def namespaces_of(
    operator: Operator, namespaces: Sequence[str] = ()
) -> Mapping[_GroupResource, Collection[str]]:
    """Return the namespaces in which an operator uses each kind: those given, or those of its selectors."""
    found: defaultdict[_GroupResource, set[str]] = defaultdict(set)
    for controller in operator.controllers:
        own = kind_of(controller.kind)
        home = controller.selector.namespace
        met = [(own, home)]
        met += [(kind_of(child.kind), child.selector.namespace or home) for child in controller.owns]
        met += [(kind_of(other.kind), other.selector.namespace) for other in controller.watches]
        met += [(need.kind, home) for need in controller.needs]
        for kind, namespace in met:
            watched = namespaces if namespaces and not namespace else (namespace,)
            found[kind.group, kind.plural].update(watched if kind.namespaced else EVERYWHERE)
        found["events.k8s.io", "events"].update(namespaces or (home,) if own.namespaced else EVERYWHERE)
    return found


def questions(
    rules: Iterable[PolicyRule], places: Mapping[_GroupResource, Collection[str]] | None = None
) -> Iterator[Question]:
    """Split rules into single permissions, each with the namespaces where it is used."""
    for rule in rules:
        (group,), name = rule.api_groups, (*rule.resource_names, "")[0]
        for resource in rule.resources:
            there = (places or {}).get((group, resource.partition("/")[0])) or EVERYWHERE
            for verb in rule.verbs:
                for namespace in EVERYWHERE if "" in there else sorted(there):
                    yield Question(verb, group, resource, namespace, name)


async def check_rights(client: Client, check: str, questions: Iterable[Question], remedy: str) -> Finding:
    """Check each permission with a SelfSubjectAccessReview."""
    required = list(questions)
    missing = [str(question) for question in required if not await _may(client, question)]
    if not missing:
        # Counted as `kubewright rbac verify` does: once, even if it is needed in several namespaces.
        rights = {Right(question.group, question.resource, question.verb) for question in required}
        return well(check, f"all {len(rights)} rights are allowed")
    return doubtful(check, f"not allowed: {', '.join(missing)}", f"{remedy}, or use another context")


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
