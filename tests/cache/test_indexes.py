from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import ObjectKey
from kubewright.cache.informer import IndexTable

KEYS = st.builds(ObjectKey, st.sampled_from(["", "a"]), st.sampled_from("xyz"))
VALUES = st.lists(st.sampled_from("1234"), unique=True).map(tuple)


@given(st.lists(st.tuples(KEYS, st.none() | VALUES)))
def test_finds_each_key_under_exactly_its_last_values(
    steps: list[tuple[ObjectKey, tuple[str, ...] | None]],
) -> None:
    table, model = IndexTable(), dict[ObjectKey, tuple[str, ...]]()
    for key, values in steps:
        if values is None:
            table.remove(key)
            model.pop(key, None)
        else:
            table.put(key, values)
            model[key] = values
    for value in "1234":
        assert set(table.find(value)) == {key for key, values in model.items() if value in values}


def test_an_unknown_value_finds_nothing() -> None:
    assert IndexTable().find("x") == []
