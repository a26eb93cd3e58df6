"""The operators of a cluster: their reconciles and current state, read from the journals that they serve.

Each operator is polled for the reconciles after the last known one. The request waits up to a second for the next
reconcile, so the state of queues is at most that old. An operator that cannot be reached any more is reported as a
problem and its reconciles stay; it is found again when it is back: on this machine by its address file, in the cluster
by its Pod.
"""

import asyncio
from urllib.parse import urlencode, urlsplit

import msgspec

from kubewright.api import ApiError, ConnectionFailed
from kubewright.client import ApiRequest, Client
from kubewright.journal import ReconcileRecord
from kubewright.ui.state import (
    ControllerState,
    LeaseSummary,
    OperatorState,
    PageState,
    PlannedRetry,
    Throttling,
)
from kubewright.why.endpoints import JournalEndpoint, cluster_endpoints, local_endpoints

SEARCH_SECONDS = 1.0
CLUSTER_SEARCH_SECONDS = 300.0
"""Maximum time between two searches for Pods: the tokens that read their journals are valid for ten minutes."""
EMPTY_SEARCH_SECONDS = 25.0
"""Pause after a search that found no Pod whose journal can be read."""
GONE_SECONDS = 5.0
"""Pause before the next search after an operator has ended."""
POLL_SECONDS = 0.2
WAIT_SECONDS = 1.0
_TIMEOUT = 10.0


class _JournalResponse(msgspec.Struct, rename="camel"):
    operator: str
    instance: str = ""
    cluster: str = ""
    dropped: int = 0
    leading: bool = True
    lease: str = ""
    holder: str = ""
    problems: list[str] = []
    controllers: list[ControllerState] = []
    retries: list[PlannedRetry] = []
    throttled: Throttling = Throttling()
    reconciles: list[ReconcileRecord] = []


_responses = msgspec.json.Decoder(_JournalResponse)


class _Position(msgspec.Struct):
    """How far the journal of one endpoint has been read."""

    instance: str = ""
    last: int = 0


class _FollowedOperator:
    """One operator whose journal is read, or was read until it ended."""

    def __init__(self, endpoint: JournalEndpoint, position: "_Position") -> None:
        self.endpoint = endpoint
        self.answer: _JournalResponse | None = None
        self.name = ""
        """The name on the page; empty until the first response."""
        self.position = position
        self.other_cluster = False
        self.failure = ""
        """Why the connection ended."""
        self.problem = ""


