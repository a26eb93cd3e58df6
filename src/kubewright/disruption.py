"""Limits for disruptive writes, such as changes that restart Pods: a `Budget` and `Window`s, declared in `kw.Options`.

`with ctx.disruption():` in a reconciler applies them: a write in the block is sent only within one of the windows and with
a slot of the budget, which all objects, replicas and shards of the controller share. Otherwise it raises
`kubewright.errors.DisruptionDeferred`, and the object is reconciled again when the write is allowed.
"""

from kubewright.controller.disruption import Budget, Disruption
from kubewright.controller.windows import Window

__all__ = ["Budget", "Disruption", "Window"]
