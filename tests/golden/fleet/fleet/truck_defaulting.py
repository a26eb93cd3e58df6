"""Defaulting webhook for Truck."""

import kubewright as kw

from fleet.truck import Truck


@kw.admission.mutating_webhook(Truck)
def default_truck(truck: Truck) -> None:
    """Set default values."""
    truck.metadata.labels.setdefault("app.kubernetes.io/part-of", "fleet")
