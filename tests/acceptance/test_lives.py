"""COM 3 and 4: what a whole life of its objects asks of the API server, no more and nothing else."""

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path

from acceptance_gateway import Exchange, Gateway, Right
from acceptance_samples import Sample
from acceptance_stories import STORIES, Stage

from kubewright.controller import Operator, rules_for
from kubewright.testing import Cluster, eventually
from kubewright.webhook import registration_rules, webhook_rules

QUIET = 0.3
COMPANIONS = {"get": "watch", "list": "watch", "create": "patch"}
"""Where a server cannot stream, a cache lists what it watches; an apply that makes an object takes both rights."""
SPARED = ("events", "leases", "tokenreviews", "subjectaccessreviews")


def rights_of(operator: Operator) -> set[Right]:
    """List the rights of an operator's own roles that it must make use of."""
    # The Secret of the webhooks' certificates is for replicas inside a cluster: one beside it needs none.
    rules = [
        *rules_for(operator),
        *webhook_rules(operator.name, operator.webhooks),
        *registration_rules(operator.name, operator.webhooks),
    ]
    return {
        Right(group, resource, verb)
        for rule in rules
        for group in rule.api_groups
        for resource in rule.resources
        for verb in rule.verbs
        if resource not in SPARED and not resource.endswith("/finalizers")
    }


def budget(sample: Sample) -> dict[str, tuple[int, int]]:
    """Read the table of costs in a sample's README: reads and writes by step."""
    text = (sample.target / "README.md").read_text()
    rows = re.findall(r"^\| ([^|]+?) \| (\d+) \| (\d+) \|$", text, re.MULTILINE)
    return {step: (int(reads), int(writes)) for step, reads, writes in rows}


def cost(exchanges: Sequence[Exchange]) -> tuple[int, int]:
    """Count reads and writes; a watch that begins is no read of objects."""
    reads = [found for found in exchanges if found.method == "GET" and not found.watch and found.right]
    return len(reads), sum(found.is_write for found in exchanges)


async def quiet(gateway: Gateway) -> None:
    """Wait until nothing is asked for any more."""

    async def is_quiet() -> bool:
        before = len(gateway.exchanges)
        await asyncio.sleep(QUIET)
        return len(gateway.exchanges) == before

    await eventually(is_quiet)


async def test_a_life_cycle_uses_every_rule_and_costs_the_requests_of_the_readme(
    sample: Sample, cluster: Cluster, tmp_path: Path
) -> None:
    costs: dict[str, tuple[int, int]] = {}
    async with Gateway.to(cluster.config) as gateway:
        operator = sample.operator()
        async with gateway.seen_from(cluster).running(operator):
            stage = Stage(sample, cluster, tmp_path / "vcenter.json")
            for step in STORIES[sample.name]:
                await quiet(gateway)
                before = len(gateway.exchanges)
                await step.play(stage)
                await quiet(gateway)
                costs[step.title] = cost(gateway.exchanges[before:])
        rights = {found.right for found in gateway.exchanges if found.right is not None}
    assert gateway.forbidden() == []
    assert unused(operator, rights) == set()
    allowed = budget(sample)
    assert list(allowed) == list(costs), costs
    over = {
        step: seen for step, seen in costs.items() if seen[0] > allowed[step][0] or seen[1] > allowed[step][1]
    }
    assert over == {}, costs


def unused(operator: Operator, used: set[Right]) -> set[Right]:
    """List what a role allows in vain; what goes with a used verb is not in vain."""
    return {
        right
        for right in rights_of(operator) - used
        if right.verb not in COMPANIONS or right._replace(verb=COMPANIONS[right.verb]) not in used
    }
