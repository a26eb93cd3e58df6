"""The operator cachefarm, converted from kopf."""

from cachefarm.controllers import operator

__all__ = ["operator"]
