from hypothesis import given
from hypothesis import strategies as st

from kubewright.devcluster.job_pods import format_indexes, parse_indexes


def test_runs_are_written_as_ranges() -> None:
    assert format_indexes([5, 0, 1, 2, 9, 8]) == "0-2,5,8,9"


@given(indexes=st.sets(st.integers(0, 500)))
def test_what_is_written_is_read_back(indexes: set[int]) -> None:
    assert parse_indexes(format_indexes(indexes), 501) == indexes


@given(indexes=st.sets(st.integers(0, 50)), below=st.integers(0, 60))
def test_indexes_that_a_job_does_not_have_are_left_out(indexes: set[int], below: int) -> None:
    assert parse_indexes(format_indexes(indexes), below) == {index for index in indexes if index < below}


def test_a_huge_range_costs_no_more_than_the_job_has() -> None:
    assert parse_indexes("0-99999999999", 3) == {0, 1, 2}


@given(text=st.text("0123456789-,x", max_size=12))
def test_nonsense_is_read_without_failing(text: str) -> None:
    assert all(index >= 0 for index in parse_indexes(text, 1000))
