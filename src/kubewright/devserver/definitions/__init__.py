"""Custom resource definitions: the kind itself, the names they get, and the controller that serves them."""

from .controller import DefinitionController
from .kind import definition_strategy

__all__ = ["DefinitionController", "definition_strategy"]
