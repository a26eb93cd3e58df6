"""What a control plane does for nodes: it tells that it knows them, and how long they may keep what they read."""

from kubewright.api.builtin import core_v1
from kubewright.controller import Change, Context, Controller, Options, Result, needs

NAME = "node-controller"
TTL = "node.alpha.kubernetes.io/ttl"
_STEPS = ((100, 0), (500, 15), (1000, 30), (2000, 60))
_LONGEST = 300


def seconds_to_keep(nodes: int) -> int:
    """Give for how long kubelets may keep Secrets and ConfigMaps: the more of them ask, the longer."""
    return next((seconds for most, seconds in _STEPS if nodes <= most), _LONGEST)


class NodeCare:
    """Look after the nodes that there are."""

    def __init__(self) -> None:
        self._known: set[str] = set()

    def concerns(self, change: Change[core_v1.Node]) -> bool:
        """Predicate: pass nodes that come, and those whose annotation somebody took; forget those that go."""
        if change.after is None:
            if change.before is not None:
                self._known.discard(change.before.meta.uid)
            return False
        return change.before is None or change.before.meta.annotations != change.after.meta.annotations

    async def reconcile(self, node: core_v1.Node, ctx: Context) -> Result | None:
        """Tell of a node that is new here, and write down for how long it may keep what it reads."""
        name = node.metadata.name
        if node.metadata.uid not in self._known:
            self._known.add(node.metadata.uid)
            ctx.event("RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
        wanted = str(seconds_to_keep(len(await ctx.list(core_v1.Node))))
        if node.metadata.annotations.get(TTL) != wanted:
            await ctx.patch(node, {"metadata": {"annotations": {TTL: wanted}}})
        return None


def controller() -> Controller[core_v1.Node]:
    """Declare the controller."""
    care = NodeCare()
    return Controller(
        core_v1.Node,
        care,
        name=NAME,
        when=care.concerns,
        needs=[needs(core_v1.Node, "patch")],
        options=Options(reporter=NAME),
    )
