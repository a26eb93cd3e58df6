"""Keep one false alarm out of a strict build: griffe takes the function `kubewright.controller` for the package."""

import logging

FALSE_ALARM = "CyclicAliasError"
LOGGER = "mkdocs.plugins.griffe"


def is_news(record: logging.LogRecord) -> bool:
    """Return True if a record is shown."""
    return FALSE_ALARM not in record.getMessage()


def on_startup(command: str, dirty: bool) -> None:
    """Begin before anything is read."""
    logging.getLogger(LOGGER).addFilter(is_news)
