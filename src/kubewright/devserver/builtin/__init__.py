"""What is particular to the built-in kinds: defaults, checks, columns, special subresources.

Each module holds the kinds of a group or two in its `STRATEGIES`; to add a kind, add an entry there.
"""

from kubewright.devserver.builtin.catalog import strategy_for

__all__ = ["strategy_for"]
