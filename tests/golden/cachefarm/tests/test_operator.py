"""Tests of the converted operator: add one for each handler as you decide it."""

from cachefarm import operator


def test_the_operator_has_controllers() -> None:
    assert operator.controllers
