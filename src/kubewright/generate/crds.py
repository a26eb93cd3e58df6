"""CustomResourceDefinitions of an operator's own kinds."""

from collections import defaultdict
from typing import Any

from kubewright.api import kind_of
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.schema import crd
from kubewright.webhook import WebhookNames
from kubewright.webhook.configurations import ByService, conversion


def crds(operator: Operator, names: Names | None = None) -> list[dict[str, Any]]:
    """Render one definition per kind, with all the versions the operator declares.

    Given the names of a deployed operator, the definitions have its labels, and versions are converted through its
    Service; without them the conversion is left to the running operator.
    """
    versions: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for declared in operator.kinds:
        kind = kind_of(declared)
        versions[kind.group, kind.kind].append(declared)
    definitions = [
        crd(*classes, conversion=_conversion(operator, names) if key in operator.webhooks.versions else None)
        for key, classes in versions.items()
    ]
    if names is not None:
        for definition in definitions:
            metadata = definition["metadata"]
            metadata["labels"] = {**names.labels, **metadata.get("labels", {})}
    return definitions


def _conversion(operator: Operator, names: Names | None) -> dict[str, Any] | None:
    if names is None:
        return None
    return conversion(ByService(names.namespace, WebhookNames(operator.name).service))
