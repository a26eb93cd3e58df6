"""The metrics of one controller, under controller-runtime's names."""

from kubewright.metrics import Counter, Gauge, Histogram, Registry

RECONCILE_SECONDS = (
    *(0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0),
    *(1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0),
    *(15.0, 20.0, 25.0, 30.0, 40.0, 50.0, 60.0),
)
OUTCOMES = ("success", "error", "requeue", "requeue_after")


class Instruments:
    """Hold the instruments of one controller."""

    def __init__(self, registry: Registry, controller: str) -> None:
        labels = ("controller",)
        total = registry.counter(
            "controller_runtime_reconcile_total",
            "Total number of reconciliations per controller",
            ("controller", "result"),
        )
        self.outcomes: dict[str, Counter] = {
            outcome: total.labels(controller=controller, result=outcome) for outcome in OUTCOMES
        }
        self.errors: Counter = registry.counter(
            "controller_runtime_reconcile_errors_total",
            "Total number of reconciliation errors per controller",
            labels,
        ).labels(controller=controller)
        self.terminal_errors: Counter = registry.counter(
            "controller_runtime_terminal_reconcile_errors_total",
            "Total number of terminal reconciliation errors per controller",
            labels,
        ).labels(controller=controller)
        self.panics: Counter = registry.counter(
            "controller_runtime_reconcile_panics_total",
            "Total number of reconciliations that raised what is no Exception, per controller",
            labels,
        ).labels(controller=controller)
        self.timeouts: Counter = registry.counter(
            "controller_runtime_reconcile_timeouts_total",
            "Total number of reconciliations that ran into their timeout, per controller",
            labels,
        ).labels(controller=controller)
        self.seconds: Histogram = registry.histogram(
            "controller_runtime_reconcile_time_seconds",
            "Length of time per reconciliation per controller",
            labels,
            RECONCILE_SECONDS,
        ).labels(controller=controller)
        self.workers: Gauge = registry.gauge(
            "controller_runtime_max_concurrent_reconciles",
            "Maximum number of concurrent reconciles per controller",
            labels,
        ).labels(controller=controller)
        self.active_workers: Gauge = registry.gauge(
            "controller_runtime_active_workers", "Number of currently used workers per controller", labels
        ).labels(controller=controller)
        self.malformed: Counter = registry.counter(
            "kubewright_malformed_objects_total",
            "Objects met that do not fit their class, each state of an object once, per controller",
            labels,
        ).labels(controller=controller)
        self.mapping_errors: Counter = registry.counter(
            "kubewright_mapping_errors_total",
            "Changes that a filter or map of the author failed on, per controller",
            labels,
        ).labels(controller=controller)
        self.applies_skipped: Counter = registry.counter(
            "kubewright_applies_skipped_total",
            "Applies that were not sent because nothing would change, per controller",
            labels,
        ).labels(controller=controller)
        self.contested_fields: Counter = registry.counter(
            "kubewright_contested_fields_total",
            "Fields that another field manager changed back again and again, per controller",
            labels,
        ).labels(controller=controller)
        self._controller = controller
        self._drift = registry.counter(
            "kubewright_drift_corrections_total",
            "Applies that corrected a field which another field manager changed, per controller and kind",
            ("controller", "kind"),
        )
        self.applies_altered: Counter = registry.counter(
            "kubewright_applies_altered_total",
            "Applies whose answer differs from what was asked, once for each desired state, per controller",
            labels,
        ).labels(controller=controller)

    def drift(self, kind: str) -> Counter:
        """Return the counter of corrections of a kind."""
        return self._drift.labels(controller=self._controller, kind=kind)
