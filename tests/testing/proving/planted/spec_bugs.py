"""Small operators with one bug each that only some specs show; `prove --only specs` must find each.

Each function returns a new operator; its docstring says what is wrong. `SPEC_BUGS` lists them with the properties that
may fail and how many steps the smallest sequence has. The bugs are of the kinds that the paper on Acto lists.
"""

from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

import kubewright as kw
from kubewright.api.builtin import apps_v1, core_v1, meta_v1

from .operators import Planted

SAMPLE: dict[str, Any] = {
    "apiVersion": "planted.example.com/v1",
    "kind": "Shop",
    "metadata": {"name": "corner"},
    "spec": {
        "replicas": 2,
        "port": 80,
        "title": "bakery",
        "owner": "ann",
        "goods": ["bread", "milk"],
        "tags": {"color": "red"},
        "opening": {"from": 8, "until": 18},
    },
}


class Opening(kw.Model):
    begin: Annotated[int, kw.Field(name="from", ge=0, le=24)] = 8
    until: Annotated[int, kw.Field(ge=0, le=24)] = 18


class ShopSpec(kw.Model):
    replicas: Annotated[int, kw.Field(ge=0)] = 1
    port: int = 80
    title: str = "shop"
    owner: str | None = None
    goods: list[str] = []
    tags: dict[str, str] = {}
    opening: Opening | None = None


class ShopStatus(kw.Model):
    goods: int = 0
    conditions: list[kw.Condition] = []


class Shop(kw.Resource[ShopSpec, ShopStatus], group="planted.example.com", version="v1"):
    """Sells something."""


class SpecBug(NamedTuple):
    """A planted bug."""

    make: Planted
    properties: frozenset[str]
    steps: int
    advice: str


SPEC_BUGS: dict[str, SpecBug] = {}
READY = kw.Condition(type="Ready", status="True", reason="Open")


def found_in_specs(*properties: str, steps: int, advice: str = "") -> Callable[[Planted], Planted]:
    """List an operator with the properties that may fail, and a part of what is suggested."""

    def add(make: Planted) -> Planted:
        SPEC_BUGS[make.__name__] = SpecBug(make, frozenset(properties), steps, advice)
        return make

    return add


def operator_of(reconcile: Any, **options: Any) -> kw.Operator:
    needs = [kw.needs(core_v1.ConfigMap, "get", "list", "create", "update", "patch", "delete")]
    controller = kw.Controller(
        Shop, reconcile, name="shops", owns=[core_v1.ConfigMap], needs=needs, **options
    )
    return kw.Operator(controller, name="shops")


def sign(shop: Shop, **data: str) -> core_v1.ConfigMap:
    spec = shop.spec
    everything = {
        "replicas": str(spec.replicas),
        "port": str(spec.port),
        "title": spec.title,
        "owner": spec.owner or "",
        "goods": ",".join(spec.goods),
        "tags": ",".join(f"{name}={value}" for name, value in sorted(spec.tags.items())),
        "opening": "" if spec.opening is None else f"{spec.opening.begin}-{spec.opening.until}",
    }
    return core_v1.ConfigMap(kw.Meta(shop.metadata.name), data={**everything, **data})


def correct() -> kw.Operator:
    """Apply one child with everything that the spec says."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(sign(shop))
        await ctx.patch_status(shop, ShopStatus(goods=len(shop.spec.goods), conditions=[READY]))

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def removed_field_stays_in_the_child() -> kw.Operator:
    """Patch the child with the fields that are set; one that is removed from the spec stays in the child."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(core_v1.ConfigMap(kw.Meta(shop.metadata.name), data={"title": shop.spec.title}))
        if shop.spec.owner:
            patch = {"data": {"owner": shop.spec.owner}}
            await ctx.client.patch(
                core_v1.ConfigMap, patch, name=shop.metadata.name, namespace=shop.metadata.namespace
            )

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def scale_to_zero_ignored() -> kw.Operator:
    """Take 0 replicas for an unset value, and leave the child as it is."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        if shop.spec.replicas:
            await ctx.apply(sign(shop))

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def child_created_and_never_updated() -> kw.Operator:
    """Create the child if it does not exist, and do nothing else."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        if await ctx.find(core_v1.ConfigMap, shop.metadata.name) is None:
            await ctx.apply(sign(shop))

    return operator_of(reconcile)


