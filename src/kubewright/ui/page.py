"""Run the live page: its server on the loopback interface, and the sources that feed it."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from kubewright.client import Client, ClusterConfig
from kubewright.journal import Redactor
from kubewright.serving import BindAddress, BindError, BoundHttpServer
from kubewright.ui.access import PageAccess
from kubewright.ui.actions import FIELD_MANAGER, PageActions
from kubewright.ui.cluster_source import ClusterSource
from kubewright.ui.handler import PageHandler, SampleManifest, static_files
from kubewright.ui.history import DEFAULT_LIMIT
from kubewright.ui.operator_source import OperatorSource
from kubewright.ui.record_source import RecordSource
from kubewright.ui.state import PageState, SourceDescription
from kubewright.ui.stream import PageDescription

_log = logging.getLogger("kubewright.ui")
HOST = "127.0.0.1"
_GRACE = 1.0
DEV_SERVER = "+kubewright"
"""Suffix of the version that an embedded server reports."""


class PageOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of the page; port 0 selects a free port."""

    port: int = 0
    port_option: str = "--port"
    """The option of the command that sets the port, for the message if the port is in use."""
    history: int = DEFAULT_LIMIT
    """Bytes of past versions of objects that are kept."""
    allow_writes: bool = False
    """Allow changes on any cluster; a dev cluster may always be changed."""
    operator_namespace: str = ""
    """Namespace in which deployed operators are searched; empty means all namespaces."""
    service_account: str = ""
    """ServiceAccount whose token reads the journals of deployed operators; empty means each operator's own."""
    samples: tuple[Path, ...] = ()
    """Folders with manifests that the page offers on a dev cluster."""


DEFAULTS = PageOptions()


@asynccontextmanager
async def cluster_page(
    config: ClusterConfig, title: str, options: PageOptions = DEFAULTS
) -> AsyncGenerator[str, None]:
    """Serve a page with a cluster and its operators while the context is open; yield the link to it."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(config, field_manager=FIELD_MANAGER))
        # Fail at once if the cluster cannot be reached. Later failures are shown on the page and retried.
        version = await client.server_version()
        dev = version.git_version.endswith(DEV_SERVER)
        state = PageState(redactor=Redactor(), limit=options.history)
        description = PageDescription(
            title=title,
            source=SourceDescription(
                "dev" if dev else "cluster", f"the {'dev ' if dev else ''}cluster at {config.server}"
            ),
            writable=dev or options.allow_writes,
            live=True,
            samples=dev and bool(options.samples),
        )
        link = await _serve(stack, state, lambda: description, options, PageActions(client, state))
        operators = OperatorSource(
            client,
            state,
            operator_namespace=options.operator_namespace,
            service_account=options.service_account,
        )
        async with _running(state, ClusterSource(client, state).run(), operators.run()):
            yield link


@asynccontextmanager
async def record_page(path: Path, options: PageOptions = DEFAULTS) -> AsyncGenerator[str, None]:
    """Serve a page with the content of a record file while the context is open; yield the link to it."""
    state = PageState(limit=options.history)
    source = RecordSource(path, state)
    await asyncio.to_thread(source.check)
    description = PageDescription(
        title=path.name,
        source=SourceDescription("record", f"the record {path}"),
        writable=False,
        live=False,
        samples=False,
    )
    async with AsyncExitStack() as stack:
        link = await _serve(stack, state, lambda: description, options, None)
        async with _running(state, source.run()):
            yield link


async def _serve(
    stack: AsyncExitStack,
    state: PageState,
    describe: Callable[[], PageDescription],
    options: PageOptions,
    actions: PageActions | None,
) -> str:
    """Start the server of a page and return the link to it."""
    access = PageAccess()
    handler = PageHandler(
        state,
        access,
        describe,
        files=await asyncio.to_thread(static_files),
        actions=actions,
        samples=lambda: read_samples(options.samples) if describe().samples else [],
    )
    server = BoundHttpServer(BindAddress(HOST, options.port), handler, grace=_GRACE)
    try:
        await stack.enter_async_context(server)
    except BindError as error:
        raise BindError(f"{error}; choose another with {options.port_option}, 0 is any free port") from None
    # Streams never end by themselves: close them before the server waits for its connections.
    stack.callback(state.close)
    access.bind(server.port)
    return access.link


@asynccontextmanager
async def _running(state: PageState, *sources: Coroutine[Any, Any, None]) -> AsyncGenerator[None, None]:
    """Run the sources of a page while the context is open; an exception of the block is raised without a group."""

    async def guarded(source: Coroutine[Any, Any, None]) -> None:
        try:
            await source
        except Exception as error:
            # An error of the page must not end the program that shows it, such as an operator.
            _log.exception("The live page is no longer updated")
            failures.append(f"the page is no longer updated: {type(error).__name__}: {error}")
            state.set_problems("page", failures)

    failures: list[str] = []
    failure: Exception | None = None
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(guarded(source)) for source in sources]
        try:
            yield
        except Exception as error:
            failure = error
        finally:
            for task in tasks:
                task.cancel()
    if failure is not None:
        raise failure


def read_samples(folders: tuple[Path, ...]) -> list[SampleManifest]:
    """Return the manifests of the folders, each with its file name as title."""
    found = list[SampleManifest]()
    for folder in folders:
        for path in sorted(folder.glob("*.y*ml")):
            title = path.name if len(folders) == 1 else f"{folder.parent.name}: {path.name}"
            found.append(SampleManifest(title, path.read_text(errors="replace")))
    return found
