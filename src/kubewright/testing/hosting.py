"""A cluster for tests in a separate process, which ends with its owner.

In the tests' own process it would share process-wide state with them: the GIL, the state of the random numbers, and
garbage collection.
"""

import subprocess
import sys
from pathlib import Path

from kubewright.client import ClusterConfig, load_config
from kubewright.testing.environments import ServerName

_STOP_SECONDS = 30.0


class RunningEnvironment:
    """The cluster of one of the servers, from `start` to `stop`."""

    def __init__(self, name: ServerName) -> None:
        self.name: ServerName = name
        self._process: subprocess.Popen[str] | None = None
        self._kubeconfig: Path | None = None

    def start(self) -> None:
        """Start it, and wait until it is ready."""
        # In its own session, so that Ctrl-C reaches only the tests, which then stop it in order.
        process = subprocess.Popen(
            [sys.executable, "-m", __package__ or "", self.name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._process = process
        assert process.stdout is not None
        line = process.stdout.readline().rstrip("\n")
        if not line:
            self.stop()
            raise RuntimeError(f"the {self.name} cluster did not start: see its output on standard error")
        self._kubeconfig = Path(line)

    def stop(self) -> None:
        """Stop it, and wait until all its processes have ended."""
        process, self._process = self._process, None
        if process is None:
            return
        with process:
            assert process.stdin is not None
            process.stdin.close()
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of the administrator."""
        if self._kubeconfig is None:
            raise RuntimeError(f"the {self.name} cluster was not started")
        return self._kubeconfig

    def config(self) -> ClusterConfig:
        """How the administrator connects."""
        return load_config(self.kubeconfig)
