"""What Prometheus and Grafana need for an operator: a ServiceMonitor, alert rules, and a dashboard.

Rules and panels are rows: a title and an expression over the metrics that the operator has. `JOB` in an expression is the
selector of its series. Those of webhooks are rendered only for operators that have webhooks.
"""

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kubewright.api import JsonObject
from kubewright.controller import Operator
from kubewright.generate.names import Names
from kubewright.generate.network import METRICS_PORT_NAME
from kubewright.generate.rbac import GROUP, RBAC, named

PROMETHEUS = "monitoring.coreos.com/v1"
DASHBOARD_LABEL = {"grafana_dashboard": "1"}
"""Grafana's sidecar loads the ConfigMaps with this label, as its chart is configured by default."""
_COLUMNS = 24
_PANELS_IN_A_ROW = 3
_HEIGHT = 8


class Alert(NamedTuple):
    """An alert: the expression, for how long it must be true, and what to do."""

    name: str
    expression: str
    lasting: str
    severity: str
    summary: str
    description: str


class Panel(NamedTuple):
    """A panel of the dashboard: expressions with their legends, and the unit of the values."""

    title: str
    unit: str
    series: Sequence[tuple[str, str]]


def _rate(metric: str, by: str, *, over: str = "$__rate_interval", where: str = "") -> str:
    return f"sum by ({by}) (rate({metric}{{JOB{where}}}[{over}]))"


def _quantile(quantile: float, histogram: str, by: str, *, over: str = "$__rate_interval") -> str:
    return f"histogram_quantile({quantile}, {_rate(f'{histogram}_bucket', f'{by}, le', over=over)})"


_ALERTS = (
    Alert(
        "NoLeader",
        "sum by (namespace) (leader_election_master_status{JOB}) < 1",
        "5m",
        "critical",
        "No replica of OPERATOR reconciles",
        "No replica holds the lease. Read the log of the Pods, and the Lease in the operator's namespace.",
    ),
    Alert(
        "MetricsAbsent",
        "absent(up{JOB} == 1)",
        "10m",
        "critical",
        "OPERATOR is not running, or its metrics cannot be read",
        "Prometheus reads no metrics of any replica. Check the Pods, and the target in Prometheus.",
    ),
    Alert(
        "ReconcileErrors",
        _rate("controller_runtime_reconcile_errors_total", "namespace, controller", over="10m")
        + " / "
        + _rate("controller_runtime_reconcile_total", "namespace, controller", over="10m")
        + " > 0.1",
        "15m",
        "warning",
        "Controller {{ $labels.controller }} of OPERATOR fails often",
        "{{ $value | humanizePercentage }} of the reconciles fail. `kubewright why KIND/NAME` shows the error of an object.",
    ),
    Alert(
        "QueueWaits",
        _quantile(0.99, "workqueue_queue_duration_seconds", "namespace, controller", over="10m") + " > 60",
        "15m",
        "warning",
        "Objects wait for controller {{ $labels.controller }} of OPERATOR",
        "1 % of the objects wait for more than a minute. Raise the controller's concurrency, or find what is slow.",
    ),
    Alert(
        "ReconcileStuck",
        "max by (namespace, controller) (workqueue_longest_running_processor_seconds{JOB}) > 900",
        "0m",
        "warning",
        "A reconcile of controller {{ $labels.controller }} of OPERATOR does not end",
        "It runs for {{ $value | humanizeDuration }}. Set a timeout for calls of external systems.",
    ),
    Alert(
        "MalformedObjects",
        "sum by (namespace, name) (kubewright_cache_undecodable_objects{JOB}) > 0",
        "15m",
        "warning",
        "OPERATOR cannot read some {{ $labels.name }}",
        "{{ $value }} objects do not fit their class, and are not reconciled. The log names them.",
    ),
    Alert(
        "FieldConflict",
        "sum by (namespace, controller) (increase(kubewright_contested_fields_total{JOB}[30m])) > 0",
        "0m",
        "warning",
        "Controller {{ $labels.controller }} of OPERATOR and another field manager change the same field",
        "The Event FieldConflict names the field and both managers. Remove the field from one of them.",
    ),
    Alert(
        "EventLoopBlocked",
        "sum by (namespace) (increase(kubewright_event_loop_blocked_total{JOB}[15m])) > 3",
        "0m",
        "warning",
        "OPERATOR blocks its event loop",
        "Nothing else ran for more than a second, {{ $value | humanize }} times in 15 minutes. The log has the line of code.",
    ),
    Alert(
        "RequestErrors",
        _rate("rest_client_requests_total", "namespace", over="10m", where=', code=~"5..|<error>"')
        + " / "
        + _rate("rest_client_requests_total", "namespace", over="10m")
        + " > 0.1",
        "15m",
        "warning",
        "Requests of OPERATOR to the API server fail",
        "{{ $value | humanizePercentage }} of the requests fail.",
    ),
)
_WEBHOOK_ALERTS = (
    Alert(
        "WebhookErrors",
        _rate(
            "controller_runtime_webhook_requests_total",
            "namespace, webhook",
            over="10m",
            where=', code=~"5.."',
        )
        + " > 0",
        "10m",
        "critical",
        "Webhook {{ $labels.webhook }} of OPERATOR fails",
        "While it fails, the API server refuses writes if the webhook's failure policy is Fail. The log has the error.",
    ),
    Alert(
        "WebhookSlow",
        _quantile(0.99, "controller_runtime_webhook_latency_seconds", "namespace, webhook", over="10m")
        + " > 2",
        "15m",
        "warning",
        "Webhook {{ $labels.webhook }} of OPERATOR is slow",
        "1 % of its requests take more than {{ $value | humanizeDuration }}; each is part of a write to the API server.",
    ),
)

