"""Write the Dockerfiles of the examples from one text; `--check` only compares."""

import argparse
import sys
from pathlib import Path
from string import Template

EXAMPLES = Path(__file__).resolve().parent.parent / "examples"

DOCKERFILE = Template("""\
# From the root of the checkout: docker build -f $folder/Dockerfile -t $tag .
$about# Written by tools/generate_example_images.py. The same locks give the same image; for the same base as well, give PYTHON with a digest.
ARG PYTHON=python:3.13-slim

FROM $${PYTHON} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
RUN python -m venv --without-pip /venv
COPY $locks /build/
RUN pip --python /venv/bin/python install --no-compile --only-binary :all: --require-hashes $installs
$copies
# The root file system is read-only in a cluster: compile now, and so that it counts whatever time a copied file gets.
RUN /venv/bin/python -m compileall -q --invalidation-mode unchecked-hash /venv/lib /app

FROM $${PYTHON}
ENV PATH=/venv/bin:$$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
RUN python -m pip uninstall --yes --quiet --root-user-action ignore pip \\
    && python -m compileall -q --invalidation-mode unchecked-hash "$$(python -c 'import os; print(os.path.dirname(os.__file__))')"
COPY --from=build /venv /venv
COPY --from=build /app /app
WORKDIR /app
# A numeric user, so that Kubernetes can verify that it is not root.
USER 65532:65532
ENTRYPOINT [$entry]
""")

TAGS = {"pulsarconsumer": "pulsarconsumer-operator"}
"""Images that are called otherwise than their folder: the Pods of this operator run the image of that name."""
OPERATORS_LOCK = {"vmgroup": "examples/vmgroup/requirements.txt"}
"""What an operator needs beside kubewright."""


def operator_image(name: str) -> str:
    """Render the Dockerfile of an operator."""
    locks = ["requirements/runtime.txt", *filter(None, [OPERATORS_LOCK.get(name)])]
    return _render(
        f"examples/{name}",
        TAGS.get(name, name),
        locks,
        f"COPY src/kubewright /app/kubewright\nCOPY examples/{name} /app/{name}",
        ["python", "-c", "from kubewright.cli import main; main()", "run", name],
    )


def consumer_image() -> str:
    """Render the Dockerfile of what the Pods of PulsarConsumer run."""
    return _render(
        "examples/pulsarconsumer/app",
        "pulsarconsumer",
        ["examples/pulsarconsumer/requirements.txt"],
        "COPY examples/pulsarconsumer/app /app/consumer",
        ["python", "consumer/consumer.py"],
        "# What the Pods run; `--entrypoint python IMAGE consumer/producer.py` sends a message instead.\n",
    )


def _render(folder: str, tag: str, locks: list[str], copies: str, entry: list[str], about: str = "") -> str:
    return DOCKERFILE.substitute(
        folder=folder,
        tag=tag,
        about=about,
        locks=" ".join(locks),
        installs=" ".join(f"-r /build/{Path(lock).name}" for lock in locks),
        copies=copies,
        entry=", ".join(f'"{word}"' for word in entry),
    )


def images() -> dict[Path, str]:
    """Return the text of every Dockerfile by its path."""
    operators = sorted(file.parent for file in EXAMPLES.glob("*/controller.py"))
    made = {folder / "Dockerfile": operator_image(folder.name) for folder in operators}
    made[EXAMPLES / "pulsarconsumer" / "app" / "Dockerfile"] = consumer_image()
    return made


def main() -> None:
    """Write what differs, or name it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail where a file differs")
    check: bool = parser.parse_args().check
    stale = {file: text for file, text in images().items() if not file.exists() or file.read_text() != text}
    for file, text in stale.items():
        if check:
            print(f"{file}: run {Path(__file__).name}", file=sys.stderr)
        else:
            file.write_text(text)
    sys.exit(1 if check and stale else 0)


if __name__ == "__main__":
    main()
