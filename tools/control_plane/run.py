"""Start a control plane in the foreground, or stop one that was started elsewhere."""

import argparse
import asyncio
import contextlib
import fcntl
import os
import signal
import sys
import time
from collections.abc import Generator
from pathlib import Path

import binaries
import yaml

from kubewright.testing.controlplane import ADMIN, ControlPlane, ControlPlaneError

# Marks a kubeconfig as one of ours, so that no other is ever overwritten or removed.
MARK = "# A local control plane's, removed when that stops.\n"


class UsageError(Exception):
    """The requested action is not possible; the text says why."""


class Instance:
    """The running control plane that a kubeconfig stands for: a lock beside it shows that it is running."""

    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self.record = kubeconfig.with_name(f"{kubeconfig.name}.pid")

    @contextlib.contextmanager
    def held(self) -> Generator[None]:
        """Be the one instance for the kubeconfig; leave neither file behind."""
        if self.kubeconfig.exists() and not self._ours():
            raise UsageError(f"{self.kubeconfig} exists and is not a control plane's: name another file")
        self.kubeconfig.parent.mkdir(parents=True, exist_ok=True)
        with self.record.open("a+") as record:
            if not _locked(record.fileno()):
                raise UsageError(
                    f"one is running with {self.kubeconfig} already: scripts/control-plane stop ends it"
                )
            try:
                record.truncate(0)
                record.write(str(os.getpid()))
                record.flush()
                yield
            finally:
                if self.kubeconfig.exists() and self._ours():
                    self.kubeconfig.unlink()
                self.record.unlink(missing_ok=True)

    def write(self, document: str) -> None:
        """Put the kubeconfig in place, whole or not at all, for its owner's eyes."""
        temporary = self.kubeconfig.with_name(f".{self.kubeconfig.name}.new")
        temporary.unlink(missing_ok=True)
        temporary.touch(mode=0o600)
        temporary.write_text(MARK + document)
        temporary.replace(self.kubeconfig)

    def stop(self, timeout: float = 30.0) -> None:
        """Ask the instance to end, and wait until it has."""
        try:
            record = self.record.open("r+")
        except FileNotFoundError:
            raise UsageError(f"none is running with {self.kubeconfig}") from None
        with record:
            if _locked(record.fileno()):
                self.record.unlink(missing_ok=True)
                raise UsageError(f"none is running with {self.kubeconfig} any more")
            os.kill(int(record.read()), signal.SIGTERM)
            until = time.monotonic() + timeout
            while not _locked(record.fileno()):
                if time.monotonic() > until:
                    raise UsageError(f"it has not ended within {timeout:g} s")
                time.sleep(0.05)

    def _ours(self) -> bool:
        return self.kubeconfig.read_text().startswith(MARK)


def _locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


async def start(instance: Instance, folder: Path, users: dict[str, list[str]], *, controllers: bool) -> None:
    """Run a control plane until it fails or this task is cancelled."""
    task = asyncio.current_task()
    assert task is not None
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, task.cancel)
    began = time.monotonic()
    async with ControlPlane(folder, controllers=controllers, users=users) as plane:
        document = yaml.safe_load(plane.kubeconfig.read_text())
        for user, groups in users.items():
            other = yaml.safe_load((await plane.add_user(user, groups)).read_text())
            for section in ("users", "contexts"):
                document[section] += other[section]
        instance.write(yaml.safe_dump(document, sort_keys=False))
        print(
            f"control plane ready in {time.monotonic() - began:.1f} s at {plane.url}; logs in {plane.directory}\n"
            f"export KUBECONFIG={instance.kubeconfig}\nCtrl-C ends it",
            flush=True,
        )
        await plane.wait_ended()


def _user(text: str) -> tuple[str, list[str]]:
    name, _, groups = text.partition(":")
    if not name or name == ADMIN:
        raise argparse.ArgumentTypeError("a user is NAME or NAME:GROUP,GROUP")
    return name, [group for group in groups.split(",") if group]


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="scripts/control-plane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        default=binaries.cache_folder() / "kubeconfig",
        help="where the admin's kubeconfig is put while it runs (default: %(default)s)",
    )
    command = commands.add_parser("start", parents=[common], help="run in the foreground until Ctrl-C")
    command.add_argument(
        "--kubernetes",
        metavar="VERSION",
        default="",
        help=f"{binaries.supported_range()}, or a release of them",
    )
    command.add_argument(
        "--user",
        type=_user,
        action="append",
        default=[],
        metavar="NAME[:GROUP,...]",
        help="another user, with a context of that name (repeatable)",
    )
    command.add_argument(
        "--no-controllers", action="store_true", help="without kube-controller-manager and kube-scheduler"
    )
    commands.add_parser("stop", parents=[common], help="end one that runs elsewhere")
    return parser


def main() -> int:
    """Run the command and return its exit code."""
    arguments = _parser().parse_args()
    instance = Instance(arguments.kubeconfig.absolute())
    try:
        if arguments.command == "stop":
            instance.stop()
            return 0
        folder = binaries.provide(arguments.kubernetes)
        with instance.held():
            asyncio.run(
                start(instance, folder, dict(arguments.user), controllers=not arguments.no_controllers)
            )
    except (KeyboardInterrupt, asyncio.CancelledError):
        return 0
    except (UsageError, binaries.BuildError, ControlPlaneError, OSError) as error:
        print(f"control-plane: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
