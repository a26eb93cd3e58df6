"""What operators under test log, kept for the story of a failure."""

import logging
from collections import deque

LOGGER = "kubewright"


class Recorder(logging.Handler):
    """Keep the last lines while any context is open, each line once however many are."""

    def __init__(self, lines: deque[str]) -> None:
        super().__init__()
        self._lines = lines
        self._open = 0
        self._level = logging.NOTSET

    def emit(self, record: logging.LogRecord) -> None:
        """Keep the line."""
        self._lines.append(self.format(record))

    def __enter__(self) -> None:
        logger = logging.getLogger(LOGGER)
        if self._open == 0:
            self._level = logger.level
            logger.addHandler(self)
            if logger.getEffectiveLevel() > logging.INFO:
                logger.setLevel(logging.INFO)
        self._open += 1

    def __exit__(self, *failure: object) -> None:
        self._open -= 1
        if self._open == 0:
            logger = logging.getLogger(LOGGER)
            logger.removeHandler(self)
            logger.setLevel(self._level)
