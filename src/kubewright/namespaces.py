"""Namespaces by label: an operator that works in the namespaces with certain labels, followed as they come and go.

`kw.Operator(..., namespaces=NamespaceSelector("team=a"))`, or `kubewright run --namespace-selector team=a`.
"""

from kubewright.api.scoping import NamespaceSelector

__all__ = ["NamespaceSelector"]
