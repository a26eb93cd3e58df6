"""Truck in its versions: nothing is lost on the way."""

from kubewright.testing.round_trip import check_round_trips

from fleet.truck_conversion import truck_versions


def test_every_object_survives_the_way_there_and_back() -> None:
    check_round_trips(truck_versions, examples=25)
