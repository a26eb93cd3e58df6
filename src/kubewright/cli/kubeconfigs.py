"""Kubeconfig files that commands write, readable only by their owner."""

import contextlib
import os
from pathlib import Path
from typing import Any

import yaml

from kubewright.api import ConfigError


def write_kubeconfig(path: Path, document: dict[str, Any]) -> None:
    """Write a kubeconfig atomically, readable only by its owner."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            yaml.safe_dump(document, file, sort_keys=False)
        draft.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            draft.unlink()
        raise ConfigError(
            f"cannot write the kubeconfig {path}: {error.strerror}; choose another with --kubeconfig"
        ) from None
