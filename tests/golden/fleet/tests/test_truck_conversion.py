"""Tests of the conversion between the versions of Truck."""

from kubewright.testing.round_trip import check_round_trips

from fleet.truck_conversion import truck_versions


def test_conversion_round_trips_without_loss() -> None:
    check_round_trips(truck_versions, examples=25)
