"""One kind in three versions, with validation, defaulting and conversion."""

from collections.abc import Iterator
from typing import Annotated

import kubewright as kw


class WidgetV1Alpha1(kw.Object, kind="Widget", group="widgets.example.com", version="v1alpha1"):
    """A widget with everything at the top."""

    size: int = 0
    color: str = ""


class WidgetV1Beta1Spec(kw.Model):
    width: int = 0
    color: str = ""


class WidgetV1Beta1(kw.Object, kind="Widget", group="widgets.example.com", version="v1beta1"):
    """A widget with a spec."""

    spec: WidgetV1Beta1Spec = WidgetV1Beta1Spec()


class Part(kw.Model):
    name: str
    count: int = 0


class WidgetSpec(kw.Model):
    size: Annotated[int, kw.Field(ge=0, le=1000)] = 0
    color: Annotated[str, kw.Field(max_length=40)] = ""
    parts: Annotated[list[Part], kw.Field(list_type="map", list_keys=("name",))] = []


class WidgetStatus(kw.Model):
    ready: bool = False


class Widget(kw.Resource[WidgetSpec, WidgetStatus], group="widgets.example.com", version="v1", stored=True):
    """A widget, grown up."""


COLOR = "widgets.example.com/parts"


def alpha_up(widget: WidgetV1Alpha1) -> Widget:
    return Widget(widget.metadata, spec=WidgetSpec(size=widget.size, color=widget.color))


def alpha_down(widget: Widget) -> WidgetV1Alpha1:
    return WidgetV1Alpha1(widget.metadata, size=widget.spec.size, color=widget.spec.color)


def beta_up(widget: WidgetV1Beta1) -> Widget:
    return Widget(spec=WidgetSpec(size=widget.spec.width, color=widget.spec.color))


def beta_down(widget: Widget) -> WidgetV1Beta1:
    return WidgetV1Beta1(spec=WidgetV1Beta1Spec(width=widget.spec.size, color=widget.spec.color))


from_alpha = kw.Conversion(Widget, WidgetV1Alpha1, up=alpha_up, down=alpha_down)
from_beta = kw.Conversion(Widget, WidgetV1Beta1, up=beta_up, down=beta_down)


@kw.admission.validating_webhook(Widget)
def sensible(
    widget: Widget, old: Widget | None, request: kw.admission.AdmissionRequest
) -> Iterator[kw.admission.Problem]:
    if old and widget.spec.size < old.spec.size:
        yield kw.admission.invalid("spec.size", widget.spec.size, "may not shrink")
    if widget.spec.color == "pink":
        yield kw.admission.not_supported("spec.color", "pink", ["blue", "red"])
    if widget.spec.size > 500:
        yield kw.admission.warning("unusually big")
    if request.dry_run:
        yield kw.admission.audit("dry", "yes")


@kw.admission.mutating_webhook(Widget)
def colored(widget: Widget) -> None:
    if not widget.spec.color:
        widget.spec.color = "blue"
