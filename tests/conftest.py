"""What holds for every test: blocking the event loop fails it, and a slow machine does not."""

from collections.abc import Iterator

import hypothesis
import pytest
from blockbuster import blockbuster_ctx

# Examples are judged by what they find, never by how long a busy machine takes for one.
hypothesis.settings.register_profile("kubewright", deadline=None)
hypothesis.settings.load_profile("kubewright")


@pytest.fixture(autouse=True)
def unblocked_event_loop() -> Iterator[None]:
    """Fail a test in which our own code makes a blocking call on the event loop."""
    with blockbuster_ctx("kubewright"):
        yield
