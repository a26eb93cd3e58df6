"""Truck: what makes no sense is refused."""

from kubewright.api import from_wire
from kubewright.generate import sample

from fleet.truck import Truck
from fleet.truck_validation import LONGEST_NAME, validate_truck


def test_the_sample_is_accepted() -> None:
    subject = from_wire(Truck, sample(Truck))
    assert list(validate_truck(subject) or ()) == []


def test_a_long_name_is_refused() -> None:
    subject = from_wire(Truck, sample(Truck))
    subject.metadata.name = "x" * (LONGEST_NAME + 1)
    assert list(validate_truck(subject) or ())
