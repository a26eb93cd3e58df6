"""Changes that matter for existing projects, by version of kubewright."""

from collections.abc import Mapping, Sequence

# By the version that introduced them; each line is a change that matters for existing projects.
CHANGES: Mapping[str, Sequence[str]] = {
    "0.1.0": (
        "[tool.kubewright] in pyproject.toml names the target, so commands inside the project need none",
        "requirements.lock pins the packages of the image; the Dockerfile installs from it",
    ),
}


def changes_between(made_with: str, now: str, changes: Mapping[str, Sequence[str]] = CHANGES) -> list[str]:
    """Return the changes since a project was last updated, oldest first."""
    since, until = _order(made_with), _order(now)
    return [
        f"{version}: {line}"
        for version, lines in sorted(changes.items(), key=lambda entry: _order(entry[0]))
        if since < _order(version) <= until
        for line in lines
    ]


def is_newer(made_with: str, now: str) -> bool:
    """Return True if a project was last updated by a later version than this."""
    return _order(made_with) > _order(now)


def _order(version: str) -> tuple[int, ...]:
    parts = version.partition("+")[0].split(".")
    return tuple(int("".join(char for char in part if char.isdigit()) or 0) for part in parts)
