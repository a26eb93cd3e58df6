"""`kubewright manifests`."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from kubewright.api import KubewrightError, names
from kubewright.api.scoping import NamespaceSelector
from kubewright.cli.options import (
    namespace_selector_option,
    namespaces_option,
    policies_option,
    selector_option,
    target_argument,
)
from kubewright.cli.packages.examples import written_samples
from kubewright.cli.packages.rendered import differences, write_rendered
from kubewright.cli.project import find_project
from kubewright.cli.target import load_operator
from kubewright.controller import Operator
from kubewright.generate import (
    DEFAULT_IMAGE,
    HEADER,
    PARTS,
    USUAL_PARTS,
    Chart,
    Settings,
    WebhookReach,
    files_of,
    helm,
    installer,
    is_idle,
    kustomize,
    manifests,
    plain_yaml,
    to_yaml,
    with_policies,
)

FORMATS = ("yaml", "kustomize", "helm")


class Stale(KubewrightError):
    """Generated files are out of date."""


class NothingToRun(KubewrightError):
    """An operator whose webhooks are all policies, and which has no controllers."""

    def __init__(self, operator: Operator) -> None:
        super().__init__(
            f"operator {operator.name!r} has no controllers, and policies replace all of its webhooks: there is "
            "nothing to run; apply the output of `kubewright manifests --policies`"
        )


def as_policies(operator: Operator, settings: Settings) -> tuple[Operator, Settings]:
    """Replace webhooks by policies, and report on standard error which stay and why."""
    declared = len(operator.webhooks.admissions)
    operator, settings, kept = with_policies(operator, settings)
    for each in kept:
        click.echo(str(each), err=True)
    click.echo(f"policies replace {declared - len(kept)} of {declared} admission webhooks", err=True)
    return operator, settings


def render(
    operator: Operator,
    parts: Sequence[str] = USUAL_PARTS,
    *,
    namespaces: Sequence[str] = (),
    image: str = DEFAULT_IMAGE,
) -> list[dict[str, Any]]:
    """Render the chosen parts in the order in which they must be applied."""
    return manifests(operator, parts, Settings(image=image, namespaces=namespaces))


def _parts(ctx: click.Context, parameter: click.Parameter, value: str) -> Sequence[str]:
    chosen = [part.strip() for part in value.split(",") if part.strip()]
    for part in chosen:
        if part not in PARTS:
            raise click.BadParameter(f"{part!r} is not a part: choose from {', '.join(PARTS)}")
    return chosen


def _account(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value and value.count("/") != 1:
        raise click.BadParameter(f"{value!r} is not a NAMESPACE/NAME of a ServiceAccount")
    return value


def _subject(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value.count("/") > 1 or value.startswith("/") or value.endswith("/"):
        raise click.BadParameter(f"{value!r} is neither a user nor NAMESPACE/NAME of a ServiceAccount")
    return value


def _name(ctx: click.Context, parameter: click.Parameter, value: str) -> str:
    if value and (problems := names.dns1123_label(value)):
        raise click.BadParameter(f"{value!r}: {problems[0]}")
    return value


@click.command()
@target_argument
@click.option(
    "--only",
    metavar="PARTS",
    callback=_parts,
    default=",".join(USUAL_PARTS),
    show_default=True,
    help="Parts to print, separated by commas.",
)
@click.option(
    "--with",
    "further",
    metavar="PARTS",
    callback=_parts,
    default="",
    help="Optional parts to add, separated by commas.",
)
@click.option("--format", "form", type=click.Choice(FORMATS), default="yaml", show_default=True)
@click.option(
    "--output-dir",
    "output",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Directory to write files to.",
)
@click.option(
    "--check", is_flag=True, help="Do not write files; fail if those in --output-dir are out of date."
)
@namespaces_option(
    "Namespace to which the operator is limited; repeatable. With namespaces by label: Roles in these namespaces only."
)
@namespace_selector_option("Limit the operator to the namespaces with these labels, such as team=a.")
@selector_option("Limit the operator to the objects with these labels, such as track!=canary.")
@click.option(
    "--name",
    metavar="NAME",
    callback=_name,
    default="",
    help="Name of a second Deployment with another --selector; CRDs and webhooks are those of the first one.",
)
@click.option(
    "--image", metavar="IMAGE", default=DEFAULT_IMAGE, show_default=True, help="Image of the operator."
)
@click.option(
    "--replicas",
    metavar="NUMBER",
    type=click.IntRange(min=0),
    default=None,
    help="Number of replicas; default: the declared number.",
)
@click.option(
    "--installer",
    "subject",
    callback=_subject,
    default="",
    metavar="SUBJECT",
    help="Print the RBAC rules that this user, or ServiceAccount NAMESPACE/NAME, needs to install the operator.",
)
@click.option(
    "--webhook-reach",
    type=click.Choice(get_args(WebhookReach)),
    default="service",
    show_default=True,
    help="url: also grant the right to register webhooks, for an operator that runs outside the cluster; requires --only rbac.",
)
@policies_option
@click.option(
    "--metrics-reader",
    callback=_account,
    default="",
    metavar="NAMESPACE/NAME",
    help="ServiceAccount to grant access to the metrics; requires the part monitoring.",
)
def command(
    target: str,
    only: Sequence[str],
    further: Sequence[str],
    form: str,
    output: Path | None,
    check: bool,
    namespaces: Sequence[str],
    namespace_selector: NamespaceSelector | None,
    selector: str,
    name: str,
    image: str,
    replicas: int | None,
    metrics_reader: str,
    subject: str,
    webhook_reach: WebhookReach,
    policies: bool,
) -> None:
    """Print the manifests of TARGET as YAML, or write them to files.

    The parts are crds, rbac, webhooks and deployment, and the optional monitoring (a ServiceMonitor, alert rules and a
    dashboard), network (a NetworkPolicy) and samples. Kustomize and Helm output contains all parts. --installer prints
    the RBAC rules that a user needs to apply the manifests, for an administrator to grant. --policies prints
    ValidatingAdmissionPolicies and MutatingAdmissionPolicies instead of webhooks whose functions can be expressed in CEL,
    and reports which functions stay webhooks, and why.
    """
    if subject and (output or check or form != "yaml" or further):
        raise click.UsageError(
            "--installer prints plain YAML for all parts: it can be combined with -n and --image only"
        )
    if output is None and (check or form != "yaml"):
        raise click.UsageError(f"{'--check' if check else f'--format {form}'} needs --output-dir DIRECTORY")
    if webhook_reach == "url" and [*only, *further] != ["rbac"]:
        raise click.UsageError(
            "--webhook-reach url is for a run outside the cluster: use it with --only rbac"
        )
    operator = load_operator(target)
    if name and (name == operator.name or not selector):
        raise click.UsageError(
            f"--name {name} is for a second Deployment beside that of {operator.name}: "
            "choose another name, and its objects with --selector"
        )
    settings = Settings(
        image=image,
        namespaces=namespaces,
        namespace_selector=namespace_selector,
        selector=selector,
        name=name,
        replicas=replicas,
        metrics_reader=metrics_reader,
        examples=written_samples(target),
        webhook_reach=webhook_reach,
    )
    if policies:
        operator, settings = as_policies(operator, settings)
    if subject:
        click.echo(to_yaml(installer(operator, subject, settings)), nl=False)
        return
    parts = [*only, *further]
    if output is None:
        click.echo(to_yaml(manifests(operator, parts, settings)), nl=False)
        return
    tree = _tree(form, operator, parts, settings)
    if not check:
        write_rendered(output, tree)
        click.echo(f"wrote {output}: {len(tree)} files")
        return
    found = differences(output, tree)
    for line in found:
        click.echo(line)
    if found:
        raise Stale(f"{output} is out of date: run the same command without --check")


def _tree(form: str, operator: Operator, parts: Sequence[str], settings: Settings) -> Mapping[str, str]:
    if form == "kustomize":
        return kustomize(operator, settings)
    if form == "helm":
        if is_idle(operator):
            raise NothingToRun(operator)
        return helm(operator, _chart(operator, settings.name), settings)
    files = files_of(manifests(operator, parts, settings))
    return {name: HEADER + plain_yaml(document) for name, document in files.items()}


def _chart(operator: Operator, name: str) -> Chart:
    project = find_project()
    if project is None:
        return Chart(name=name or operator.name)
    description = str(project.package.get("description", ""))
    return Chart(name=name or operator.name, version=project.version, description=description)