@found_in_specs("settles", steps=2, advice="immutable")
def immutable_selector_changed() -> kw.Operator:
    """Derive the selector of a Deployment from the spec; the API server refuses its change for ever."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        labels = {"shop": shop.metadata.name, "port": str(shop.spec.port)}
        pods = core_v1.PodSpec(containers=[core_v1.Container(name="till", image="till")])
        await ctx.apply(
            apps_v1.Deployment(
                kw.Meta(shop.metadata.name),
                spec=apps_v1.DeploymentSpec(
                    replicas=shop.spec.replicas,
                    selector=meta_v1.LabelSelector(match_labels=labels),
                    template=core_v1.PodTemplateSpec(metadata=kw.Meta(labels=labels), spec=pods),
                ),
            )
        )

    controller = kw.Controller(Shop, reconcile, name="shops", owns=[apps_v1.Deployment])
    return kw.Operator(controller, name="shops")


@found_in_specs("healthy", steps=1, advice="spec.goods")
def empty_list_crashes() -> kw.Operator:
    """Take the first element of a list that may be empty."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(sign(shop, first=shop.spec.goods[0]))

    return operator_of(reconcile)


@found_in_specs("valid-specs", steps=1, advice="spec.title")
def text_in_the_name_of_a_child() -> kw.Operator:
    """Name a child after a text that may have any characters and any length."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(core_v1.ConfigMap(kw.Meta(f"{shop.metadata.name}-{shop.spec.title}")))
        for child in await ctx.list(core_v1.ConfigMap):
            if child.metadata.name.startswith("corner-") and not child.metadata.name.endswith(
                shop.spec.title
            ):
                await ctx.delete(child)

    return operator_of(reconcile)


@found_in_specs("valid-specs", steps=1, advice="spec.port")
def port_not_validated() -> kw.Operator:
    """Use a number as the port of a Service; the CRD allows numbers that are no ports."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        port = core_v1.ServicePort(name="till", port=shop.spec.port)
        await ctx.apply(core_v1.Service(kw.Meta(shop.metadata.name), spec=core_v1.ServiceSpec(ports=[port])))

    controller = kw.Controller(Shop, reconcile, name="shops", owns=[core_v1.Service])
    return kw.Operator(controller, name="shops")


@found_in_specs("healthy", steps=1, advice="spec.opening")
def two_fields_contradict_each_other() -> kw.Operator:
    """Expect that one number is less than another, which the CRD does not say."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        opening = shop.spec.opening
        hours = 0 if opening is None else opening.until - opening.begin
        if hours < 0:
            raise ValueError("a shop cannot close before it opens")
        await ctx.apply(sign(shop, hours=str(hours)))

    return operator_of(reconcile)


@found_in_specs("truthful-status", "same-final-state", steps=2)
def status_says_ready_and_a_restart_writes() -> kw.Operator:
    """Skip the work if the object is Ready and its replicas are as remembered: other changes wait for a restart."""
    seen: dict[str, int] = {}

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        if shop.status.conditions and seen.get(shop.metadata.uid) == shop.spec.replicas:
            return
        seen[shop.metadata.uid] = shop.spec.replicas
        await ctx.apply(sign(shop))
        await ctx.patch_status(shop, ShopStatus(conditions=[READY]))

    return operator_of(reconcile)


@found_in_specs("truthful-status", steps=1)
def status_says_ready_while_the_work_fails() -> kw.Operator:
    """Report Ready, and then wait for an owner that never comes."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(sign(shop))
        await ctx.patch_status(shop, ShopStatus(conditions=[READY]))
        if shop.spec.owner is None:
            raise kw.RetryLater("an owner is needed", after=60)

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def children_of_removed_elements_stay() -> kw.Operator:
    """Create a child for each element of a list, and delete none."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        for number, good in enumerate(shop.spec.goods):
            name = f"{shop.metadata.name}-{number}"
            await ctx.apply(core_v1.ConfigMap(kw.Meta(name), data={"good": good}))

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def edited_child_is_not_restored() -> kw.Operator:
    """Compare only the part of the child that is expected to change."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        wanted = sign(shop, opened="yes")
        found = await ctx.find(core_v1.ConfigMap, shop.metadata.name)
        if found is None or {**found.data, "opened": "yes"} != wanted.data:
            await ctx.apply(wanted)

    return operator_of(reconcile)


@found_in_specs("same-final-state", steps=2)
def deleted_child_is_not_created_again() -> kw.Operator:
    """Remember in the status that the child exists."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        found = await ctx.find(core_v1.ConfigMap, shop.metadata.name)
        if shop.status.goods == 0:
            await ctx.apply(sign(shop))
            await ctx.patch_status(shop, ShopStatus(goods=1))
        elif found is not None and found.data != sign(shop).data:
            await ctx.apply(sign(shop))

    return operator_of(reconcile)


@found_in_specs("settles", "healthy", steps=1)
def spec_that_never_settles() -> kw.Operator:
    """Toggle between two states if a list has duplicates."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        goods = shop.spec.goods
        if len(set(goods)) < len(goods):
            await ctx.patch_status(shop, ShopStatus(goods=shop.status.goods + 1))
        await ctx.apply(sign(shop))

    return operator_of(reconcile)


def field_without_effect() -> kw.Operator:
    """Ignore the owner."""

    async def reconcile(shop: Shop, ctx: kw.Context) -> None:
        await ctx.apply(sign(shop, owner=""))

    return operator_of(reconcile)
