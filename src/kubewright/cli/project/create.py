"""`kubewright create`: `api`, `webhook` and `types` add to a project, `from-kopf` makes one."""

from pathlib import Path

import click

from kubewright.api import ConfigError, plural_of
from kubewright.cli.project.additions import add, declared_kinds, print_changes
from kubewright.cli.project.asking import known
from kubewright.cli.project.from_kopf import command as from_kopf
from kubewright.cli.project.settings import Project, the_project
from kubewright.cli.project.types import types
from kubewright.scaffold import (
    Addition,
    Declared,
    Unclear,
    add_class_keyword,
    admission_files,
    conversion_files,
    group_problem,
    kind_files,
    kind_problem,
    plural_problem,
    version_files,
    version_problem,
)


@click.group()
def command() -> None:
    """Add a kind, a webhook or classes of other projects' kinds to the project, or convert a kopf operator."""


command.add_command(types)
command.add_command(from_kopf)


@command.command()
@click.option(
    "--group",
    metavar="GROUP",
    default=None,
    help="API group; the project's domain is appended to a group without a dot.",
)
@click.option("--version", metavar="VERSION", default=None, help="API version, for example v1 or v1alpha1.")
@click.option("--kind", metavar="KIND", default=None, help="Kind in CamelCase.")
@click.option("--plural", metavar="NAME", default="", help="Plural name; default: derived from the kind.")
@click.option("--namespaced/--cluster", default=None, help="Scope of the kind.  [default: namespaced]")
def api(
    group: str | None, version: str | None, kind: str | None, plural: str, namespaced: bool | None
) -> None:
    """Add a kind with a controller, a test and a sample, or a new version of an existing kind."""
    project = the_project()
    print_changes(project)
    kind = known(kind, "--kind", "Kind", kind_problem)
    version = known(version, "--version", "Version", version_problem, default="v1" if group else None)
    if plural and (trouble := plural_problem(plural)):
        raise click.UsageError(trouble)
    declared = declared_kinds(project)
    there = [each for each in declared if each.kind == kind]
    usual = there[0].group if there else _usual_group(project)
    group = _whole(
        known(group, "--group", "API group", lambda text: group_problem(_whole(text, project)), usual),
        project,
    )
    same = [each for each in there if each.group == group]
    if any(each.version == version for each in same):
        raise ConfigError(
            f"{kind} {version} of {group} already exists in {same[0].module}: nothing was written"
        )
    if same:
        _check_same_names(same[0], plural, namespaced)
        _add_version(project, version, same)
        return
    plural = plural or plural_of(kind)
    _refuse_taken(kind, plural, group, declared)
    new = kind_files(
        project.module,
        group=group,
        version=version,
        kind=kind,
        plural=plural,
        namespaced=namespaced is not False,
    )
    add(project, [new])


def _check_same_names(first: Declared, plural: str, namespaced: bool | None) -> None:
    """Raise ConfigError if plural or scope differ from those of the existing versions."""
    if plural not in ("", first.plural) or namespaced not in (None, first.namespaced):
        scope = "--namespaced" if first.namespaced else "--cluster"
        raise ConfigError(
            f"{first.kind} has --plural {first.plural} {scope}, and all its versions must have the same: "
            "omit these options"
        )


def _refuse_taken(kind: str, plural: str, group: str, declared: list[Declared]) -> None:
    """Raise ConfigError if the name of the CRD or of the controller is already used."""
    for each in declared:
        if (each.plural, each.group) == (plural, group):
            raise ConfigError(
                f"{plural}.{group} already exists as kind {each.kind} in {each.module}: choose another kind or --plural"
            )
        if each.kind.lower() == kind.lower() and each.kind != kind:
            raise ConfigError(
                f"{kind} differs from {each.kind} in {each.module} only in case: choose another kind"
            )


@command.command()
@click.option("--kind", metavar="KIND", default=None, help="Existing kind in the project.")
@click.option(
    "--version", metavar="VERSION", default="", help="Version of the kind; default: the storage version."
)
@click.option("--defaulting", is_flag=True, help="Add a defaulting webhook.")
@click.option("--validation", is_flag=True, help="Add a validating webhook.")
@click.option("--conversion", is_flag=True, help="Add a conversion webhook.")
def webhook(kind: str | None, version: str, defaulting: bool, validation: bool, conversion: bool) -> None:
    """Add webhooks for a kind, each with its test."""
    if not (defaulting or validation or conversion):
        raise click.UsageError("specify at least one of --defaulting, --validation and --conversion")
    project = the_project()
    print_changes(project)
    kind = known(kind, "--kind", "Kind", kind_problem)
    there = [each for each in declared_kinds(project) if each.kind == kind]
    if not there:
        raise ConfigError(f"kind {kind} not found in this project: add it with `kubewright create api`")
    chosen = [each for each in there if each.version == version] if version else there
    if not chosen:
        raise ConfigError(
            f"{kind} has no version {version}: choose from {', '.join(each.version for each in there)}"
        )
    additions: list[Addition] = []
    for what, enabled in (("defaulting", defaulting), ("validation", validation)):
        if enabled:
            additions.append(admission_files(project.module, project.name, what, chosen[0]))
    if conversion:
        additions.append(conversion_files(project.module, there[0], _spoke(there, version)))
    add(project, additions)


def _usual_group(project: Project) -> str | None:
    return f"{project.name}.{project.domain}" if project.domain else None


def _whole(group: str, project: Project) -> str:
    return group if "." in group or not project.domain else f"{group}.{project.domain}"


def _spoke(versions: list[Declared], version: str) -> Declared:
    hub, *spokes = versions
    if not spokes:
        raise ConfigError(
            f"{hub.kind} has one version: add another with `kubewright create api --kind {hub.kind} --version V`"
        )
    chosen = [each for each in spokes if each.version == version] if version else spokes
    if len(chosen) != 1:
        names = ", ".join(each.version for each in spokes)
        raise ConfigError(
            f"{hub.kind} {hub.version} is the storage version: choose the version to convert with --version ({names})"
        )
    return chosen[0]


def _add_version(project: Project, version: str, there: list[Declared]) -> None:
    old = there[0]
    if not (old.spec and old.status):
        raise ConfigError(f"{old.class_name} has no spec and status classes: add version {version} by hand")
    path = f"{old.module.replace('.', '/')}.py"
    edited: dict[str, str] = {}
    try:
        source = Path(project.root, path).read_text(encoding="utf-8")
        addition = version_files(project.module, version=version, old=old, source=source)
    except (Unclear, UnicodeDecodeError, OSError):
        raise ConfigError(
            f"{path}: class {old.class_name} not found: add version {version} by hand"
        ) from None
    if len(there) == 1:
        # One of several versions is stored: the one in which objects exist already.
        try:
            edited[path] = add_class_keyword(source, old.class_name, "stored", "True")
        except Unclear:
            raise ConfigError(
                f"{path}: add stored=True to class {old.class_name} first: it must be the storage version"
            ) from None
    add(project, [addition], edited)
