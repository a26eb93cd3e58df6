from collections.abc import Iterable
from typing import Any

from kubewright.api import Meta, Model, ObjectKey, OwnerReference, RawObject, encode, kind_of, raw_object
from kubewright.controller import (
    Change,
    Index,
    Owned,
    all_of,
    annotations_changed,
    any_of,
    generation_changed,
    labels_changed,
    on,
    owned,
    watch,
    with_labels,
)

from .kinds import Note, Shell, Zone


def raw(obj: Model) -> RawObject:
    return raw_object(encode(obj))


def note(
    name: str = "a", *, text: str = "", generation: int = 1, labels: dict[str, str] | None = None
) -> RawObject:
    return raw(Note(Meta(name, namespace="ns", generation=generation, labels=labels or {}), text=text))


def change(before: RawObject | None, after: RawObject | None) -> Change[Note]:
    return Change(Note, ObjectKey("ns", "a"), before, after)


def nothing(index: Index[Shell], value: str) -> Iterable[ObjectKey]:
    raise AssertionError("no index is asked")


def unexpected(state: RawObject, error: BaseException) -> None:
    raise AssertionError(f"{state.meta.key} is not bad: {error}")


def test_a_change_has_its_type_and_decodes_lazily() -> None:
    seen = change(note(text="old"), note(text="new"))
    assert seen.type == "update"
    assert seen.old is not None
    assert seen.old.text == "old"
    assert seen.new is not None
    assert seen.new.text == "new"
    assert change(None, note()).type == "create"
    assert change(note(), None).type == "delete"


def test_a_map_function_sees_the_old_and_new_state_and_each_key_is_enqueued_once() -> None:
    watched = watch(Note, map=lambda found: [ObjectKey("ns", found.text), ObjectKey("ns", "always")])
    assert watched.requests(change(note(text="x"), note(text="y")), nothing, unexpected) == {
        ObjectKey("ns", "x"),
        ObjectKey("ns", "y"),
        ObjectKey("ns", "always"),
    }


def test_an_index_maps_a_watched_object_to_the_objects_that_refer_to_it() -> None:
    by_size = Index(Shell, lambda shell: [str(shell.spec.size)])
    asked: list[tuple[Index[Shell], str]] = []

    def lookup(index: Index[Shell], value: str) -> Iterable[ObjectKey]:
        asked.append((index, value))
        return [ObjectKey("ns", f"of-{value}")]

    watched = watch(Note, via=by_size, key=lambda found: found.text)
    assert watched.requests(change(None, note(text="3")), lookup, unexpected) == {ObjectKey("ns", "of-3")}
    assert asked == [(by_size, "3")]


def test_a_change_dropped_by_a_predicate_is_never_decoded() -> None:
    broken = RawObject(note().meta, b'{"text": 5}')
    watched = watch(Note, map=lambda found: [found.key], when=on("delete"))
    assert watched.requests(change(None, broken), nothing, unexpected) == set()


def test_the_decodable_state_is_mapped_if_the_other_one_cannot_be_decoded() -> None:
    broken = RawObject(note().meta, b'{"text": 5}')
    watched = watch(Note, map=lambda found: [ObjectKey("ns", found.text)])
    reported: list[RawObject] = []

    def report(state: RawObject, error: BaseException) -> None:
        reported.append(state)

    assert watched.requests(change(broken, note(text="x")), nothing, report) == {ObjectKey("ns", "x")}
    assert watched.requests(change(note(text="x"), broken), nothing, report) == {ObjectKey("ns", "x")}
    assert reported == [broken, broken]


def test_a_predicate_that_fails_passes_the_change() -> None:
    def fails(seen: Change[Note]) -> bool:
        raise LookupError("a mistake")

    reported: list[str] = []
    watched = watch(Note, map=lambda found: [found.key], when=fails)
    keys = watched.requests(change(None, note()), nothing, lambda _, error: reported.append(str(error)))
    assert keys == {ObjectKey("ns", "a")}
    assert reported == ["a mistake"]


def test_a_map_that_returns_no_keys_is_reported() -> None:
    wrong: Any = lambda found: ["ns/a"]  # noqa: E731
    reported: list[str] = []
    watched = watch(Note, map=wrong)
    assert (
        watched.requests(change(None, note()), nothing, lambda _, error: reported.append(str(error))) == set()
    )
    assert reported == ["the map of watch(Note) returned 'ns/a': expected ObjectKey(namespace, name)"]


def test_the_generation_predicate_drops_status_only_updates() -> None:
    assert not generation_changed(change(note(generation=1), note(generation=1, text="x")))
    assert generation_changed(change(note(generation=1), note(generation=2)))
    assert generation_changed(change(None, note()))
    assert generation_changed(change(note(), None))


def test_label_and_annotation_predicates_pass_changes() -> None:
    plain, labelled, noted = (
        note(),
        note(labels={"a": "b"}),
        raw(Note(Meta("a", namespace="ns", generation=1, annotations={"a": "b"}))),
    )
    assert [labels_changed(change(plain, other)) for other in (plain, labelled, noted)] == [
        False,
        True,
        False,
    ]
    assert [annotations_changed(change(plain, other)) for other in (plain, labelled, noted)] == [
        False,
        False,
        True,
    ]
    for passes in (labels_changed, annotations_changed):
        assert passes(change(None, plain))
        assert passes(change(plain, None))


def test_the_label_predicate_passes_objects_that_just_stopped_matching() -> None:
    matches = with_labels("app=web")
    web, other = note(labels={"app": "web"}), note(labels={"app": "db"})
    assert matches(change(None, web))
    assert matches(change(web, other))
    assert not matches(change(other, other))


def test_predicates_are_combined() -> None:
    seen = change(note(generation=1), note(generation=2))
    assert all_of(on("update"), generation_changed)(seen)
    assert not all_of(on("create"), generation_changed)(seen)
    assert any_of(on("create"), generation_changed)(seen)


def child(api_version: str, *, kind: str = "Shell", controller: bool | None = True) -> RawObject:
    owner = OwnerReference(api_version=api_version, kind=kind, name="owner", uid="u", controller=controller)
    return raw(Note(Meta("a", namespace="ns", owner_references=[owner])))


def test_children_reconcile_their_controlling_owner_whatever_its_version() -> None:
    found = ObjectKey("ns", "owner")
    children: Owned[Note] = owned(Note)
    shell = kind_of(Shell)
    assert children.requests(change(None, child("shells.example.com/v1beta9")), shell, unexpected) == {found}
    assert children.requests(change(child("shells.example.com/v1"), note()), shell, unexpected) == {found}
    assert children.requests(change(None, child("other.example.com/v1")), shell, unexpected) == set()
    assert (
        children.requests(change(None, child("shells.example.com/v1", kind="Zone")), shell, unexpected)
        == set()
    )
    assert (
        children.requests(change(None, child("shells.example.com/v1", controller=None)), shell, unexpected)
        == set()
    )
    every: Owned[Note] = owned(Note, every_owner=True)
    assert every.requests(
        change(None, child("shells.example.com/v1", controller=None)), shell, unexpected
    ) == {found}


def test_a_cluster_scoped_owner_is_found_without_namespace() -> None:
    children: Owned[Note] = owned(Note)
    seen = change(None, child("shells.example.com/v1", kind="Zone"))
    assert children.requests(seen, kind_of(Zone), unexpected) == {ObjectKey("", "owner")}
