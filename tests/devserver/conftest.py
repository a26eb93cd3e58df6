"""A server for each test, and plain HTTP to talk to it."""

import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from kubewright.devserver import Server

sys.path.insert(0, str(Path(__file__).parent))

from devserver_http import Http


@pytest.fixture
async def server() -> AsyncIterator[Server]:
    async with Server(disable_admission_plugins=["ServiceAccount"]) as running:
        yield running


@pytest.fixture
async def http(server: Server) -> AsyncIterator[Http]:
    async with Http(server) as client:
        yield client
