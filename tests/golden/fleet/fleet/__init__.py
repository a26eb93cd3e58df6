"""The operator fleet."""

import kubewright as kw

from fleet.loading_dock import loading_docks
from fleet.truck import trucks
from fleet.truck_conversion import truck_versions
from fleet.truck_defaulting import default_truck
from fleet.truck_v1 import TruckV1
from fleet.truck_validation import validate_truck

operator = kw.Operator(
    trucks,
    loading_docks,
    name="fleet",
    kinds=[TruckV1],
    webhooks=[default_truck, validate_truck, truck_versions],
)
