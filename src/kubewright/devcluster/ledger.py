"""Who runs where: the scheduler's own account, so that placing a Pod does not mean reading all the others."""

from collections import defaultdict

from kubewright.api import Quantity
from kubewright.api.builtin import core_v1
from kubewright.controller import Change
from kubewright.devcluster.nodes import Place, Tenant

_ZERO = Quantity("0")


class Ledger:
    """Keep, per node, its Pods and what they use; a Pod counts from the moment it is placed."""

    def __init__(self) -> None:
        self._tenants: defaultdict[str, dict[str, Tenant]] = defaultdict(dict)
        self._homes: dict[str, str] = {}
        self._used: defaultdict[str, dict[str, Quantity]] = defaultdict(dict)

    def observe(self, change: Change[core_v1.Pod]) -> None:
        """Take in what happened to a Pod."""
        old, new = change.before, change.new
        if old is not None and (new is None or new.metadata.uid != old.meta.uid):
            self.remove(old.meta.uid)
        if new is None:
            return
        if new.status.phase in ("Succeeded", "Failed"):
            self.remove(new.metadata.uid)
        elif new.spec.node_name:
            self.put(Tenant.of(new))

    def put(self, tenant: Tenant) -> None:
        """Count a Pod at its node, once."""
        home = self._tenants[tenant.node]
        if home.get(tenant.uid) == tenant:
            return
        self.remove(tenant.uid)
        home[tenant.uid] = tenant
        self._homes[tenant.uid] = tenant.node
        used = self._used[tenant.node]
        for name, amount in tenant.requests.items():
            used[name] = used.get(name, _ZERO) + amount

    def remove(self, uid: str) -> None:
        """Count a Pod no longer."""
        node = self._homes.pop(uid, None)
        if node is None:
            return
        tenant = self._tenants[node].pop(uid)
        used = self._used[node]
        for name, amount in tenant.requests.items():
            used[name] = used[name] - amount

    def place(self, node: core_v1.Node) -> Place:
        """Give a node with the Pods on it."""
        name = node.metadata.name
        return Place(node, self._tenants[name].values(), self._used[name])
