"""Show five operators at work on an embedded cluster: `python examples/demo.py [--once] [--ui]`."""

import signal

# Until there is something to clean up, Ctrl-C ends the process without a traceback from the middle of an import.
signal.signal(signal.SIGINT, signal.SIG_DFL)

from show.program import main  # noqa: E402

if __name__ == "__main__":
    main()
