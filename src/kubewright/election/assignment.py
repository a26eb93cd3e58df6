"""Which replica takes and releases which shard: pure functions of the leases that were read.

Every replica computes the same assignment from the same leases, so two of them rarely try to take the same shard; if they
do, the server refuses one of the writes. Each free shard goes to the replica that holds the fewest. A replica gives shards
away only if the numbers differ by two or more, and only as many as needed: when a replica joins, floor(shards / replicas)
shards move; when one leaves, only its own; an even distribution never changes.
"""

import hashlib
import re
from collections.abc import Collection, Mapping, Sequence

import msgspec

from kubewright.api.sharding import Shards

_GROUP = "shards/"


class ShardNames(msgspec.Struct, frozen=True):
    """The names of the leases of one operator.

    The lease of the operator itself, whose holder without shards is the leader, is held by the division into shards
    instead, such as `shards/uid-8`. So a replica without shards, or with other shards, waits until it has expired. A
    shard's lease is named after its division and number. Each replica also has a lease, which shows that it is running.
    """

    operator: str
    shards: Shards

    @property
    def group(self) -> str:
        """Return the holder of the operator's lease for this division into shards."""
        return f"{_GROUP}{self.shards.name}"

    def shard(self, number: int) -> str:
        """Return the name of a shard's lease."""
        return f"{self.operator}-{self.shards.name}-{number}"

    def member(self, identity: str) -> str:
        """Return the name of a replica's lease."""
        digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
        return f"{self.operator}-member-{self.shards.name}-{digest}"

    @property
    def label(self) -> str:
        """Return the value of the label that all leases of shards and replicas carry."""
        if len(self.operator) <= 63:
            return self.operator
        return f"{self.operator[:46]}-{hashlib.sha256(self.operator.encode()).hexdigest()[:16]}"

    def shards_of_member(self, name: str) -> str | None:
        """Return the division into shards in the name of a replica's lease; None for another lease."""
        found = re.fullmatch(rf"{re.escape(self.operator)}-member-((?:uid|namespace)-\d+)-[0-9a-f]+", name)
        return found and found[1]


def shards_of_group(holder: str) -> str:
    """Return the division into shards that holds the operator's lease; None if a single leader holds it."""
    return holder.removeprefix(_GROUP) if holder.startswith(_GROUP) else ""


def preferred_shards(votes: Mapping[str, int], current: str) -> str:
    """Return the division that most replicas are configured with; in a tie the current one, else the first by name."""
    return min(votes, key=lambda name: (-votes[name], name != current, name))


class Moves(msgspec.Struct, frozen=True):
    """The free shards that a replica takes, and the shards that it gives away."""

    take: tuple[int, ...] = ()
    give: tuple[int, ...] = ()


def moves(holders: Mapping[int, str], members: Collection[str], me: str, mine: Sequence[int]) -> Moves:
    """Return the shards that this replica takes and gives away.

    `holders` has the replica that holds each shard, empty if the shard is free. `members` are the running replicas.
    `mine` are the shards of this replica: the last are given away first. Shards of a replica that is not in `members` are
    not taken until their leases expire.
    """
    counts = dict.fromkeys(sorted(members), 0)
    for holder in holders.values():
        if holder in counts:
            counts[holder] += 1
    if me not in counts:
        return Moves()

    def least() -> str:
        return min(counts, key=lambda member: (counts[member], member))

    take: list[int] = []
    for number in sorted(number for number, holder in holders.items() if not holder):
        receiver = least()
        counts[receiver] += 1
        if receiver == me:
            take.append(number)
    given = 0
    while True:
        giver, receiver = max(counts, key=lambda member: (counts[member], member)), least()
        if counts[giver] - counts[receiver] < 2:
            break
        counts[giver] -= 1
        counts[receiver] += 1
        given += giver == me
    return Moves(tuple(take), tuple(reversed(mine))[:given])
