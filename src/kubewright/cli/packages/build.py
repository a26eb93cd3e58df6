"""`kubewright build`: build the project's image with a builder that is installed on this machine."""

import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from kubewright.api import ConfigError, KubewrightError
from kubewright.cli.project import Project, the_project
from kubewright.cli.project.additions import print_changes

BUILDERS = ("docker", "podman", "buildah")
"""In the order in which they are looked for."""
DOCKERFILE = "Dockerfile"


class BuildError(KubewrightError):
    """The image could not be built, pushed or loaded."""


@click.command()
@click.option(
    "--image", metavar="IMAGE", default="", help="Name of the image; default: the project's name and version."
)
@click.option("--push", is_flag=True, help="Push the image to its registry.")
@click.option(
    "--load", type=click.Choice(["kind"]), default=None, help="Load the image into a local cluster."
)
@click.option(
    "--cluster", metavar="NAME", default="kind", show_default=True, help="Name of the kind cluster."
)
@click.option(
    "--platform",
    metavar="OS/ARCH",
    default="",
    help="Target platform, for example linux/arm64; default: this machine's.",
)
@click.option(
    "--build-arg",
    "build_args",
    metavar="NAME=VALUE",
    multiple=True,
    help="Build argument for the Dockerfile; repeatable.",
)
@click.option(
    "--builder",
    type=click.Choice(BUILDERS),
    default=None,
    help="Build tool; default: the first one that is installed.",
)
def command(
    image: str,
    push: bool,
    load: str | None,
    cluster: str,
    platform: str,
    build_args: Sequence[str],
    builder: str | None,
) -> None:
    """Build the project's container image from its Dockerfile."""
    project = the_project()
    print_changes(project)
    if not (project.root / DOCKERFILE).is_file():
        raise ConfigError(
            f"{project.root / DOCKERFILE} not found: create it with `kubewright init {project.name}` in the parent directory"
        )
    image = image or f"{project.name}:{project.version}"
    tool = _builder(builder)
    kind = _program("kind", "install it, or load the image by hand") if load else ""
    _run([tool, "build", *_options(image, platform, build_args), "."], project.root, f"cannot build {image}")
    if push:
        _run(
            [tool, "push", image],
            project.root,
            f"cannot push {image}: check that you are logged in to its registry",
        )
    if kind:
        for line in _loading(tool, kind, image, cluster, project):
            _run(line, project.root, f"cannot load {image} into the kind cluster {cluster!r}")
    done = [
        f"built {image} with {tool}",
        *(["pushed"] if push else []),
        *([f"loaded into {cluster}"] if kind else []),
    ]
    click.echo(", ".join(done))


def _options(image: str, platform: str, build_args: Sequence[str]) -> Iterator[str]:
    yield from ("--file", DOCKERFILE, "--tag", image)
    if platform:
        yield from ("--platform", platform)
    for argument in build_args:
        yield from ("--build-arg", argument)


def _builder(chosen: str | None) -> str:
    if chosen is not None:
        return _program(chosen, "install it, or omit --builder")
    there = [name for name in BUILDERS if shutil.which(name)]
    if not there:
        raise ConfigError(f"none of {', '.join(BUILDERS)} found on PATH: install one to build images")
    # A client whose engine does not run cannot build. If there is no other, run it anyway: its own error is the clearest.
    return next(filter(_answers, there), there[0])


def _answers(name: str) -> bool:
    try:
        return not subprocess.run([name, "version"], capture_output=True, check=False).returncode
    except OSError:
        return False


def _program(name: str, way: str) -> str:
    if shutil.which(name) is None:
        raise ConfigError(f"{name} not found on PATH: {way}")
    return name


def _loading(tool: str, kind: str, image: str, cluster: str, project: Project) -> Iterator[list[str]]:
    """Yield the commands that load the image: kind reads docker's images, other builders export an archive."""
    if tool == "docker":
        yield [kind, "load", "docker-image", image, "--name", cluster]
        return
    archive = str(project.root / f".{project.name}-image.tar")
    # In this format the archive has the image name that Pods use; `podman save` would name it localhost/IMAGE.
    yield [tool, "push", image, f"docker-archive:{archive}:{image}"]
    try:
        yield [kind, "load", "image-archive", archive, "--name", cluster]
    finally:
        Path(archive).unlink(missing_ok=True)


def _run(line: list[str], folder: Path, failure: str) -> None:
    click.echo(f"$ {' '.join(line)}", err=True)
    try:
        done = subprocess.run(line, cwd=folder, check=False)
    except OSError as error:
        raise BuildError(f"cannot run {line[0]}: {error.strerror}") from None
    if done.returncode:
        raise BuildError(f"{failure} ({line[0]} exited with {done.returncode}; see its output above)")
