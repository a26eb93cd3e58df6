"""Exact quantities."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import Quantity, QuantityError

suffixes = st.sampled_from(
    ["", "n", "u", "m", "k", "M", "G", "T", "P", "E", "Ki", "Mi", "Gi", "Ti", "e3", "E-3"]
)
texts = st.builds("{}{}".format, st.decimals(-(10**6), 10**6, places=3).map("{:f}".format), suffixes)
quantities = texts.map(Quantity)


def test_compares_by_amount() -> None:
    assert Quantity("1000m") == Quantity("1") == Quantity(1)
    assert Quantity("1Ki") > Quantity("1k")
    assert hash(Quantity("1000m")) == hash(Quantity("1"))
    assert Quantity("1") != "1"


def test_calculates_exactly() -> None:
    assert str(Quantity("0.1") + Quantity("200m")) == "300m"
    assert str(Quantity("1Gi") - Quantity("512Mi")) == "512Mi"
    assert str(Quantity("1Gi") * 3) == "3Gi"
    assert str(-Quantity("100m")) == "-100m"
    assert str(Quantity("0") + Quantity("1Mi")) == "1Mi"


def test_quantities_round_up_and_never_to_zero() -> None:
    assert int(Quantity("100m")) == 1
    assert int(Quantity("-100m")) == -1
    assert Quantity("1500u").milli() == 2
    assert float(Quantity("250m")) == 0.25
    assert not Quantity("0")


def test_quantities_are_created_from_numbers() -> None:
    assert str(Quantity.of(Decimal("0.25"))) == "250m"
    assert str(Quantity.of(Decimal(2**30), "BinarySI")) == "1Gi"
    with pytest.raises(QuantityError):
        Quantity.of(Decimal("NaN"))


@pytest.mark.parametrize(("wire", "text"), [(1, "1"), (1.5, "1.5"), (1000.0, "1k"), (" 1Gi ", "1Gi")])
def test_reads_json_numbers_and_text(wire: object, text: str) -> None:
    assert str(Quantity.from_wire(wire)) == str(Quantity(text))


@pytest.mark.parametrize("wire", [True, None, [], {}])
def test_refuses_other_json(wire: object) -> None:
    with pytest.raises(QuantityError):
        Quantity.from_wire(wire)


@pytest.mark.parametrize("text", ["", "a", "1.2.3", "1ki", "1 Gi", "1e1000", "1e99999999999", "٣"])
def test_refuses_other_text(text: str) -> None:
    with pytest.raises(QuantityError):
        Quantity(text)


@given(quantities)
def test_the_canonical_text_is_the_same_amount(quantity: Quantity) -> None:
    canonical = str(quantity + Quantity(0))
    if abs(quantity.value) < 10**21:
        assert Quantity(canonical) == quantity
        assert str(Quantity(canonical)) == canonical


@given(quantities, quantities)
def test_adding_quantities_equals_adding_numbers(left: Quantity, right: Quantity) -> None:
    assert Fraction((left + right).value) == Fraction(left.value) + Fraction(right.value)
    assert (left < right) == (left.value < right.value)
    assert left - right + right == left


@given(st.text(alphabet="0123456789+-.eEinumkKMGTP ", max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        assert str(Quantity(text))
    except QuantityError:
        pass
