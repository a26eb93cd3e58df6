"""Namespaces by label: an operator works in the namespaces with certain labels, and follows changes of the labels.

`kw.Operator(..., namespaces=NamespaceSelector("team=a"))`, or `kubewright run --namespace-selector team=a`.
"""

from kubewright.api.scoping import NamespaceSelector

__all__ = ["NamespaceSelector"]
