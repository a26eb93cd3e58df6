"""Entry point of the command line: the table of commands, or without click the operator of a Deployment.

A deployed operator is started with `kubewright run MODULE` and a few options. click, the help texts and everything that
the other options need would take a tenth of its start. So arguments that `run.arguments` understands completely are run at once, and
all others, the wrong ones among them, are left to the table of commands in `app`, which loads each command on demand.
"""

import gc
import os
import sys
from importlib import import_module
from typing import Any

from kubewright.cli.exits import error_line, exit_code_of
from kubewright.cli.run.arguments import parse_arguments

APP = "kubewright.cli.app"
RUN = "kubewright.cli.run.operator"
_COMPLETION = "_KUBEWRIGHT_COMPLETE"


def main(arguments: list[str] | None = None) -> None:
    """Run the command; exit with 0 (done), 1 (failed) or 2 (wrong usage)."""
    words = sys.argv[1:] if arguments is None else arguments
    options = None if _COMPLETION in os.environ else parse_arguments(words)
    if options is None:
        load_module(APP).main(arguments)
    try:
        load_module(RUN).run_in_process(options)
    except (Exception, KeyboardInterrupt) as error:
        print(error_line(error), file=sys.stderr)
        sys.exit(exit_code_of(error))
    sys.exit(0)


def load_module(module: str) -> Any:
    """Import a module and exempt its objects from garbage collection: they live as long as the process."""
    if module not in sys.modules:
        gc.disable()
        try:
            import_module(module)
        finally:
            gc.freeze()
            gc.enable()
    return sys.modules[module]
