"""Sensitive values: found in classes of any library, and in no record."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, NotRequired, TypedDict

import msgspec
import pydantic
import pytest

import kubewright as kw
from kubewright.controller.running.external_calls import RecordableCall
from kubewright.journal import Redactor
from kubewright.journal.redaction import sensitive_paths
from kubewright.schema.structural import structural

if TYPE_CHECKING:
    from decimal import Decimal as OnlyForTypeCheckers

Sensitive = Annotated[str, kw.Field(sensitive=True)]


@dataclasses.dataclass
class Account:
    user: str
    password: Sensitive


class Login(TypedDict):
    user: str
    password: NotRequired[Sensitive]


class Pair(NamedTuple):
    user: str
    password: Sensitive


class Tree(msgspec.Struct):
    password: Sensitive
    branches: "list[Tree]" = []


class PlainTree(msgspec.Struct):
    name: str
    branches: "list[PlainTree]" = []


class Credentials(pydantic.BaseModel):
    user: str = ""
    password: Sensitive = ""
    token: pydantic.SecretStr | None = pydantic.Field(None, alias="apiToken")


@pytest.mark.parametrize(
    ("form", "paths"),
    [
        (Account, [("password",)]),
        (list[Account], [("*", "password")]),
        (Login, [("password",)]),
        (Pair, [("*",)]),
        (tuple[Sensitive, ...], [("*",)]),
        (tuple[Sensitive, int], [("*",)]),
        (Sequence[Account | None], [("*", "password")]),
        (Mapping[str, Sensitive], [("*",)]),
        (Tree, [("password",), ("branches", "*")]),
        (PlainTree, []),
        (Credentials, [("password",), ("apiToken",)]),
        (int, []),
    ],
)
def test_sensitive_fields_are_found_in_classes_of_any_library(
    form: Any, paths: list[tuple[str, ...]]
) -> None:
    assert list(sensitive_paths(form)) == paths


class Site(kw.Resource[Credentials, kw.Model], group="journal.example.com", version="v1"):
    """A kind whose spec is a pydantic model."""


def test_sensitive_fields_of_a_pydantic_model_are_redacted_and_declared_in_the_crd() -> None:
    spec = {"user": "ada", "password": "canary-1", "apiToken": "canary-2"}
    redacted = Redactor([Site]).document({"spec": spec}, set(), group="journal.example.com", kind="Site")
    assert redacted["spec"]["user"] == "ada"
    assert "canary" not in str(redacted)
    properties = structural(Site)["properties"]["spec"]["properties"]
    assert [properties[name].get("format") for name in ("user", "password", "apiToken")] == [
        None,
        "password",
        "password",
    ]


def pay(name: str, amount: "OnlyForTypeCheckers", code: Sensitive) -> "OnlyForTypeCheckers":
    """Has annotations that cannot be resolved while the program runs."""
    return amount


def test_a_value_whose_annotation_cannot_be_resolved_is_not_recorded() -> None:
    recorded = RecordableCall(pay, ("ada", "canary", "canary"), {}).answered("canary")
    assert recorded.sensitive_arguments == (("amount",), ("code",))
    assert recorded.answer == b"null"
    assert recorded.missing == "its annotation cannot be resolved, so it may be sensitive"
