"""Steps of long work, as a status remembers them."""

from datetime import datetime
from typing import Annotated

from kubewright.api.fields import Field
from kubewright.api.model import Model

OUTCOME_LIMIT = 32768


class Step(Model, builtin=True):
    """A step that is done, for one input; it is not done again unless the input changes."""

    name: Annotated[str, Field(min_length=1, max_length=63, description="Name of the step.")]
    input_hash: Annotated[
        str, Field(max_length=64, description="Hash of the input for which the step was done.")
    ]
    outcome: Annotated[
        str,
        Field(
            max_length=OUTCOME_LIMIT,
            optional=False,
            description="Outcome of the step, such as an identifier in another system; may be empty.",
        ),
    ] = ""
    completion_time: Annotated[
        datetime | None, Field(description="Time at which the outcome was recorded.")
    ] = None
