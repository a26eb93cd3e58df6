"""Run an operator: build client and cache, start everything in order, stop in reverse.

Read in this order: `options` (how to run), `manager` (the run itself), `servers` (probes, metrics, webhooks),
`watchdog` (reports a blocked event loop) and `parts` (modules that are imported on demand).
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
