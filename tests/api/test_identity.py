"""Names of kinds and objects, and metadata."""

import pytest

from kubewright.api import (
    GroupVersionKind,
    Kind,
    Meta,
    ObjectKey,
    OwnerReference,
    controller_of,
    has_finalizer,
)


@pytest.mark.parametrize(
    ("api_version", "gvk"),
    [("v1", GroupVersionKind("", "v1", "Pod")), ("apps/v1", GroupVersionKind("apps", "v1", "Pod"))],
)
def test_reads_and_writes_api_versions(api_version: str, gvk: GroupVersionKind) -> None:
    assert GroupVersionKind.parse(api_version, "Pod") == gvk
    assert gvk.api_version == api_version
    assert str(gvk) == f"{api_version}, Kind=Pod"


def test_writes_keys_with_and_without_namespace() -> None:
    assert str(ObjectKey("ns", "a")) == "ns/a"
    assert str(ObjectKey("", "a")) == "a"


def test_a_kind_without_class_fills_in_its_names() -> None:
    kind = Kind(group="", version="v1", kind="Pod", plural="pods")
    assert (kind.singular, kind.list_kind, kind.path, kind.resource) == ("pod", "PodList", "/api/v1", "pods")
    assert kind.gvk == GroupVersionKind("", "v1", "Pod")


def test_finds_the_controlling_owner() -> None:
    plain = OwnerReference(api_version="v1", kind="A", name="a", uid="1")
    boss = OwnerReference(api_version="v1", kind="B", name="b", uid="2", controller=True)
    assert controller_of(Meta("x", owner_references=[plain, boss])) is boss
    assert controller_of(Meta("x", owner_references=[plain])) is None


def test_has_finalizer_finds_finalizers() -> None:
    assert has_finalizer(Meta("x", finalizers=["a/b"]), "a/b")
    assert not has_finalizer(Meta("x"), "a/b")
