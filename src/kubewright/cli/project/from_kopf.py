"""`kubewright create from-kopf`: a project from a kopf operator."""

import ast
from importlib.metadata import version
from pathlib import Path
from typing import Any, cast

import click

from kubewright.api import ConfigError, JsonObject
from kubewright.cli.documents import read_documents
from kubewright.cli.project.trees import write_tree
from kubewright.documents import DocumentError, read_yaml
from kubewright.scaffold import package_name, project_problem
from kubewright.scaffold.external import DefinitionError
from kubewright.scaffold.from_kopf import KopfError, KopfModule, convert


@click.command("from-kopf")
@click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "-f",
    "--filename",
    "crds",
    metavar="CRDS.yaml",
    multiple=True,
    type=click.Path(path_type=Path),
    help="File or directory with the CRDs; default: YAML files beside FILE and one level below.",
)
@click.option(
    "--output-dir",
    metavar="DIR",
    type=click.Path(path_type=Path),
    default=None,
    help="New directory of the project, whose last part is its name; default: the first FILE's name and -operator.",
)
def command(files: tuple[Path, ...], crds: tuple[Path, ...], output_dir: Path | None) -> None:
    """Convert a kopf operator into a project; FILE is read, never run.

    Pass all files of the operator. MIGRATION.md in the new project lists what you have to decide.
    """
    sources = [_source(path) for path in files]
    _refuse_missing_modules(files, sources)
    root = output_dir or Path(f"{sources[0].module.replace('_', '-')}-operator")
    name = root.name.replace("_", "-").lower()
    if problem := project_problem(name):
        raise click.UsageError(f"{problem}; choose it with --output-dir")
    if root.exists():
        raise ConfigError(f"{root} already exists: choose another directory with --output-dir")
    if package_name(name) in {source.module for source in sources}:
        raise click.UsageError(
            f"{name!r} is also the name of a module: choose another name with --output-dir"
        )
    documents = read_documents(list(crds)) if crds else _found_beside(files)
    try:
        converted = convert(sources, documents, name=name, kubewright=version("kubewright"))
    except (KopfError, DefinitionError) as error:
        raise ConfigError(str(error)) from None
    write_tree(root, converted.files)
    for path in converted.files:
        click.echo(f"created {root / path}")
    click.echo(
        f"\n{converted.decisions} to decide and {converted.reviews} to review: read {root / 'MIGRATION.md'} next.\n"
        f"Functions that need a decision raise NotImplementedError until you have made it."
    )


def _source(path: Path) -> KopfModule:
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: not a Python file: it is not UTF-8 text") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    if not path.stem.isidentifier():
        raise ConfigError(f"{path}: {path.stem!r} cannot be the name of a module: rename the file")
    return KopfModule(path.name, path.stem, text)


def _refuse_missing_modules(files: tuple[Path, ...], sources: list[KopfModule]) -> None:
    """Raise ConfigError if a file imports a module beside it that was not given."""
    given = {source.module for source in sources}
    if len(given) < len(sources):
        raise click.UsageError("two of the files have the same name: rename one of them")
    for path, source in zip(files, sources, strict=True):
        try:
            tree = ast.parse(source.text)
        except (SyntaxError, ValueError):
            continue
        for node in ast.walk(tree):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                module = name.partition(".")[0]
                beside = path.parent / f"{module}.py"
                if module not in given and beside.is_file():
                    raise ConfigError(f"{path}: imports {module}: pass {beside} as well")


def _found_beside(files: tuple[Path, ...]) -> list[JsonObject]:
    """Return the CRDs in YAML files beside the files and one level below; invalid YAML, as in charts, is skipped."""
    folders = list(dict.fromkeys(path.parent for path in files))
    paths = [
        each for folder in folders for depth in ("*.y*ml", "*/*.y*ml") for each in sorted(folder.glob(depth))
    ]
    found: list[JsonObject] = []
    for path in dict.fromkeys(paths):
        try:
            documents = [each.value for each in read_yaml(path.read_bytes())]
        except (DocumentError, OSError):
            continue
        crds = [cast(JsonObject, each) for each in documents if _is_crd(each)]
        if crds:
            click.echo(f"using the CRDs of {path}", err=True)
        found += crds
    return found


def _is_crd(document: Any) -> bool:
    return isinstance(document, dict) and cast(JsonObject, document).get("kind") == "CustomResourceDefinition"
