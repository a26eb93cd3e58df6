"""Custom resource definitions: the kind itself, the names they get, and the controller that serves them."""

from kubewright.devserver.definitions.controller import DefinitionController
from kubewright.devserver.definitions.kind import definition_strategy

__all__ = ["DefinitionController", "definition_strategy"]