_RECONCILES, _SECONDS = "controller_runtime_reconcile_total", "controller_runtime_reconcile_time_seconds"
_WORKERS = "controller_runtime_active_workers{JOB} / controller_runtime_max_concurrent_reconciles{JOB}"
_BLOCKED = "increase(kubewright_event_loop_blocked_total{JOB}[$__rate_interval])"
_PANELS = (
    Panel("Reconciles", "ops", [(_rate(_RECONCILES, "controller, result"), "{{controller}} {{result}}")]),
    Panel(
        "Duration of reconciles",
        "s",
        [
            (_quantile(0.5, _SECONDS, "controller"), "{{controller}} p50"),
            (_quantile(0.99, _SECONDS, "controller"), "{{controller}} p99"),
        ],
    ),
    Panel("Workers in use", "percentunit", [(f"max by (controller) ({_WORKERS})", "{{controller}}")]),
    Panel(
        "Objects in the queue", "short", [("sum by (controller) (workqueue_depth{JOB})", "{{controller}}")]
    ),
    Panel(
        "Time in the queue, p99",
        "s",
        [(_quantile(0.99, "workqueue_queue_duration_seconds", "controller"), "{{controller}}")],
    ),
    Panel("Retries", "ops", [(_rate("workqueue_retries_total", "controller"), "{{controller}}")]),
    Panel(
        "Requests to the API server",
        "reqps",
        [(_rate("rest_client_requests_total", "method, code"), "{{method}} {{code}}")],
    ),
    Panel("Objects in caches", "short", [("max by (name) (kubewright_cache_objects{JOB})", "{{name}}")]),
    Panel("Watches started", "ops", [(_rate("reflector_watches_total", "name"), "{{name}}")]),
    Panel(
        "Skipped applies and corrected drift",
        "ops",
        [
            (_rate("kubewright_applies_skipped_total", "controller"), "{{controller}} skipped"),
            (
                _rate("kubewright_drift_corrections_total", "controller, kind"),
                "{{controller}} {{kind}} corrected",
            ),
        ],
    ),
    Panel(
        "Paused and malformed objects",
        "short",
        [
            ("sum by (controller) (kubewright_paused_objects{JOB})", "{{controller}} paused"),
            ("sum by (name) (kubewright_cache_undecodable_objects{JOB})", "{{name}} malformed"),
        ],
    ),
    Panel("Leader", "short", [("max by (pod) (leader_election_master_status{JOB})", "{{pod}}")]),
    Panel("CPU", "percentunit", [(_rate("process_cpu_seconds_total", "pod"), "{{pod}}")]),
    Panel("Memory", "bytes", [("sum by (pod) (process_resident_memory_bytes{JOB})", "{{pod}}")]),
    Panel("Event loop blocked for over a second", "short", [(f"sum by (pod) ({_BLOCKED})", "{{pod}}")]),
)
_WEBHOOK_PANELS = (
    Panel(
        "Webhook requests",
        "reqps",
        [(_rate("controller_runtime_webhook_requests_total", "webhook, code"), "{{webhook}} {{code}}")],
    ),
    Panel(
        "Duration of webhook requests, p99",
        "s",
        [(_quantile(0.99, "controller_runtime_webhook_latency_seconds", "webhook"), "{{webhook}}")],
    ),
    Panel(
        "Webhook requests in flight",
        "short",
        [("sum by (webhook) (controller_runtime_webhook_requests_in_flight{JOB})", "{{webhook}}")],
    ),
)


