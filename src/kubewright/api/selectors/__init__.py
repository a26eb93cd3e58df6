"""Label and field selectors: the text grammars of the API, and the structure that objects carry."""

from kubewright.api.selectors.fields import FieldRequirement, FieldSelector, parse_fields
from kubewright.api.selectors.labels import LabelMatcher, Requirement, label_selector, parse_labels

__all__ = [
    "FieldRequirement",
    "FieldSelector",
    "LabelMatcher",
    "Requirement",
    "label_selector",
    "parse_fields",
    "parse_labels",
]
