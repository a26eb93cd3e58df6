"""CustomResourceDefinitions.

Read in this order: `controller` (`DefinitionController`, the entry point: accepts names and serves the resources), `naming`
(accepted names and conditions), `kind` (strategy of the kind itself), `api_services` (APIServices of custom groups).
"""

from kubewright.devserver.definitions.controller import DefinitionController
from kubewright.devserver.definitions.kind import definition_strategy

__all__ = ["DefinitionController", "definition_strategy"]
