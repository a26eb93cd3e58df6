"""`kubewright doctor`: check the cluster and the operator's setup, and suggest fixes."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import click

from kubewright.api import KubewrightError
from kubewright.cli.doctor.cluster import check_cluster, check_python
from kubewright.cli.doctor.finding import Finding, failed
from kubewright.cli.doctor.operator import check_operator
from kubewright.cli.logs import painted
from kubewright.cli.loops import run_program
from kubewright.cli.options import cluster_options, namespaces_option
from kubewright.cli.progress import Progress
from kubewright.cli.project import find_project
from kubewright.cli.target import NoOperator, load_operator
from kubewright.client import Client, ClusterConfig, load_config
from kubewright.controller import Operator

_COLOURS = {"ok": "green", "warning": "yellow", "failed": "red", "skipped": "bright_black"}


@click.command()
@click.argument("target", metavar="[TARGET]", required=False, default="")
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
@namespaces_option("Namespace that the operator watches, as with `kubewright run`; repeatable.")
@cluster_options
def command(
    target: str, output: str, namespaces: tuple[str, ...], kubeconfig: Path | None, context: str
) -> int:
    """Check this machine, the cluster and, with TARGET, the operator's setup, and suggest fixes.

    Inside a project, TARGET defaults to the project's operator. Nothing is changed. Exits with 1 if a check fails.
    """
    project = find_project()
    target = target or (project.target if project else "")
    operator = _operator(target)

    findings = [check_python()]
    try:
        config = load_config(kubeconfig, context or None)
    except KubewrightError as error:
        findings.append(failed("kubeconfig", str(error), "pass --kubeconfig or --context, or fix the file"))
    else:
        findings += run_program(lambda: _examine(config, operator, target, namespaces))
    click.echo(_shown(findings, output))
    return int(any(finding.state == "failed" for finding in findings))


def _operator(target: str) -> Operator | None:
    try:
        return load_operator(target) if target else None
    except NoOperator:
        # A project that has no kinds yet needs nothing in the cluster.
        return None


async def _examine(
    config: ClusterConfig, operator: Operator | None, target: str, namespaces: Sequence[str]
) -> list[Finding]:
    with Progress().waiting(f"checking {config.server}"):
        async with Client(config) as client:
            findings, answers = await check_cluster(client, config)
            if answers and operator is not None:
                findings += await check_operator(client, operator, target, namespaces)
            return findings


def _shown(findings: Sequence[Finding], output: str) -> str:
    if output == "json":
        return json.dumps([asdict(finding) for finding in findings], indent=2)
    width = max(len(finding.check) for finding in findings)
    colour = painted(sys.stdout)
    lines: list[str] = []
    for finding in findings:
        state = f"{finding.state:<7}"
        shown = click.style(state, fg=_COLOURS[finding.state]) if colour else state
        lines.append(f"{shown}  {finding.check:<{width}}  {finding.detail}")
        if finding.remedy:
            lines.append(f"{'':<7}  {'':<{width}}  -> {finding.remedy}")
    return "\n".join(lines)