def monitoring(operator: Operator, names: Names, *, reader: str = "") -> list[JsonObject]:
    """Render ServiceMonitor, alert rules and dashboard; with `reader` (`namespace/name`) also a binding to read metrics."""
    documents = [_service_monitor(names), alert_rules(operator, names), dashboard(operator, names)]
    return [*documents, _reader_binding(names, reader)] if reader else documents


def alert_rules(operator: Operator, names: Names) -> JsonObject:
    """Render a PrometheusRule with the alerts of an operator."""
    alerts = [*_ALERTS, *(_WEBHOOK_ALERTS if operator.webhooks else ())]
    prefix = "".join(word.capitalize() for word in operator.name.replace(".", "-").split("-"))
    rules = [
        {
            "alert": f"{prefix}{alert.name}",
            "expr": _selected(alert.expression, names),
            "for": alert.lasting,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.summary.replace("OPERATOR", operator.name),
                "description": alert.description,
            },
        }
        for alert in alerts
    ]
    document = named(PROMETHEUS, "PrometheusRule", names.manager, names, names.namespace)
    return {**document, "spec": {"groups": [{"name": operator.name, "rules": rules}]}}


def dashboard(operator: Operator, names: Names) -> JsonObject:
    """Render a ConfigMap with a Grafana dashboard."""
    panels = [*_PANELS, *(_WEBHOOK_PANELS if operator.webhooks else ())]
    content: JsonObject = {
        "title": f"Operator {operator.name}",
        "uid": f"kubewright-{operator.name}"[:40],
        "tags": ["kubewright"],
        "schemaVersion": 39,
        "time": {"from": "now-3h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": _variables(names)},
        "panels": list(_placed(panels, names)),
    }
    document = named("v1", "ConfigMap", f"{names.manager}-dashboard", names, names.namespace)
    document["metadata"]["labels"] = {**names.labels, **DASHBOARD_LABEL}
    return {**document, "data": {f"{operator.name}.json": json.dumps(content, indent=2) + "\n"}}


def _variables(names: Names) -> list[JsonObject]:
    source = {"name": "datasource", "label": "Data source", "type": "datasource", "query": "prometheus"}
    namespaces = {
        "name": "namespace",
        "label": "Namespace",
        "type": "query",
        "datasource": {"type": "prometheus", "uid": "$datasource"},
        "query": f'label_values(up{{job="{names.metrics_service}"}}, namespace)',
        "refresh": 2,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }
    return [source, namespaces]


def _placed(panels: Iterable[Panel], names: Names) -> Iterable[JsonObject]:
    width = _COLUMNS // _PANELS_IN_A_ROW
    for number, panel in enumerate(panels):
        row, column = divmod(number, _PANELS_IN_A_ROW)
        yield {
            "id": number + 1,
            "title": panel.title,
            "type": "timeseries",
            "datasource": {"type": "prometheus", "uid": "$datasource"},
            "gridPos": {"x": column * width, "y": row * _HEIGHT, "w": width, "h": _HEIGHT},
            "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
            "options": {
                "legend": {"displayMode": "list", "placement": "bottom"},
                "tooltip": {"mode": "multi"},
            },
            "targets": [
                {
                    "refId": chr(ord("A") + index),
                    "expr": _selected(expression, names, 'namespace=~"$namespace"'),
                    "legendFormat": legend,
                }
                for index, (expression, legend) in enumerate(panel.series)
            ],
        }


def _selected(expression: str, names: Names, *further: str) -> str:
    """Return an expression with the selector of the operator's series."""
    return expression.replace("JOB", ", ".join([f'job="{names.metrics_service}"', *further]))


def server_name(names: Names, namespace: str) -> str:
    """Return the name for which the certificate of the metrics is valid, in a namespace."""
    return f"{names.metrics_service}.{namespace}.svc"


def _service_monitor(names: Names) -> JsonObject:
    endpoint: JsonObject = {
        "port": METRICS_PORT_NAME,
        "scheme": "https",
        "path": "/metrics",
        "bearerTokenFile": "/var/run/secrets/kubernetes.io/serviceaccount/token",
        # All replicas serve with the certificate in this Secret, for this name; the token restricts access.
        "tlsConfig": {
            "ca": {"secret": {"name": names.metrics_secret, "key": "ca.crt"}},
            "serverName": server_name(names, names.namespace),
        },
    }
    return {
        **named(PROMETHEUS, "ServiceMonitor", names.monitor, names, names.namespace),
        "spec": {"endpoints": [endpoint], "selector": {"matchLabels": names.shared}},
    }


def _reader_binding(names: Names, reader: str) -> JsonObject:
    namespace, _, account = reader.partition("/")
    return {
        **named(RBAC, "ClusterRoleBinding", f"{names.metrics_reader}-binding", names),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": names.metrics_reader},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": namespace}],
    }
