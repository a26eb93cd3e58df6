"""Failures that come in groups."""

import pytest

from kubewright.api import leaves

ONE, TWO, THREE = ValueError("one"), KeyError("two"), KeyboardInterrupt("three")


@pytest.mark.parametrize(
    ("failure", "parts"),
    [
        (ONE, [ONE]),
        (ExceptionGroup("all", [ONE, TWO]), [ONE, TWO]),
        (BaseExceptionGroup("all", [ExceptionGroup("some", [ONE, TWO]), THREE]), [ONE, TWO, THREE]),
    ],
)
def test_exception_groups_are_flattened_to_their_leaves(
    failure: BaseException, parts: list[BaseException]
) -> None:
    assert list(leaves(failure)) == parts
