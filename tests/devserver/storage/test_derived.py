"""Values that are computed from stored objects."""

from kubewright.devserver.storage import Derived, ObjectStore


def write(store: ObjectStore, name: str, key: str) -> None:
    collection = store.collection(name)
    store.put(collection, key, collection.get(key), lambda _: b"{}", "shape", {})


def test_a_value_is_computed_again_only_after_a_change_of_its_collections() -> None:
    store = ObjectStore(None, lambda: 0.0)
    computed: list[int] = []

    def compute() -> int:
        computed.append(store.revision)
        return len(store.collection("roles")) + len(store.collection("bindings"))

    derived = Derived(store, ["roles", "bindings"], compute)
    assert (derived.get(), derived.get(), len(computed)) == (0, 0, 1)
    write(store, "pods", "a/x")
    assert (derived.get(), len(computed)) == (0, 1)
    write(store, "bindings", "a/x")
    assert (derived.get(), derived.get(), len(computed)) == (1, 1, 2)
    backup = store.backup()
    write(store, "roles", "a/y")
    assert derived.get() == 2
    store.restore(backup)
    assert derived.get() == 1
