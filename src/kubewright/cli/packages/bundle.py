"""`kubewright bundle`: the project as a bundle for OLM."""

from pathlib import Path

import click

from kubewright.cli.packages.catalogue import package_of
from kubewright.cli.packages.examples import written_samples
from kubewright.cli.packages.manifests import Stale
from kubewright.cli.packages.rendered import differences, write_rendered
from kubewright.cli.project import the_project
from kubewright.cli.project.additions import print_changes
from kubewright.cli.target import load_operator
from kubewright.generate import Settings, bundle


@click.command()
@click.option(
    "--image", metavar="IMAGE", required=True, help="Image of the operator, preferably with a digest."
)
@click.option(
    "--version", metavar="VERSION", default="", help="Version of the bundle; default: the project's."
)
@click.option(
    "--replaces", metavar="BUNDLE", default="", help="Bundle that this one replaces, for example shop.v0.1.0."
)
@click.option(
    "--output-dir",
    "output",
    type=click.Path(path_type=Path, file_okay=False),
    default=None,
    help="Directory for bundle/ and bundle.Dockerfile; default: the project.",
)
@click.option("--check", is_flag=True, help="Do not write files; fail if the bundle is out of date.")
def command(image: str, version: str, replaces: str, output: Path | None, check: bool) -> None:
    """Generate an OLM bundle: ClusterServiceVersion, CRDs, annotations and a Dockerfile.

    Metadata for the catalog is read from pyproject.toml: [project] and
    [tool.kubewright.bundle] (display_name, description, provider, maintainers, links, keywords, categories,
    icon, channels, capability, maturity, minimum_kubernetes).
    """
    project = the_project()
    print_changes(project)
    package = package_of(project, version=version, replaces=replaces)
    settings = Settings(image=image, examples=written_samples(project.target))
    tree = bundle(load_operator(project.target), package, settings)
    folder = output or project.root
    if check:
        found = differences(folder, tree, among=("bundle",))
        for line in found:
            click.echo(line)
        if found:
            raise Stale(f"{folder / 'bundle'} is out of date: run again without --check")
        return
    write_rendered(folder, tree, among=("bundle",))
    click.echo(f"wrote {package.name}.v{package.version}: {folder / 'bundle'}")
