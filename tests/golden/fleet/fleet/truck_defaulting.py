"""What is completed before a Truck is stored."""

import kubewright as kw

from fleet.truck import Truck


@kw.admission.mutating_webhook(Truck)
def default_truck(truck: Truck) -> None:
    """Complete what was left out."""
    truck.metadata.labels.setdefault("app.kubernetes.io/part-of", "fleet")
