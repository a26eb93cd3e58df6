"""Declarations of webhooks that are refused, and what the error advises."""

from collections.abc import AsyncIterator
from functools import partial
from typing import Any, cast

import pytest

import kubewright as kw
from kubewright.api import DeclarationError
from kubewright.api.builtin import autoscaling_v1
from kubewright.webhook import Endpoints

from .kinds import Widget


def validate(widget: Widget) -> None:
    pass


@pytest.mark.parametrize(
    ("terms", "said"),
    [
        ({"path": "validate"}, "between slashes"),
        ({"path": "/validate it"}, "between slashes"),
        ({"path": "/validate/"}, "between slashes"),
        ({"timeout": 31}, "1 to 30 seconds"),
        ({"timeout": 0}, "1 to 30 seconds"),
        ({"on": ["eat"]}, "choose from create"),
        ({"on": []}, "choose from create"),
        ({"of": Widget}, "belongs to subresources"),
        (
            {"of": autoscaling_v1.Scale, "subresources": ["scale"]},
            r"validating_webhook\(Scale, .*, of=Widget\)",
        ),
        ({"object_selector": "a in"}, "object_selector"),
        ({"match_conditions": {"not ok!": "true"}}, "match_conditions"),
        ({"name": "Not A Name"}, "another name="),
    ],
)
def test_options_that_no_server_accepts_are_refused_when_declared(terms: Any, said: str) -> None:
    with pytest.raises(DeclarationError, match=said):
        kw.admission.validating_webhook(Widget, **terms)(validate)


def test_defaulting_deletes_no_field() -> None:
    with pytest.raises(DeclarationError, match="choose from create, update, connect"):
        kw.admission.mutating_webhook(Widget, on=["delete"])(validate)


def test_a_path_may_be_chosen_and_is_given_once() -> None:
    chosen = kw.admission.validating_webhook(Widget, path="/validate/widgets")(validate)
    assert [endpoint.path for endpoint in Endpoints([chosen]).admissions] == ["/validate/widgets"]
    for taken in ("/validate/widgets", "/convert"):
        other = kw.admission.validating_webhook(Widget, path=taken, name="other")(validate)
        with pytest.raises(DeclarationError, match=f"path='{taken}' is taken"):
            Endpoints([chosen, other])


@pytest.mark.parametrize(
    ("function", "count"),
    [
        (lambda widget: None, 1),
        (lambda widget, old=None: None, 2),
        (lambda widget, old, request, more=(): None, 3),
        (lambda *everything: None, 3),
    ],
)
def test_a_function_is_given_as_much_as_it_takes(function: Any, count: int) -> None:
    given: list[Any] = []
    declared = kw.admission.validating_webhook(Widget, name="any")(function)
    declared.function = lambda *everything: given.extend(everything)
    declared.call(Widget(), None, cast(Any, "request"))
    assert len(given) == count


@pytest.mark.parametrize("function", [lambda: None, lambda a, b, c, d: None, lambda widget, *, size: None])
def test_a_function_that_cannot_be_called_is_refused(function: Any) -> None:
    with pytest.raises(DeclarationError, match="must take the object"):
        kw.admission.validating_webhook(Widget, name="any")(function)


class Asynchronous:
    async def __call__(self, widget: Widget) -> None:
        pass


async def coroutine(widget: Widget) -> None:
    pass


async def generator(widget: Widget) -> AsyncIterator[kw.admission.Problem]:
    yield kw.admission.denied("no")


@pytest.mark.parametrize(
    ("function", "is_async"),
    [
        (validate, False),
        (coroutine, True),
        (generator, True),
        (partial(coroutine), True),
        (Asynchronous(), True),
        (partial(validate), False),
    ],
)
def test_async_functions_are_recognized(function: Any, is_async: bool) -> None:
    assert kw.admission.validating_webhook(Widget, name="any")(function).is_async is is_async
