"""Tests of the validating webhook for Truck."""

from kubewright.api import from_wire
from kubewright.generate import sample

from fleet.truck import Truck
from fleet.truck_validation import LONGEST_NAME, validate_truck


def test_accepts_the_sample() -> None:
    subject = from_wire(Truck, sample(Truck))
    assert list(validate_truck(subject) or ()) == []


def test_rejects_a_long_name() -> None:
    subject = from_wire(Truck, sample(Truck))
    subject.metadata.name = "x" * (LONGEST_NAME + 1)
    assert list(validate_truck(subject) or ())
