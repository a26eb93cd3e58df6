"""`kubewright scorecard`: operator-sdk's scorecard checks that need no cluster."""

import ast
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import click
import yaml

from kubewright.api import ConfigError, kind_of
from kubewright.cli.packages.catalogue import package_of
from kubewright.cli.packages.examples import written_samples
from kubewright.cli.project import Project, the_project
from kubewright.cli.target import load_operator
from kubewright.controller import Operator
from kubewright.generate import (
    LEVELS,
    Settings,
    bundle,
    checks,
    cluster_service_version,
    crds,
    criteria,
    level_of,
)

ANNOTATIONS = "bundle/metadata/annotations.yaml"


@click.command()
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", show_default=True)
def command(output: str) -> int:
    """Run operator-sdk's basic and OLM scorecard checks and report the capability level.

    Only the checks that need no cluster are run. The capability level (1 to 5) is derived from declarations and tests;
    the output lists what is missing for the next level. Exits with 1 if a check fails.
    """
    project = the_project()
    operator = load_operator(project.target)
    package, settings = package_of(project), Settings(examples=written_samples(project.target))
    annotations = yaml.safe_load(bundle(operator, package, settings)[ANNOTATIONS])["annotations"]
    done = checks(cluster_service_version(operator, package, settings), crds(operator), annotations)
    found = criteria(operator, tested_kinds(project, operator))
    level = level_of(found)
    missing = [each for each in found if not each.met and each.level == level + 1]
    if output == "json":
        document = {
            "checks": [{**asdict(check), "passed": check.passed} for check in done],
            "level": level,
            "capability": LEVELS[level - 1] if level else "",
            "criteria": [asdict(each) for each in found],
        }
        click.echo(json.dumps(document, indent=2))
    else:
        for check in done:
            click.echo(f"{'pass' if check.passed else 'FAIL'}  {check.name}")
            for finding in check.findings:
                click.echo(f"      {finding}")
        click.echo(f"level {level} of {len(LEVELS)}: {LEVELS[level - 1] if level else 'none yet'}")
        for each in missing:
            click.echo(f"      for level {level + 1}, {each.requirement}: {each.way}")
    return 0 if all(check.passed for check in done) else 1


def tested_kinds(project: Project, operator: Operator) -> set[str]:
    """Return the kinds that tests use: a module with a test on a cluster that uses the kind's class."""
    classes = {declared.__name__: kind_of(declared).kind for declared in operator.kinds}
    return {
        classes[name] for path in _tests(project.root) for name in _used_on_cluster(path) if name in classes
    }


def _tests(root: Path) -> list[Path]:
    return sorted(path for folder in ("tests", ".") for path in (root / folder).glob("test_*.py"))


def _used_on_cluster(path: Path) -> Iterator[str]:
    try:
        tree = ast.parse(path.read_text(encoding="utf-8"))
    except (OSError, SyntaxError) as error:
        raise ConfigError(f"cannot read {path}: {error}") from None
    for node in ast.walk(tree):
        on_cluster = isinstance(node, ast.AsyncFunctionDef) and any(
            argument.arg == "cluster" for argument in node.args.args
        )
        if on_cluster:
            yield from (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
