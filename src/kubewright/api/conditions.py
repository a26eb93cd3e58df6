"""The condition of a status, by the conventions that `kubectl wait` and others rely on; helpers are in `kubewright.conditions`."""

from datetime import datetime
from typing import Annotated, Literal

from kubewright.api.fields import Field
from kubewright.api.model import Model

ConditionStatus = Literal["True", "False", "Unknown"]
_REASON = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"
_TYPE = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)


class Condition(Model, builtin=True):
    """One aspect of the state of an object, as `kubectl wait --for=condition=...` reads it."""

    type: Annotated[
        str, Field(max_length=316, pattern=_TYPE, description="Name of the condition, like Ready.")
    ]
    status: Annotated[
        ConditionStatus, Field(description="True, False, or Unknown while it has not been observed.")
    ]
    reason: Annotated[
        str,
        Field(
            min_length=1,
            max_length=1024,
            pattern=_REASON,
            description="Reason for the last change of status, as one CamelCase word for programs.",
        ),
    ]
    message: Annotated[
        str, Field(max_length=32768, optional=False, description="Details for people; may be empty.")
    ] = ""
    last_transition_time: Annotated[
        datetime | None, Field(optional=False, description="Time at which the status last changed.")
    ] = None
    observed_generation: Annotated[
        int,
        Field(
            ge=0,
            int64=True,
            description="Generation of the object that this condition describes; it is out of date if the object's is newer.",
        ),
    ] = 0
