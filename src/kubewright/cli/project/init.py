"""`kubewright init`: create a project, or add missing files to one."""

from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import click

from kubewright.api import ConfigError
from kubewright.cli.project.additions import print_changes, recorded
from kubewright.cli.project.asking import known
from kubewright.cli.project.settings import Project, read_project
from kubewright.cli.project.trees import write_tree
from kubewright.scaffold import domain_problem, package_name, project_files, project_problem


@click.command()
@click.argument("name", required=False)
@click.option(
    "--domain",
    metavar="DOMAIN",
    default=None,
    help="Domain for the project's API groups, for example example.com.",
)
def command(name: str | None, domain: str | None) -> None:
    """Create the project NAME in a new directory of that name.

    In an existing project, add missing files; existing files are never replaced.
    """
    name = known(name, "NAME", "Name of the project", project_problem)
    folder = Path(name)
    project = _there(folder)
    if project is not None:
        print_changes(project)
        _complete(project)
        return
    _refuse_installed(name)
    domain = known(domain, "--domain", "Domain of its API groups", _domain_or_none, default="")
    files = project_files(name, domain=domain, kubewright=version("kubewright"))
    write_tree(folder, files)
    for path in files:
        click.echo(f"created {folder / path}")
    group = "" if domain else f" --group {name}.example.com"
    click.echo(
        f"\nNext, add a kind:\n  cd {name}\n  kubewright create api{group} --version v1 --kind Example"
    )


def _domain_or_none(domain: str) -> str:
    return domain_problem(domain) if domain else ""


def _there(folder: Path) -> Project | None:
    """Return the project in a directory; raise ConfigError if the directory has other content."""
    try:
        if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
            return None
    except OSError as error:
        raise ConfigError(f"cannot read {folder}: {error.strerror}") from None
    project = read_project(folder.resolve()) if folder.is_dir() else None
    if project is None:
        raise ConfigError(f"{folder} already exists and is not a kubewright project: choose another name")
    return project


def _refuse_installed(name: str) -> None:
    """Raise UsageError if the package would hide an installed one, which may be a dependency."""
    package = package_name(name)
    if find_spec(package) is not None:
        raise click.UsageError(
            f"{name!r} cannot be the project's name: a package named {package!r} is already installed"
        )


def _complete(project: Project) -> None:
    files = project_files(project.name, domain=project.domain, kubewright=version("kubewright"))
    missing = {path: text for path, text in files.items() if not (project.root / path).exists()}
    write_tree(project.root, {**missing, **recorded(project)})
    for path in missing:
        click.echo(f"created {path}")
    click.echo(f"kept {len(files) - len(missing)} existing files")
