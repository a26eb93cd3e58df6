import json
from typing import Any

import pytest

import kubewright as kw
from kubewright.api import to_wire
from kubewright.webhook import BadReview, review_conversion, versions_of

from .kinds import Widget, WidgetSpec, WidgetV1Alpha1, WidgetV1Beta1, WidgetV1Beta1Spec, from_alpha, from_beta
from .reviews import JsonObject, body, conversion_review

GROUP = "widgets.example.com"
KINDS = versions_of([from_alpha, from_beta])


def convert(desired: str, *objects: Any, conversions: Any = KINDS) -> JsonObject:
    answer = json.loads(review_conversion(conversions, body(conversion_review(desired, *objects))).body)
    assert (answer["kind"], answer["apiVersion"]) == ("ConversionReview", "apiextensions.k8s.io/v1")
    assert answer["response"]["uid"] == "c-1"
    return answer["response"]


def converted(desired: str, *objects: Any) -> list[JsonObject]:
    response = convert(desired, *objects)
    assert response["result"] == {"status": "Success"}
    return response["convertedObjects"]


@pytest.mark.parametrize("source", ["v1", "v1beta1", "v1alpha1"])
@pytest.mark.parametrize("target", ["v1", "v1beta1", "v1alpha1"])
def test_every_version_is_reached_from_every_other(source: str, target: str) -> None:
    forms: dict[str, Any] = {
        "v1": Widget(kw.Meta("w"), spec=WidgetSpec(size=3, color="red")),
        "v1beta1": WidgetV1Beta1(kw.Meta("w"), spec=WidgetV1Beta1Spec(width=3, color="red")),
        "v1alpha1": WidgetV1Alpha1(kw.Meta("w"), size=3, color="red"),
    }
    (made,) = converted(f"{GROUP}/{target}", forms[source])
    expected = to_wire(forms[target])
    if source != "v1" or target != "v1":
        made.pop("status", None)
        expected.pop("status", None)
    assert made == expected


def test_a_list_of_several_versions_is_converted_in_order() -> None:
    made = converted(
        f"{GROUP}/v1",
        WidgetV1Alpha1(kw.Meta("a"), size=1),
        Widget(kw.Meta("b"), spec=WidgetSpec(size=2)),
        WidgetV1Beta1(kw.Meta("c"), spec=WidgetV1Beta1Spec(width=3)),
    )
    assert [(item["metadata"]["name"], item["spec"]["size"]) for item in made] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
    ]


def test_metadata_is_unchanged_by_a_conversion_including_unknown_fields() -> None:
    raw = to_wire(WidgetV1Beta1(kw.Meta("w", namespace="n", uid="u", labels={"a": "b"})))
    raw["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    raw["metadata"]["managedFields"] = [{"manager": "m", "time": "2026-01-01T00:00:00Z", "odd": 1}]
    raw["metadata"]["future"] = {"x": [1]}
    (made,) = converted(f"{GROUP}/v1", raw)
    assert made["metadata"] == raw["metadata"]


def test_labels_and_annotations_may_be_changed() -> None:
    def up(widget: WidgetV1Alpha1) -> Widget:
        widget.metadata.annotations["kept"] = str(widget.size)
        widget.metadata.labels.clear()
        return Widget(widget.metadata)

    kinds = versions_of([kw.Conversion(Widget, WidgetV1Alpha1, up=up, down=from_alpha.down)])
    raw = to_wire(WidgetV1Alpha1(kw.Meta("w", labels={"a": "b"}, resource_version="7"), size=4))
    (made,) = convert(f"{GROUP}/v1", raw, conversions=kinds)["convertedObjects"]
    assert made["metadata"] == {"name": "w", "resourceVersion": "7", "annotations": {"kept": "4"}}


def test_a_conversion_that_changes_the_name_fails_with_the_reason() -> None:
    def up(widget: WidgetV1Alpha1) -> Widget:
        widget.metadata.name = "other"
        return Widget(widget.metadata)

    kinds = versions_of([kw.Conversion(Widget, WidgetV1Alpha1, up=up, down=from_alpha.down)])
    response = convert(f"{GROUP}/v1", WidgetV1Alpha1(kw.Meta("w", namespace="n")), conversions=kinds)
    assert response["convertedObjects"] == []
    assert response["result"] == {
        "status": "Failure",
        "message": "Widget n/w: the conversion changes metadata.name: only labels and annotations may change",
    }


def test_one_object_that_cannot_be_converted_fails_the_request_and_is_named() -> None:
    def up(widget: WidgetV1Alpha1) -> Widget:
        return Widget(spec=WidgetSpec(size=10 // widget.size))

    kinds = versions_of([kw.Conversion(Widget, WidgetV1Alpha1, up=up, down=from_alpha.down)])
    review = conversion_review(
        f"{GROUP}/v1", *(WidgetV1Alpha1(kw.Meta(f"w{size}", namespace="n"), size=size) for size in (1, 0, 2))
    )
    answer = review_conversion(kinds, body(review))
    result = json.loads(answer.body)["response"]["result"]
    assert result["status"] == "Failure"
    assert result["message"].startswith(f"Widget n/w0: conversion to {GROUP}/v1 failed: ZeroDivisionError")
    assert "n/w1" not in result["message"]
    assert "Traceback" not in result["message"]
    assert [type(error) for error in answer.surprises] == [ZeroDivisionError]


@pytest.mark.parametrize(
    ("desired", "raw", "said"),
    [
        (f"{GROUP}/v9", {}, f"Widget w: there is no {GROUP}/v9: Widget has {GROUP}/v1, {GROUP}/v1alpha1"),
        (f"{GROUP}/v1", {"apiVersion": f"{GROUP}/v9"}, f"there is no {GROUP}/v9"),
        ("other.example.com/v1", {}, "there is no other.example.com/v1"),
        (
            f"{GROUP}/v1",
            {"kind": "Gadget"},
            "Gadget w: Gadget of widgets.example.com/v1alpha1 is not converted here",
        ),
        (f"{GROUP}/v1", {"size": "big"}, "Widget w: WidgetV1Alpha1: size"),
    ],
)
def test_objects_that_cannot_be_converted_are_named(desired: str, raw: JsonObject, said: str) -> None:
    response = convert(desired, to_wire(WidgetV1Alpha1(kw.Meta("w"))) | raw)
    assert response["result"]["status"] == "Failure"
    assert said in response["result"]["message"]


@pytest.mark.parametrize("junk", [3, None, [], "x", {}])
def test_a_value_that_is_not_an_object_fails_the_conversion(junk: Any) -> None:
    assert convert(f"{GROUP}/v1", junk)["result"]["status"] == "Failure"


def test_a_function_that_returns_the_wrong_version_is_a_failure() -> None:
    wrong: Any = lambda widget: widget  # noqa: E731 (named for the reader)
    kinds = versions_of([kw.Conversion(Widget, WidgetV1Alpha1, up=wrong, down=wrong)])
    message = convert(f"{GROUP}/v1", WidgetV1Alpha1(kw.Meta("w")), conversions=kinds)["result"]["message"]
    assert "up must return Widget, not WidgetV1Alpha1" in message


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"null",
        b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}',
        body(conversion_review(f"{GROUP}/v1") | {"apiVersion": "apiextensions.k8s.io/v1beta1"}),
        body(conversion_review(f"{GROUP}/v1", uid="")),
    ],
)
def test_a_body_that_is_not_a_conversion_review_is_refused(data: bytes) -> None:
    with pytest.raises(BadReview):
        review_conversion(KINDS, data)
