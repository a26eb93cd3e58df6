"""An operator with everything that faults can hurt, the changes that people make meanwhile, and what must hold.

Crates have a keyed list, a finalizer, an account in an external system and a child with a finalizer. Depots belong to
the cluster and have a child in each of several namespaces, one of which comes and goes. Both run with webhooks, on two
replicas with one lease.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import Annotated, Any

import kubewright as kw
from kubewright.api import ApiError, ConnectionFailed, JsonObject, kind_of
from kubewright.api.builtin import core_v1
from kubewright.controller import Controller, owned
from kubewright.testing import Simulation, World, Write, nothing_doubled, one_controller, truthful_generation

GROUP = "chaos.example.com"
NAMESPACES = ("east", "west")
NAMES = ("a", "b", "c")
LINES = ("top", "middle", "bottom")
TOO_LARGE = 20
_ATTEMPTS = 100


class Line(kw.Model):
    name: str
    text: str = ""


class CrateSpec(kw.Model):
    size: int = 1
    label: str | None = None
    lines: Annotated[list[Line], kw.Field(list_type="map", list_keys=("name",))] = []


class CrateStatus(kw.Model):
    ready: int = 0
    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=("type",))] = []


class Crate(kw.Resource[CrateSpec, CrateStatus], group=GROUP, version="v1"):
    """Has a paper in its own namespace, and an account."""


class DepotSpec(kw.Model):
    text: str = ""
    namespaces: Annotated[list[str], kw.Field(list_type="set")] = []

    def __post_init__(self) -> None:
        assert self.text != "poison", "a depot that its own class does not accept"


class DepotStatus(kw.Model):
    conditions: Annotated[list[kw.Condition], kw.Field(list_type="map", list_keys=("type",))] = []


class Depot(kw.Resource[DepotSpec, DepotStatus], group=GROUP, version="v1", scope="Cluster"):
    """Has a paper in several namespaces."""


class Paper(kw.Object, group=GROUP, version="v1"):
    """Is a child."""

    text: str = ""
    number: int | None = None
    lines: Annotated[list[Line], kw.Field(list_type="map", list_keys=("name",))] = []


class Accounts:
    """An external system that outlives every replica: one account for each crate, which is opened once."""

    def __init__(self) -> None:
        self.may_reopen = False
        self.open: dict[str, str] = {}
        self.opened: list[str] = []

    def ensure(self, uid: str, name: str) -> None:
        """Open an account unless it is there."""
        if uid not in self.open:
            assert self.may_reopen or uid not in self.opened, (
                f"the account of {name} was closed and opened again"
            )
            self.opened.append(uid)
            self.open[uid] = name

    def close(self, uid: str) -> None:
        """Close an account if it is there."""
        self.open.pop(uid, None)


def make_operator(accounts: Accounts) -> kw.Operator:
    """Make the operator; nothing of it is shared between replicas but the external system."""

    class Crates:
        async def reconcile(self, crate: Crate, ctx: kw.Context) -> None:
            accounts.ensure(crate.metadata.uid, crate.metadata.name)
            paper = Paper(
                kw.Meta(crate.metadata.name), text=f"size {crate.spec.size}", lines=list(crate.spec.lines)
            )
            await ctx.apply(paper)
            done = kw.Condition(type="Ready", status="True", reason="Written")
            await ctx.patch_status(crate, CrateStatus(ready=crate.spec.size, conditions=[done]))

        async def finalize(self, crate: Crate, ctx: kw.Context) -> None:
            accounts.close(crate.metadata.uid)

    async def reconcile_depot(depot: Depot, ctx: kw.Context) -> None:
        for namespace in depot.spec.namespaces:
            meta = kw.Meta(f"depot-{depot.metadata.name}", namespace=namespace)
            await ctx.apply(Paper(meta, text=depot.spec.text))
        done = kw.Condition(type="Ready", status="True", reason="Written")
        await ctx.patch_status(depot, DepotStatus(conditions=[done]))

    @kw.admission.mutating_webhook(Crate)
    def labelled(crate: Crate) -> None:
        if crate.spec.label is None:
            crate.spec.label = crate.metadata.name

    @kw.admission.validating_webhook(Crate)
    def small_enough(crate: Crate) -> Iterator[kw.admission.Problem]:
        if crate.spec.size > TOO_LARGE:
            yield kw.admission.invalid("spec.size", crate.spec.size, "is too large")

    crates = Controller(
        Crate, Crates(), finalizer=f"{GROUP}/account", owns=[owned(Paper, finalizer=f"{GROUP}/paper")]
    )
    depots = Controller(Depot, reconcile_depot, owns=[Paper])
    return kw.Operator(crates, depots, webhooks=[labelled, small_enough], name="chaos")


class Changes:
    """What people do meanwhile, drawn from the seed; what the API server refuses is left undone."""

    def __init__(self, sim: Simulation) -> None:
        self._sim = sim
        self._chance = sim.chance

    async def make(self) -> None:
        """Make one change."""
        changes: list[Callable[[], Awaitable[object]]] = [
            self._put_crate,
            self._put_crate,
            self._put_depot,
            self._scribble,
            self._delete_one,
            self._delete_paper,
            self._toggle_namespace,
            self._poison,
        ]
        await self.attempt(self._chance.choice(changes))

    async def attempt(self, change: Callable[[], Awaitable[object]]) -> None:
        """Make a change that may be refused."""
        try:
            await change()
        except (ApiError, ConnectionFailed) as error:
            self._sim.change(f"refused: {error}")

    async def _insist(self, change: Callable[[], Awaitable[object]]) -> None:
        """Make a change, however often it takes: webhooks may not answer yet."""
        for _ in range(_ATTEMPTS):
            try:
                await change()
                return
            except (ApiError, ConnectionFailed):
                await asyncio.sleep(10)
        await change()

    async def _put_crate(self) -> None:
        chance = self._chance
        namespace, name = chance.choice(NAMESPACES), chance.choice(NAMES)
        lines = [{"name": line, "text": str(chance.randint(0, 2))} for line in LINES]
        chance.shuffle(lines)
        spec = {"size": chance.choice([0, 1, 2, 7, 99]), "lines": lines[: chance.randint(0, 3)]}
        await self._put(Crate, name, namespace, spec)

    async def _put_depot(self) -> None:
        chance = self._chance
        chosen = chance.sample(NAMESPACES, chance.randint(0, len(NAMESPACES)))
        await self._put(
            Depot, chance.choice(NAMES), "", {"text": str(chance.randint(0, 9)), "namespaces": chosen}
        )

    async def _poison(self) -> None:
        await self._put(Depot, "poison", "", {"text": self._chance.choice(["poison", "cured"])})

    async def _put(self, kind: Any, name: str, namespace: str, spec: JsonObject) -> None:
        """Create an object, or change it."""
        described = kind_of(kind)
        self._sim.change(f"{described.kind} {namespace}/{name} {spec}")
        if self._sim.world.find(kind, name, namespace) is not None:
            await self._sim.client.patch(described, {"spec": spec}, name=name, namespace=namespace)
            return
        metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
        document = {
            "apiVersion": described.api_version,
            "kind": described.kind,
            "metadata": metadata,
            "spec": spec,
        }
        await self._sim.client.create(document, kind=described)

    async def _scribble(self) -> None:
        if found := self._any(Paper):
            name, namespace = found["metadata"]["name"], found["metadata"]["namespace"]
            self._sim.change(f"scribble on {namespace}/{name}")
            others = [line for line in _items(found, "lines") if line["name"] != "scribble"]
            lines = [{"name": "scribble", "text": "x"}, *reversed(others)]
            patch = {"text": "scribbled", "number": 7, "lines": lines}
            await self._sim.client.patch(kind_of(Paper), patch, name=name, namespace=namespace)

    async def _delete_one(self) -> None:
        if found := self._any(self._chance.choice([Crate, Depot])):
            await self._delete(found)

    async def _delete_paper(self) -> None:
        if found := self._any(Paper):
            await self._delete(found)

    async def _delete(self, found: JsonObject) -> None:
        name, namespace = found["metadata"]["name"], found["metadata"].get("namespace", "")
        self._sim.change(f"delete {found['kind']} {namespace}/{name}")
        kind = {"Crate": Crate, "Depot": Depot, "Paper": Paper}[found["kind"]]
        await self._sim.client.delete(kind_of(kind), name, namespace)

    async def _toggle_namespace(self) -> None:
        if self._sim.world.find(core_v1.Namespace, "west") is None:
            self._sim.change("create namespace west")
            await self._sim.client.create(core_v1.Namespace(kw.Meta("west")))
        else:
            self._sim.change("delete namespace west")
            await self._sim.client.delete(core_v1.Namespace, "west")

    def _any(self, kind: Any) -> JsonObject | None:
        found = self._sim.world.objects(kind)
        return self._chance.choice(found) if found else None

    async def finish(self) -> None:
        """Bring everything into a state in which all can be done: nothing invalid, and all namespaces."""
        sim = self._sim
        for crate in sim.world.objects(Crate):
            # It came while no webhook was asked; now each write to it is refused.
            if crate["spec"].get("size", 1) > TOO_LARGE:
                name, namespace = crate["metadata"]["name"], crate["metadata"]["namespace"]
                await self._insist(partial(self._put, Crate, name, namespace, {"size": 1}))
        if sim.world.find(Depot, "poison") is not None:
            await self._insist(partial(sim.client.delete, kind_of(Depot), "poison"))
        west = sim.world.find(core_v1.Namespace, "west")
        if west is not None and "deletionTimestamp" in west["metadata"]:
            await sim.until(
                lambda: sim.world.find(core_v1.Namespace, "west") is None, "namespace west goes", within=4000
            )
            west = None
        if west is None:
            await sim.client.create(core_v1.Namespace(kw.Meta("west")))


def watch_over(sim: Simulation) -> None:
    """Check after each write what must hold at every moment."""
    papers, crates = f"papers.{GROUP}", f"crates.{GROUP}"
    for check in (truthful_generation, one_controller, nothing_doubled({papers: len(NAMESPACES)})):
        sim.invariant(check)

    @sim.invariant
    def ready_is_true_of_its_generation(world: World, write: Write) -> None:
        if write.resource != crates or write.after is None or write.writer not in world.operators:
            return
        status = _part(write.after, "status")
        for condition in _items(status, "conditions"):
            spec = world.spec_at(write.after["metadata"]["uid"], condition["observedGeneration"])
            assert status["ready"] == spec["size"], (
                f"crate {write.key} is ready with {status['ready']} at generation "
                f"{condition['observedGeneration']}, whose size is {spec['size']}"
            )

    def only_the_leader_writes(process: str, info: Any) -> None:
        if process not in sim.world.operators or info.verb not in ("patch", "delete", "create"):
            return
        if info.group != GROUP:
            return
        holder = lease_holder(sim.world)
        if holder and holder != process:
            sim.loop.abort(AssertionError(f"{process} writes {info.path} while {holder} leads"))

    sim.network.on_request.append(only_the_leader_writes)


def lease_holder(world: World) -> str:
    """Return the replica that holds the lease, empty if none does."""
    lease = world.find("leases.coordination.k8s.io", "chaos")
    holder: str = (lease["spec"].get("holderIdentity") or "") if lease is not None else ""
    return holder.partition("_")[0]


def wrongs(world: World, accounts: Accounts) -> list[str]:
    """Return the differences from the desired state; empty if there are none."""
    found: list[str] = []
    crates, depots = world.objects(Crate), world.objects(Depot)
    for crate in crates:
        meta, spec, status = crate["metadata"], crate["spec"], _part(crate, "status")
        about = f"crate {meta['namespace']}/{meta['name']}"
        paper = world.find(Paper, meta["name"], meta["namespace"])
        if "deletionTimestamp" in meta:
            found.append(f"{about} is still there")
        elif paper is None or "deletionTimestamp" in paper["metadata"]:
            found.append(f"{about} has no paper")
        else:
            found += _wrong_paper(
                about, paper, f"size {spec.get('size', 1)}", spec.get("lines") or [], meta["uid"]
            )
        if status.get("ready", 0) != spec.get("size", 1):
            found.append(f"{about} is ready with {status.get('ready')}, not {spec.get('size', 1)}")
        found += _wrong_generation(about, crate)
    for depot in depots:
        about = f"depot {depot['metadata']['name']}"
        for namespace in depot["spec"].get("namespaces") or ():
            paper = world.find(Paper, f"depot-{depot['metadata']['name']}", namespace)
            if paper is None or "deletionTimestamp" in paper["metadata"]:
                found.append(f"{about} has no paper in {namespace}")
            else:
                uid = depot["metadata"]["uid"]
                found += _wrong_paper(about, paper, depot["spec"].get("text", ""), [], uid)
        found += _wrong_generation(about, depot)
    owners = {item["metadata"]["uid"] for item in (*crates, *depots)}
    for paper in world.objects(Paper):
        if not any(owner["uid"] in owners for owner in paper["metadata"].get("ownerReferences") or ()):
            found.append(f"paper {paper['metadata']['namespace']}/{paper['metadata']['name']} has no owner")
    expected = {crate["metadata"]["uid"]: crate["metadata"]["name"] for crate in crates}
    if accounts.open != expected:
        found.append(f"accounts are {accounts.open}, not {expected}")
    return found


def _wrong_paper(about: str, paper: JsonObject, text: str, lines: list[JsonObject], uid: str) -> list[str]:
    found: list[str] = []
    if paper.get("text", "") != text:
        found.append(f"{about}: its paper says {paper.get('text')!r}, not {text!r}")
    # The scribbled line belongs to another manager, which an apply leaves alone.
    own = [line for line in _items(paper, "lines") if line["name"] != "scribble"]
    if own != lines:
        found.append(f"{about}: the lines of its paper are {own}, not {lines}")
    owners = [owner["uid"] for owner in paper["metadata"].get("ownerReferences") or ()]
    if owners != [uid]:
        found.append(f"{about}: its paper belongs to {owners}")
    return found


def _wrong_generation(about: str, obj: JsonObject) -> list[str]:
    seen = [condition["observedGeneration"] for condition in _items(_part(obj, "status"), "conditions")]
    generation = obj["metadata"]["generation"]
    return [] if seen == [generation] else [f"{about}: generation {generation} is observed as {seen}"]


def _part(obj: JsonObject, name: str) -> JsonObject:
    found: JsonObject | None = obj.get(name)
    return found or {}


def _items(obj: JsonObject, name: str) -> list[JsonObject]:
    found: list[JsonObject] | None = obj.get(name)
    return found or []
