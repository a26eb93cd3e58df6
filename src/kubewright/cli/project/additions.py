"""Additions to a project: all files are written or none, and existing files are never replaced."""

from collections.abc import Mapping, Sequence
from importlib.metadata import version
from typing import Any, get_type_hints

import click

from kubewright.api import ConfigError, DeclarationError, kind_of
from kubewright.cli.project.settings import FILE, Project
from kubewright.cli.project.trees import write_tree
from kubewright.cli.target import NoOperator, load_operator
from kubewright.generate import sample
from kubewright.scaffold import (
    Addition,
    Declared,
    Unclear,
    add_import,
    add_to_operator,
    changes_between,
    is_newer,
    with_record,
)


def print_changes(project: Project) -> None:
    """Print what changed in kubewright since the project was last updated."""
    now = version("kubewright")
    if not project.made_with:
        return
    if is_newer(project.made_with, now):
        click.echo(
            f"this project was last updated by kubewright {project.made_with}, which is newer than the installed {now}",
            err=True,
        )
    for line in changes_between(project.made_with, now):
        click.echo(f"changed since this project was created: {line}", err=True)


def declared_kinds(project: Project) -> list[Declared]:
    """Return the kinds that the project's operator defines, version by version, the stored ones first."""
    try:
        operator = load_operator(project.target)
    except NoOperator:
        return []
    classes = sorted(operator.kinds, key=lambda declared: not kind_of(declared).stored)
    return [_declared(each) for each in classes]


def _declared(declared: type[Any]) -> Declared:
    kind, parts = kind_of(declared), get_type_hints(declared)
    return Declared(
        kind=kind.kind,
        group=kind.group,
        version=kind.version,
        plural=kind.plural,
        namespaced=kind.namespaced,
        module=declared.__module__,
        class_name=declared.__name__,
        spec=getattr(parts.get("spec"), "__name__", ""),
        status=getattr(parts.get("status"), "__name__", ""),
        scale=kind.scale is not None,
        example=_example(declared),
    )


def _example(declared: type[Any]) -> Mapping[str, Any]:
    try:
        return sample(declared).get("spec") or {}
    except DeclarationError:
        # The author has to write the sample of a further version as well.
        return {}


def add(project: Project, additions: Sequence[Addition], edited: dict[str, str] | None = None) -> None:
    """Write new files and register them with the operator; `edited` maps other files to their new text."""
    files = dict(edited or {})
    for addition in additions:
        for name, text in addition.files.items():
            if (project.root / name).exists():
                raise ConfigError(f"{name} already exists: nothing was written")
            files[name] = text
    package = f"{project.module}/__init__.py"
    todo: list[str] = []
    try:
        files[package] = _with_additions(project, package, additions)
    except (Unclear, SyntaxError, UnicodeDecodeError, OSError):
        todo = _by_hand(package, additions)
    files |= recorded(project)
    replaced = {name for name in files if (project.root / name).exists()}
    write_tree(project.root, files)
    for name in files:
        click.echo(f"{'changed' if name in replaced else 'created'} {name}")
    for line in todo:
        click.echo(line)


def recorded(project: Project) -> dict[str, str]:
    """Return pyproject.toml with the installed version of kubewright recorded, if it differs."""
    now = version("kubewright")
    if project.made_with == now or is_newer(project.made_with, now):
        return {}
    text = (project.root / FILE).read_text(encoding="utf-8")
    changed = with_record(text, now)
    return {} if changed == text else {FILE: changed}


def _with_additions(project: Project, package: str, additions: Sequence[Addition]) -> str:
    source = (project.root / package).read_text(encoding="utf-8")
    for addition in additions:
        source = add_import(source, addition.module, *addition.names)
        source = add_to_operator(
            source,
            project.name,
            controllers=addition.controllers,
            webhooks=addition.webhooks,
            kinds=addition.kinds,
        )
    return source


def _by_hand(package: str, additions: Sequence[Addition]) -> list[str]:
    lines = [f"{package} cannot be edited automatically: add these to its Operator:"]
    for addition in additions:
        lines.append(f"    from {addition.module} import {', '.join(addition.names)}")
        lines += [f"    Operator({name}, ...)" for name in addition.controllers]
        lines += [f"    Operator(..., webhooks=[..., {name}])" for name in addition.webhooks]
        lines += [f"    Operator(..., kinds=[..., {name}])" for name in addition.kinds]
    return lines
