"""CustomResourceDefinitions of an operator's own kinds."""

from collections import defaultdict
from typing import Any

from kubewright.api import kind_of
from kubewright.controller import Operator
from kubewright.schema import crd


def crds(operator: Operator) -> list[dict[str, Any]]:
    """Render one definition per kind, with all the versions the operator declares."""
    versions: defaultdict[tuple[str, str], list[Any]] = defaultdict(list)
    for declared in operator.kinds:
        kind = kind_of(declared)
        versions[kind.group, kind.kind].append(declared)
    return [crd(*classes) for classes in versions.values()]
