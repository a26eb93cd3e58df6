"""A controller whose spec is a pydantic model: validated instances, poison objects, unknown fields."""

from typing import Any

from pydantic import BaseModel, Field, model_validator

import kubewright as kw
from kubewright.schema import crd
from kubewright.testing import Cluster


class RangeSpec(BaseModel):
    low: int = Field(ge=0)
    high: int = 10

    @model_validator(mode="after")
    def is_ordered(self) -> "RangeSpec":
        if self.low > self.high:
            raise ValueError("low is above high")
        return self


class RangeStatus(BaseModel):
    size: int = 0


class Range(kw.Resource[RangeSpec, RangeStatus], group="pydantic.kubewright.dev", version="v1"):
    """A range of numbers."""


KIND = kw.Kind(group="pydantic.kubewright.dev", version="v1", kind="Range", plural="ranges")
"""For objects that the class refuses, and fields that it does not have."""


@kw.controller(Range)
async def ranges(found: Range, ctx: kw.Context) -> None:
    assert isinstance(found.spec, RangeSpec)
    await ctx.patch_status(found, RangeStatus(size=found.spec.high - found.spec.low))


async def test_an_invalid_object_is_reported_once_and_the_others_are_reconciled(cluster: Cluster) -> None:
    await cluster.install(Range)
    # The schema cannot compare two fields, so the server accepts it.
    document: dict[str, Any] = {
        "apiVersion": "pydantic.kubewright.dev/v1",
        "kind": "Range",
        "metadata": {"name": "bad", "namespace": cluster.namespace},
        "spec": {"low": 20},
    }
    await cluster.client.create(document)
    async with cluster.running(kw.Operator(ranges)):
        await cluster.create(Range(kw.Meta("good"), spec=RangeSpec(low=3)))
        assert (await cluster.eventually(Range, "good", lambda it: it.status.size)).status.size == 7
        await cluster.client.patch(KIND, {"spec": {"low": 1}}, name="bad", namespace=cluster.namespace)
        assert (await cluster.eventually(Range, "bad", lambda it: it.status.size)).status.size == 9
    reported = [line for line in cluster.log if "cannot be read" in line]
    assert len(reported) == 1
    assert "Range: spec: value error, low is above high" in reported[0]


async def test_update_keeps_fields_that_the_model_does_not_have(cluster: Cluster) -> None:
    definition = crd(Range)
    schema = definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    schema["properties"]["spec"]["properties"]["unit"] = {"type": "string"}
    await cluster.install(Range)
    await cluster.client.apply(definition, field_manager="kubewright-testing", force=True)
    document: dict[str, Any] = {
        "apiVersion": "pydantic.kubewright.dev/v1",
        "kind": "Range",
        "metadata": {"name": "newer", "namespace": cluster.namespace},
        "spec": {"low": 1, "unit": "m"},
    }
    # A server uses a changed schema some time after it was stored.
    while "unit" not in (await cluster.client.create(document, kind=KIND, dry_run=True))["spec"]:
        pass
    await cluster.client.create(document, kind=KIND)

    def change(found: Range) -> None:
        found.spec.low = 2

    await cluster.client.update(await cluster.get(Range, "newer"), change)
    stored = await cluster.client.get(KIND, "newer", cluster.namespace)
    assert stored["spec"] == {"low": 2, "high": 10, "unit": "m"}
