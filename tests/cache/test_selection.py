from typing import Any

import pytest

from kubewright.api import ObjectKey
from kubewright.cache import Selection


@pytest.mark.parametrize(
    ("options", "covered"),
    [
        ({}, True),
        ({"namespace": "default"}, True),
        ({"namespace": "other"}, False),
        ({"labels": "a=b"}, False),
        ({"fields": "metadata.name=x"}, False),
        ({"metadata_only": True}, False),
    ],
)
def test_a_selection_covers_only_keys_that_it_holds_completely(
    make: Any, options: dict[str, Any], covered: bool
) -> None:
    assert Selection(make.kind, **options).covers(ObjectKey("default", "x")) is covered


@pytest.mark.parametrize(
    ("options", "selected"),
    [
        ({}, True),
        ({"namespace": "default"}, True),
        ({"namespace": "other"}, False),
        ({"labels": "tier in (web)"}, True),
        ({"labels": "tier notin (web)"}, False),
        ({"fields": "metadata.name=a"}, True),
        ({"fields": "metadata.name!=a"}, False),
        ({"fields": "metadata.namespace=default"}, True),
        ({"fields": "spec.color=red"}, True),
        ({"fields": "spec.color=blue"}, False),
        ({"fields": "spec.on=true,spec.size=3"}, True),
        ({"fields": "spec.none="}, True),
        ({"fields": "spec.color.deeper=red"}, False),
        ({"labels": "tier=web", "fields": "spec.color=blue"}, False),
    ],
)
def test_a_selection_selects_the_objects_that_the_server_selects(
    make: Any, options: dict[str, Any], selected: bool
) -> None:
    spec = {"color": "red", "on": True, "size": 3}
    obj = make.object("a", 1, labels={"tier": "web"}, spec=spec)
    assert Selection(make.kind, **options).selects(obj) is selected


def test_equal_selections_have_equal_hashes() -> None:
    from kubewright.api import Kind

    kinds = [Kind(group="g", version="v1", kind="A", plural="as") for _ in range(2)]
    assert len({Selection(kind, "ns", "a=b") for kind in kinds}) == 1


def test_the_text_of_a_selection_names_all_its_restrictions(make: Any) -> None:
    text = str(Selection(make.kind, "prod", "a=b", "metadata.name=x"))
    assert text == "widgets.example.com in namespace prod with labels a=b with fields metadata.name=x"