class OperatorSource:
    """Find the operators that reconcile a cluster's objects, and report what they do to the page."""

    def __init__(
        self,
        client: Client,
        state: PageState,
        *,
        operator_namespace: str = "",
        service_account: str = "",
    ) -> None:
        self._client = client
        self._state = state
        self._server = _address(client.config.server)
        self._operator_namespace = operator_namespace
        self._service_account = service_account
        self._followed: dict[str, tuple[_FollowedOperator, asyncio.Task[bool]]] = {}
        self._positions: dict[str, _Position] = {}
        self._gone: dict[str, str] = {}
        """Problems of operators that have ended, by name."""
        self._unreachable: dict[str, str] = {}
        """Problems of Pods whose journal could not be read, by endpoint."""
        self._search_problems: list[str] = []

    async def run(self) -> None:
        """Follow all operators until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._search_cluster(group))
            while True:
                self._follow(group, await local_endpoints())
                await asyncio.sleep(SEARCH_SECONDS)

    async def _search_cluster(self, group: asyncio.TaskGroup) -> None:
        """Read the journals of operators in Pods; search again when one has ended, or before the tokens expire."""
        while True:
            search = cluster_endpoints(
                self._client, namespace=self._operator_namespace, service_account=self._service_account
            )
            async with search as found:
                self._search_problems = found.problems
                sources = {endpoint.source for endpoint in found.endpoints}
                self._unreachable = {key: text for key, text in self._unreachable.items() if key in sources}
                followed = self._follow(group, found.endpoints)
                self._report()
                await _until_next_search(followed)
                for task in followed:
                    task.cancel()
                if followed:
                    await asyncio.wait(followed)
            await asyncio.sleep(GONE_SECONDS)

    def _follow(self, group: asyncio.TaskGroup, endpoints: list[JournalEndpoint]) -> list[asyncio.Task[bool]]:
        """Start to read the journals of endpoints that are not read yet; return the new tasks."""
        begun = list[asyncio.Task[bool]]()
        for endpoint in endpoints:
            key = endpoint.source
            if key in self._followed:
                continue
            operator = _FollowedOperator(endpoint, self._positions.setdefault(key, _Position()))
            task = group.create_task(self._read(operator))
            self._followed[key] = (operator, task)
            task.add_done_callback(lambda task, key=key: self._ended(key, task))
            begun.append(task)
        return begun

    async def _read(self, operator: _FollowedOperator) -> bool:
        """Read one journal until the operator cannot be reached; return True if it was read at all."""
        async with Client(operator.endpoint.config) as client:
            while True:
                try:
                    response = await client.raw(_request(operator))
                    answer = _responses.decode(response.body)
                except ConnectionFailed as error:
                    operator.failure = operator.endpoint.failure() or str(error)
                    return operator.answer is not None
                except (ApiError, msgspec.MsgspecError) as error:
                    operator.problem = f"{operator.endpoint.source}: its journal cannot be read: {error}"
                    self._report()
                    await asyncio.sleep(GONE_SECONDS)
                    continue
                self._take(operator, answer)
                await asyncio.sleep(POLL_SECONDS)

    def _take(self, operator: _FollowedOperator, answer: _JournalResponse) -> None:
        operator.problem = ""
        operator.other_cluster = (
            not operator.endpoint.in_cluster
            and bool(answer.cluster)
            and _address(answer.cluster) != self._server
        )
        if operator.other_cluster:
            return
        position = operator.position
        if position.instance != answer.instance:
            position.instance, position.last = answer.instance, 0
            self._state.dropped += answer.dropped
        operator.answer = answer
        self._gone.pop(answer.operator, None)
        self._unreachable.pop(operator.endpoint.source, None)
        operator.name = operator.name or self._free_name(answer.operator, operator.endpoint)
        for record in answer.reconciles:
            position.last = record.number
            self._state.add_reconcile(operator.name, record)
        self._report()

    def _ended(self, key: str, task: asyncio.Task[bool]) -> None:
        operator, _ = self._followed.pop(key)
        # A task is cancelled before a new search, or when the page ends: neither is a problem of the operator.
        if not task.cancelled() and not operator.other_cluster:
            source = operator.endpoint.source
            if operator.answer is not None:
                self._gone[operator.answer.operator] = (
                    f"{source} has ended; the page continues when it runs again"
                )
            elif operator.endpoint.in_cluster:
                self._unreachable[key] = f"{source}: its journal cannot be read: {operator.failure}"
        self._report()

    def _free_name(self, operator: str, endpoint: JournalEndpoint) -> str:
        """Return the operator's name; if another replica already has it, the name of the endpoint."""
        used = {followed.name for followed, _ in self._followed.values()}
        return operator if operator not in used else endpoint.source.removeprefix("the operator ")

    def _report(self) -> None:
        shown = [
            operator
            for operator, _ in self._followed.values()
            if operator.answer is not None and not operator.other_cluster
        ]
        self._state.set_operators([_state_of(operator) for operator in shown])
        problems = [operator.problem for operator, _ in self._followed.values() if operator.problem]
        running = {operator.answer.operator for operator in shown if operator.answer is not None}
        gone = [text for name, text in self._gone.items() if name not in running]
        self._state.set_problems(
            "operators", [*gone, *problems, *self._unreachable.values(), *self._search_problems]
        )


async def _until_next_search(followed: list[asyncio.Task[bool]]) -> None:
    """Wait until the next search for Pods: one whose journal was read has ended, or the tokens expire soon."""
    try:
        async with asyncio.timeout(CLUSTER_SEARCH_SECONDS):
            for ended in asyncio.as_completed(followed):
                if await ended:
                    return  # another Pod takes its place
            await asyncio.sleep(EMPTY_SEARCH_SECONDS)
    except TimeoutError:
        pass


def _request(operator: _FollowedOperator) -> ApiRequest:
    position = operator.position
    query = {"after": position.last, "wait": WAIT_SECONDS, "instance": position.instance}
    return ApiRequest(
        method="GET",
        path="/journal",
        query=urlencode(query),
        verb="get",
        retry_safe=True,
        timeout=_TIMEOUT,
        resource="the journal",
    )


def _state_of(operator: _FollowedOperator) -> OperatorState:
    answer = operator.answer
    assert answer is not None
    return OperatorState(
        name=operator.name,
        source=operator.endpoint.source,
        leading=answer.leading,
        lease=LeaseSummary(answer.lease, answer.holder) if answer.lease else msgspec.UNSET,
        controllers=answer.controllers,
        retries=answer.retries,
        throttled=answer.throttled,
        problems=answer.problems,
        dropped=answer.dropped,
    )


def _address(server: str) -> tuple[str, int | None]:
    """Return the host and port of a server URL, to find out whether two configurations are for the same cluster."""
    parts = urlsplit(server)
    host = (parts.hostname or "").lower()
    port = parts.port or {"https": 443, "http": 80}.get(parts.scheme)
    return ("127.0.0.1" if host in ("localhost", "::1") else host), port
