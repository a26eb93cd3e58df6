"""What `prove` suggests for specs that an operator cannot carry out: by the field, the key or the type that is wrong."""

from collections.abc import Callable
from typing import Annotated, Any

import pytest

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.testing.proving import ApplySpec, Case, FoundViolation, Prover, SpecSequence


class StallSpec(kw.Model):
    place: Annotated[str, kw.Field(pattern="^[a-z]([-a-z0-9]*[a-z0-9])?$")] = "a"
    memory: str = "1Mi"
    pause: str = "1s"
    tags: dict[str, str] = {}


class Stall(kw.Resource[StallSpec, kw.Model], group="proving.example.com", version="v1"):
    """Sells something."""


SAMPLE = {
    "apiVersion": "proving.example.com/v1",
    "kind": "Stall",
    "metadata": {"name": "fruit"},
    "spec": {"place": "east"},
}
Reconcile = Callable[[Stall, kw.Context], Any]


def prover_of(reconcile: Reconcile) -> Prover:
    owns = [core_v1.ConfigMap, core_v1.Service]
    return Prover(
        lambda: kw.Operator(
            kw.Controller(
                Stall, reconcile, name="stalls", owns=owns, needs=[kw.needs(core_v1.Service, "delete")]
            ),
            name="stalls",
        ),
        [SAMPLE],
    )


async def service_named_after_a_text(stall: Stall, ctx: kw.Context) -> None:
    """Create a Service for the place; the services of earlier places are deleted."""
    name = f"stall-{stall.spec.place}"
    spec = core_v1.ServiceSpec(ports=[core_v1.ServicePort(port=80)])
    await ctx.apply(core_v1.Service(kw.Meta(name), spec=spec))
    for service in await ctx.list(core_v1.Service, namespace=stall.metadata.namespace):
        if service.metadata.name.startswith("stall-") and service.metadata.name != name:
            await ctx.delete(service)


def test_a_name_that_is_derived_from_a_text_with_a_pattern_is_found_to_become_too_long() -> None:
    prover = prover_of(service_named_after_a_text)
    [target] = prover.targets()
    places = [
        sequence.specs[-1].value.get("spec", {}).get("place", "") for sequence in target.single_changes()[:12]
    ]
    assert 64 in map(len, places)
    chosen = target.single_changes()[[len(place) for place in places].index(64)]
    found = prover.run(Case(sequence=chosen)).failure
    assert found is not None
    assert found.property.id == "valid-specs"
    assert "must be no more than 63 characters" in found.message
    # "stall-" and 57 characters are 63.
    assert prover.shrink(found, runs=40).advice.endswith("kw.Field(max_length=57)")


async def label(stall: Stall, ctx: kw.Context, **labels: str) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta(stall.metadata.name, labels=labels)))


async def keys_are_labels(stall: Stall, ctx: kw.Context) -> None:
    await label(stall, ctx, **dict.fromkeys(stall.spec.tags, "yes"))


async def values_are_labels(stall: Stall, ctx: kw.Context) -> None:
    values = stall.spec.tags.values()
    await label(stall, ctx, **{f"tag-{number}": value for number, value in enumerate(values)})


async def memory_is_a_quantity(stall: Stall, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta("m"), data={"memory": str(kw.Quantity(stall.spec.memory))}))


async def memory_is_a_request_of_a_claim(stall: Stall, ctx: kw.Context) -> None:
    # The API server is the first that parses it.
    quota = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "m"}}
    limit = {"type": "Container", "default": {"memory": stall.spec.memory}}
    await ctx.apply({**quota, "spec": {"limits": [limit]}})


async def pause_is_a_duration(stall: Stall, ctx: kw.Context) -> None:
    await ctx.apply(core_v1.ConfigMap(kw.Meta("m"), data={"pause": str(kw.Duration(stall.spec.pause))}))


async def pause_is_a_number(stall: Stall, ctx: kw.Context) -> None:
    pause = int(stall.spec.pause.removesuffix("s"))
    await ctx.apply(core_v1.ConfigMap(kw.Meta("m"), data={"pause": str(pause)}))


def advice_for(reconcile: Reconcile, spec: str) -> str:
    """Return what is suggested when the object is created with a spec."""
    prover = prover_of(reconcile)
    case = Case(sequence=SpecSequence(0, (ApplySpec(f'{{"spec":{spec}}}'),)))
    found: FoundViolation | None = prover.run(case).failure
    assert found is not None
    return prover.shrink(found, runs=12).advice


@pytest.mark.parametrize(
    ("reconcile", "spec", "advice"),
    [
        (keys_are_labels, '{"tags":{"a b":"1"}}', "for the keys of spec.tags, kw.Field(max_properties="),
        (keys_are_labels, '{"tags":{"a b":"1"}}', "kw.Rule(r\"self.all(key, key.matches(r'^"),
        (values_are_labels, '{"tags":{"Größe":"a b"}}', "for the values of spec.tags, kw.Field(pattern="),
        (memory_is_a_quantity, '{"memory":"much"}', 'spec.memory="": kw.Quantity as the type of the field'),
        (pause_is_a_duration, '{"pause":"long"}', 'spec.pause="": kw.Duration as the type of the field'),
        (pause_is_a_number, '{"pause":"long"}', "int as the type of the field"),
    ],
)
def test_advice_names_the_keys_the_values_or_the_type(reconcile: Reconcile, spec: str, advice: str) -> None:
    assert advice in advice_for(reconcile, spec)


def test_advice_for_a_quantity_that_the_api_server_refuses_names_the_type() -> None:
    def make() -> kw.Operator:
        controller = kw.Controller(
            Stall,
            memory_is_a_request_of_a_claim,
            name="stalls",
            owns=[core_v1.LimitRange],
        )
        return kw.Operator(controller, name="stalls")

    prover = Prover(make, [SAMPLE])
    found = prover.run(Case(sequence=SpecSequence(0, (ApplySpec('{"spec":{"memory":"much"}}'),)))).failure
    assert found is not None
    assert found.property.id == "valid-specs"
    assert "kw.Quantity as the type of the field" in prover.shrink(found, runs=12).advice
