"""Truck: what was left out is completed."""

from kubewright.api import from_wire
from kubewright.generate import sample

from fleet.truck import Truck
from fleet.truck_defaulting import default_truck


def test_a_label_tells_what_it_is_part_of() -> None:
    subject = from_wire(Truck, sample(Truck))
    default_truck(subject)
    assert subject.metadata.labels["app.kubernetes.io/part-of"] == "fleet"
