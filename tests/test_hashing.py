"""The hash of contents: what counts, what does not, and that it never changes between versions."""

from typing import Any

import pytest

from kubewright.api import Meta, Model, to_wire
from kubewright.api.builtin import core_v1
from kubewright.hashing import content_hash


class Settings(Model):
    level: int = 1
    colors: list[str] = []


def login(name: str = "login", **meta: Any) -> core_v1.Secret:
    return core_v1.Secret(Meta(name, namespace="web", **meta), data={"user": b"ada", "password": b"x"})


@pytest.mark.parametrize(
    ("contents", "expected"),
    [
        ((), "e139fe0b0da8a3eaec24ecac504f62fe"),
        ((None,), "ee0292823f06099479205ffa0693924b"),
        ((login(),), "26067bb0bdf35e9448c06c24fc2f7429"),
        (
            (core_v1.ConfigMap(Meta("a"), data={"é": "1"}, binary_data={"b": b"\x00"}),),
            "b0b327df715da8d47a9b91211a64e599",
        ),
        (({"b": 1, "a": [True, 1.5, "x"]},), "a0e1fdae2a760beed14748b3b235f3a6"),
        ((Settings(colors=["red"]), "text", 3), "1e318bd045f13020c26f657b85539919"),
        (
            (core_v1.Service(Meta("web"), spec=core_v1.ServiceSpec(cluster_ip="None")),),
            "92ac12c94091c3f2547e45d1eebf533f",
        ),
    ],
)
def test_equal_content_has_the_same_hash_in_every_version(contents: tuple[Any, ...], expected: str) -> None:
    # The expected values were computed with json.dumps and hashlib from the format that the module documents.
    assert content_hash(*contents) == expected


def test_metadata_status_and_the_order_of_keys_do_not_count() -> None:
    labelled = login(labels={"a": "b"}, resource_version="7", uid="u", annotations={"c": "d"})
    assert content_hash(labelled) == content_hash(login())
    swapped = core_v1.Secret(Meta("login", namespace="web"), data={"password": b"x", "user": b"ada"})
    assert content_hash(swapped) == content_hash(login())
    frozen = core_v1.Secret(
        Meta("login", namespace="web"), data={"password": b"x", "user": b"ada"}, immutable=True
    )
    assert content_hash(frozen) == content_hash(login())
    spec = core_v1.ServiceSpec(cluster_ip="None")
    ready = core_v1.Service(Meta("web"), spec=spec, status=core_v1.ServiceStatus())
    assert content_hash(ready) == content_hash(core_v1.Service(Meta("web"), spec=spec))


def test_a_typed_object_and_the_same_as_json_have_one_hash() -> None:
    assert content_hash(to_wire(login())) == content_hash(login())
    written = core_v1.Secret(Meta("login", namespace="web"), string_data={"user": "ada", "password": "x"})
    assert content_hash(written) == content_hash(to_wire(written)) == content_hash(login())


def test_the_order_of_objects_does_not_count_and_that_of_values_does() -> None:
    one, other = login("one"), login("other")
    assert content_hash(one, other) == content_hash(other, one)
    assert content_hash({"a": 1}, {"a": 2}) != content_hash({"a": 2}, {"a": 1})
    assert content_hash(["a", "b"]) != content_hash(["b", "a"])


def test_contents_that_are_exchanged_between_two_objects_count() -> None:
    def pair(first: bytes, second: bytes) -> str:
        return content_hash(
            core_v1.Secret(Meta("a"), data={"k": first}), core_v1.Secret(Meta("b"), data={"k": second})
        )

    assert pair(b"1", b"2") != pair(b"2", b"1")


def test_the_hash_fits_into_a_label() -> None:
    assert len(content_hash(login())) <= 63
    assert content_hash(login()).isalnum()


def test_a_list_of_objects_counts_as_its_objects() -> None:
    one, other = login("one"), login("other")
    assert content_hash([other, to_wire(one)]) == content_hash(one, other)


def test_values_without_a_canonical_form_are_refused() -> None:
    with pytest.raises(TypeError, match="set is neither an object nor a JSON value"):
        content_hash({"a": {"b", "c"}})
