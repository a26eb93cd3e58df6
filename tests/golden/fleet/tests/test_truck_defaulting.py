"""Tests of the defaulting webhook for Truck."""

from kubewright.api import from_wire
from kubewright.generate import sample

from fleet.truck import Truck
from fleet.truck_defaulting import default_truck


def test_sets_the_part_of_label() -> None:
    subject = from_wire(Truck, sample(Truck))
    default_truck(subject)
    assert subject.metadata.labels["app.kubernetes.io/part-of"] == "fleet"
