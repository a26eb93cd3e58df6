"""Validating webhook for Truck."""

from collections.abc import Iterator

import kubewright as kw

from fleet.truck import Truck

LONGEST_NAME = 50


@kw.admission.validating_webhook(Truck)
def validate_truck(truck: Truck) -> Iterator[kw.admission.Problem]:
    """Check rules that the schema cannot express."""
    if len(truck.metadata.name) > LONGEST_NAME:
        yield kw.admission.invalid("metadata.name", truck.metadata.name, f"at most {LONGEST_NAME} characters")
