"""The files of a new project."""

import re

from kubewright.scaffold.naming import package_name
from kubewright.scaffold.texts import fill, lock

LOCK = "requirements.lock"
_FILES = {
    "pyproject.toml": "pyproject.toml",
    "README.md": "README.md",
    "AGENTS.md": "AGENTS.md",
    "Dockerfile": "Dockerfile",
    ".dockerignore": "dockerignore",
    ".gitignore": "gitignore",
    ".github/workflows/ci.yml": "ci.yml",
    ".vscode/launch.json": "launch.json",
    "tests/test_samples.py": "test_samples.py",
}
_RECORD = re.compile(r'(?ms)(^\[tool\.kubewright\]$.*?^version\s*=\s*")[^"]*(")')


def project_files(name: str, *, domain: str, kubewright: str) -> dict[str, str]:
    """Write a project without kinds."""
    module = package_name(name)
    group = "" if domain else f" --group {name}.example.com"
    values = {
        "name": name,
        "module": module,
        "domain": domain,
        "group_option": group,
        "kubewright": kubewright,
    }
    files = {path: fill(template, **values) for path, template in _FILES.items()}
    files[f"{module}/__init__.py"] = fill("package.py", **values)
    files[LOCK] = lock()
    return files


def with_record(pyproject: str, kubewright: str) -> str:
    """Record in pyproject.toml the version that last updated the project."""
    return _RECORD.sub(rf"\g<1>{kubewright}\g<2>", pyproject, count=1)
