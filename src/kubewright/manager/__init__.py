"""An operator at work: what builds client and cache, starts all in order and stops in reverse.

In reading order: `options` (how to run), `manager` (the run itself), `servers` (probes, metrics, webhooks) and
`parts` (what is loaded only where it is used).
"""

from kubewright.election import ElectionOptions, LeaseTimes
from kubewright.manager.manager import Manager, ManagerStatistics
from kubewright.manager.options import ManagerOptions
from kubewright.webhook import Lifetimes, Reach, WebhookOptions

__all__ = [
    "ElectionOptions",
    "LeaseTimes",
    "Lifetimes",
    "Manager",
    "ManagerOptions",
    "ManagerStatistics",
    "Reach",
    "WebhookOptions",
]
