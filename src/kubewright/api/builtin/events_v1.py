"""The kinds of events.k8s.io/v1; written by tools/generate_builtin.py."""

from datetime import datetime

from msgspec import field as _field

from kubewright.api.builtin.core_v1 import EventSource, ObjectReference
from kubewright.api.model import Model
from kubewright.api.resource import Object
from kubewright.api.times import MicroTime


class EventSeries(Model, builtin=True):
    count: int
    last_observed_time: MicroTime | None = None


class Event(
    Object,
    group="events.k8s.io",
    version="v1",
    plural="events",
    short_names=["ev"],
    status=False,
    builtin=True,
):
    action: str = ""
    deprecated_count: int = 0
    deprecated_first_timestamp: datetime | None = None
    deprecated_last_timestamp: datetime | None = None
    deprecated_source: EventSource = _field(default_factory=EventSource)
    event_time: MicroTime | None = None
    note: str = ""
    reason: str = ""
    regarding: ObjectReference = _field(default_factory=ObjectReference)
    related: ObjectReference | None = None
    reporting_controller: str = ""
    reporting_instance: str = ""
    series: EventSeries | None = None
    type: str = ""


__all__ = [
    "Event",
    "EventSeries",
]
