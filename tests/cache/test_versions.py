import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.cache.store import compare_versions


@given(st.integers(0, 10**30), st.integers(0, 10**30))
def test_versions_are_ordered_as_numbers_of_any_size(incoming: int, known: int) -> None:
    assert compare_versions(str(incoming), str(known)) == (incoming > known) - (incoming < known)


@pytest.mark.parametrize(
    ("incoming", "known"), [("abc", "7"), ("7", "abc"), ("b", "a"), ("a", "b"), ("", "1")]
)
def test_versions_that_are_not_numbers_count_as_newer_if_they_differ(incoming: str, known: str) -> None:
    assert compare_versions(incoming, known) == 1


def test_equal_texts_are_equal_versions() -> None:
    assert compare_versions("abc", "abc") == 0
