"""Download Apache Pulsar's standalone server from Maven repositories into the user's cache directory."""

import re
import shutil
import subprocess
import tarfile
from pathlib import Path

from cache import Unavailable, cache_folder, locked, say

VERSION = "4.0.8"
ARTIFACT = f"org.apache.pulsar:pulsar-server-distribution:{VERSION}:tar.gz:bin"


def cached() -> Path | None:
    """Return the unpacked server, or None if it is missing or Java is."""
    folder = cache_folder("pulsar") / VERSION
    return folder if folder.is_dir() and shutil.which("java") else None


def provide() -> Path:
    """Return the server's directory; download it if it is missing."""
    place = cache_folder("pulsar")
    with locked(place):
        if (found := cached()) is not None:
            return found
        for program in ("java", "mvn"):
            if shutil.which(program) is None:
                raise Unavailable(
                    f"Apache Pulsar comes with Maven and runs on Java: there is no {program} on PATH"
                )
        say(f"fetching Apache Pulsar {VERSION} (245 MB) ...")
        _maven(place, "dependency:get", "-Dtransitive=false", f"-Dartifact={ARTIFACT}")
        _maven(place, "-o", "dependency:copy", f"-Dartifact={ARTIFACT}", f"-DoutputDirectory={place}")
        archive = place / f"pulsar-server-distribution-{VERSION}-bin.tar.gz"
        _unpack(archive, place / VERSION)
        archive.unlink()
        return place / VERSION


def _maven(folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        ["mvn", "-B", "-q", *arguments],
        cwd=folder,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
        raise Unavailable(f"Apache Pulsar could not be fetched:\n{output[-3000:]}")


def _unpack(archive: Path, folder: Path) -> None:
    """Unpack the libraries, whole or not at all."""
    temporary = folder.with_name(".new")
    shutil.rmtree(temporary, ignore_errors=True)
    with tarfile.open(archive) as packed:
        packed.extractall(temporary, filter="data")
    (inner,) = temporary.iterdir()
    inner.replace(folder)
    temporary.rmdir()
