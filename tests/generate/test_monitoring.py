"""Alert rules and the dashboard: over metrics that the operator has, and in the syntax of Prometheus."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import yaml

import kubewright as kw
from kubewright.api.builtin import core_v1
from kubewright.generate import Names
from kubewright.generate.monitoring import alert_rules, dashboard
from kubewright.manager import ManagerOptions, WebhookOptions
from kubewright.testing import Cluster

JsonObject = dict[str, Any]
OTHER_METRICS = {"up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
"""Metrics of Prometheus itself and of its client library."""


class Spec(kw.Model):
    text: str = "a"


class Poster(kw.Resource[Spec, kw.Model], group="monitored.example.com", version="v1"):
    """A poster."""


@kw.controller(Poster, owns=[core_v1.ConfigMap])
async def posters(poster: Poster, ctx: kw.Context) -> None:
    """Copy the text."""
    await ctx.apply(core_v1.ConfigMap(kw.Meta(poster.metadata.name), data={"text": poster.spec.text}))


@kw.admission.validating_webhook(Poster)
def sensible(poster: Poster) -> None:
    """Find nothing."""


OPERATOR = kw.Operator(posters, name="posters", webhooks=[sensible])
NAMES = Names("posters")


def rules(operator: kw.Operator = OPERATOR) -> list[JsonObject]:
    (group,) = alert_rules(operator, NAMES)["spec"]["groups"]
    return group["rules"]


def panels(operator: kw.Operator = OPERATOR) -> list[JsonObject]:
    return json.loads(dashboard(operator, NAMES)["data"]["posters.json"])["panels"]


def expressions(operator: kw.Operator = OPERATOR) -> list[str]:
    shown = [target["expr"] for panel in panels(operator) for target in panel["targets"]]
    return [*(rule["expr"] for rule in rules(operator)), *shown]


def metrics_in(expression: str) -> set[str]:
    """Return the names before a selector."""
    return {name.removesuffix("_bucket") for name in re.findall(r"([a-z_]+)\{", expression)}


async def test_each_metric_of_alerts_and_panels_is_one_that_the_operator_has(cluster: Cluster) -> None:
    options = ManagerOptions(
        metrics_bind_address="0",
        health_probe_bind_address="0",
        webhooks=WebhookOptions(bind_address="127.0.0.1:0", reach="url"),
        watchdog=True,
    )
    async with cluster.running(OPERATOR, options=options) as manager:
        await cluster.create(Poster(kw.Meta("a")))
        await cluster.eventually(core_v1.ConfigMap, "a")
        used = set[str]().union(*map(metrics_in, expressions())) - OTHER_METRICS
        assert used
        assert used <= {family.name for family in manager.metrics.families()}


def test_an_operator_without_webhooks_has_no_alerts_and_panels_for_them() -> None:
    plain = kw.Operator(posters, name="posters")
    assert any("webhook" in expression for expression in expressions())
    assert not any("webhook" in expression for expression in expressions(plain))


def test_each_expression_selects_the_series_of_the_operator_only() -> None:
    for expression in expressions():
        selectors = re.findall(r"\{([^}]*)\}", expression)
        assert selectors
        assert all('job="posters-controller-manager-metrics-service"' in selector for selector in selectors)
        assert "JOB" not in expression


def test_alerts_are_named_after_the_operator_and_described() -> None:
    names = [rule["alert"] for rule in rules()]
    assert len(names) == len(set(names))
    assert all(name.startswith("Posters") for name in names)
    for rule in rules():
        assert rule["labels"]["severity"] in {"warning", "critical"}
        assert rule["annotations"]["summary"]
        assert rule["annotations"]["description"]
        assert "OPERATOR" not in str(rule)


def test_panels_do_not_overlap() -> None:
    taken = set[tuple[int, int]]()
    for panel in panels():
        place = panel["gridPos"]
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not taken & cells
        assert place["x"] + place["w"] <= 24
        taken |= cells


def checked(program: Path, file: Path, groups: JsonObject) -> str:
    """Return what Prometheus' parser finds wrong with rule groups; nothing if it accepts them."""
    file.write_text(yaml.safe_dump(groups))
    done = subprocess.run([program, file], capture_output=True, text=True, check=False)
    return done.stdout + done.stderr if done.returncode else ""


def test_prometheus_parses_the_rules(prometheus_rules_program: Path, tmp_path: Path) -> None:
    rules = alert_rules(OPERATOR, NAMES)["spec"]
    assert not checked(prometheus_rules_program, tmp_path / "rules.yaml", rules)
    rules["groups"][0]["rules"][0]["expr"] += " >"
    assert "could not parse expression" in checked(prometheus_rules_program, tmp_path / "wrong.yaml", rules)


def test_prometheus_parses_the_expressions_of_the_dashboard(
    prometheus_rules_program: Path, tmp_path: Path
) -> None:
    rules = [
        {
            "record": f"panel:{panel['id']}_{target['refId']}",
            "expr": target["expr"].replace("$__rate_interval", "5m"),
        }
        for panel in panels()
        for target in panel["targets"]
    ]
    assert rules
    groups = {"groups": [{"name": "dashboard", "rules": rules}]}
    assert not checked(prometheus_rules_program, tmp_path / "rules.yaml", groups)
