"""The test cluster: a namespace for one test on any server, and an operator that runs there."""

import asyncio
import os
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, overload

import msgspec

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, JsonObject, Kind, NotFound, Object, kind_of
from kubewright.client import Client, ClusterConfig
from kubewright.client.recording import VARIABLE, Recording
from kubewright.controller import Operator
from kubewright.devcluster import Scratch
from kubewright.devserver import Faults
from kubewright.documents import read_yaml
from kubewright.manager import Manager, ManagerOptions, WebhookOptions
from kubewright.schema import crd
from kubewright.testing.accounts import grant, revoke, user_of
from kubewright.testing.disturbed import LONGEST, DisturbedRun
from kubewright.testing.environments import ServerName
from kubewright.testing.failure_report import ObjectHistory, describe_failure
from kubewright.testing.fault_proxy import FaultProxy
from kubewright.testing.operator_program import ReplicaSettings, load_reference
from kubewright.testing.recorder import Recorder
from kubewright.testing.virtual_time import OnOneLoop, VirtualTimeLoop
from kubewright.testing.waiting import DEFAULT_TIMEOUT, POLL_INTERVAL, comes_of_absence, poll

T = TypeVar("T", bound=Object)

_OFF = "0"
_SUFFIXES = (".yaml", ".yml", ".json")
_DEFINITION = CUSTOM_RESOURCE_DEFINITION.kind
_ANY_PORT = "127.0.0.1:0"


class Cluster(OnOneLoop):
    """A namespace of one test on a cluster, with methods to run operators and to wait for conditions."""

    def __init__(
        self,
        server: ServerName,
        client: Client,
        config: ClusterConfig,
        kubeconfig: Path,
        namespace: str,
        faults: Faults | None = None,
    ) -> None:
        self.server: ServerName = server
        self.client = client
        self.config = config
        self.kubeconfig = kubeconfig
        self.namespace = namespace
        self._faults = faults
        self.log: deque[str] = deque(maxlen=200)
        """The last lines of the operators that run here."""
        self._recorder = Recorder(self.log)
        self._runs: list[DisturbedRun] = []

    @property
    def faults(self) -> Faults:
        """Inject faults: requests that fail, are slow or lost, watches that end, a stale server."""
        if self._faults is None:
            raise RuntimeError(
                "faults would affect other tests too: use a cluster of the test's own, by `embedded_cluster` or `embedded()`"
            )
        return self._faults

    @asynccontextmanager
    async def running(
        self,
        operator: Operator,
        *,
        options: ManagerOptions | None = None,
        everywhere: bool = False,
        as_admin: bool = False,
        install: bool = True,
    ) -> AsyncGenerator[Manager, None]:
        """Run an operator in this namespace or `everywhere`; install its CRDs before, unless `install=False`.

        An operator with namespaces by label runs in those namespaces.
        It runs as a ServiceAccount with only the rules of its declarations, unless `as_admin`. Its requests are
        appended to the file in KUBEWRIGHT_RECORD_ACCESS, which `kubewright rbac verify` reads.
        """
        if install:
            await self.install(operator)
        config, asked = self.config, Recording()
        if not as_admin:
            granted = await grant(self.client, self.config, operator, self.namespace)
            config = replace(granted, observer=asked.observe)
        chosen = options or ManagerOptions(
            metrics_bind_address=_OFF,
            health_probe_bind_address=_OFF,
            webhooks=WebhookOptions(bind_address=_ANY_PORT),
        )
        follows = operator.namespaces is not None or chosen.namespace_selector is not None
        if not everywhere and not chosen.namespaces and not follows:
            chosen = replace(chosen, namespaces=(self.namespace,))
        if self.server != "existing" and chosen.webhooks.reach is None:
            chosen = replace(chosen, webhooks=msgspec.structs.replace(chosen.webhooks, reach="url"))
        manager = Manager(operator, config, chosen)
        failure: BaseException | None = None
        try:
            with self._recorder:
                async with asyncio.TaskGroup() as group:
                    work = group.create_task(manager.run())
                    await _until_ready(manager, work)
                    try:
                        yield manager
                    except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
                        raise
                    except BaseException as error:
                        # Raise the test's own exception instead of an exception group; pytest's outcomes are not Exceptions.
                        failure = error
                    work.cancel()
            if failure is not None:
                raise failure
        finally:
            if not as_admin:
                # A cluster of the test's own is deleted entirely, and its injected faults could fail the requests.
                if self._faults is None:
                    await revoke(self.client, operator, self.namespace)
                if path := os.environ.get(VARIABLE):
                    await asyncio.to_thread(asked.append_to, Path(path), operator.name)

    @asynccontextmanager
    async def disturbed(
        self, target: str, *, replicas: int = 1, everywhere: bool = False, longest: float = LONGEST
    ) -> AsyncGenerator[DisturbedRun, None]:
        """Run an operator in processes of its own, behind a proxy that a `Plan` injects faults into, on any server.

        `target` is `module:object`, an Operator or a function that returns one, which the processes import. It runs in this
        namespace or `everywhere`, as a ServiceAccount with only the rules of its declarations; its CRDs are installed
        before. Several replicas elect a leader. Faults are injected only into the requests of this operator.

        A plan takes real time here: what lasts longer than `longest` seconds in it, a fault, a delay or the pause before
        a fault, is shortened to that. A lease lasts 4 seconds, so only a longer pause makes a leader lose it.
        """
        if replicas < 1:
            raise ValueError(f"replicas={replicas}: expected at least 1")
        if isinstance(asyncio.get_running_loop(), VirtualTimeLoop):
            raise RuntimeError("processes run in real time: use `disturbed` in a test without `virtual_time`")
        operator = await asyncio.to_thread(load_reference, target)
        await self.install(operator)
        settings = ReplicaSettings(
            name=operator.name,
            target=target,
            kubeconfig="",
            report="",
            namespaces=() if everywhere or operator.namespaces is not None else (self.namespace,),
            elects=replicas > 1 or operator.shards is not None,
            local=self.server != "existing",
        )
        failure: BaseException | None = None
        scratch = await asyncio.to_thread(Scratch.create, "kubewright-disturbed-")
        try:
            config = await grant(self.client, self.config, operator, self.namespace)
            user = user_of(operator, self.namespace)
            async with FaultProxy(config) as proxy, asyncio.TaskGroup() as group:
                run = DisturbedRun(proxy, self.client, self.namespace, self.log, longest)
                self._runs.append(run)
                try:
                    await run.start(group, settings, user=user, replicas=replicas, folder=scratch.path)
                    yield run
                except (asyncio.CancelledError, GeneratorExit, KeyboardInterrupt, SystemExit):
                    raise
                except BaseException as error:
                    # Raise the test's own exception instead of an exception group; pytest's outcomes are not Exceptions.
                    failure = error
                finally:
                    self._runs.remove(run)
                run.stop()
            if failure is not None:
                raise failure
        finally:
            # A cluster of the test's own is deleted entirely, and its injected faults could fail the requests.
            if self._faults is None:
                await revoke(self.client, operator, self.namespace)
            await asyncio.to_thread(scratch.close)

    async def install(self, *installed: Operator | type[Object] | Path) -> None:
        """Install the CRDs of operators, of single kinds, or in files, and wait until they are served.

        A path is a YAML or JSON file, or a directory of them; other objects in them are ignored. Operators do not
        install the CRDs of kinds with `external=True`: pass such a class itself, or the file of its project.
        """
        versions: dict[tuple[str, str], list[Any]] = {}
        for one in installed:
            if isinstance(one, Path):
                for definition in await asyncio.to_thread(_definitions_in, one):
                    await self._install(definition)
                continue
            for declared in (one,) if isinstance(one, type) else one.kinds:
                kind = kind_of(declared)
                versions.setdefault((kind.group, kind.kind), []).append(declared)
        for classes in versions.values():
            await self._install(crd(*classes))

    async def _install(self, definition: JsonObject) -> None:
        await self.client.apply(
            definition, field_manager="kubewright-testing", kind=CUSTOM_RESOURCE_DEFINITION
        )
        name, spec = definition["metadata"]["name"], definition["spec"]
        await self.eventually(CUSTOM_RESOURCE_DEFINITION, name, _established)
        for version in spec["versions"]:
            if not version["served"]:
                continue
            kind = Kind(
                group=spec["group"],
                version=version["name"],
                kind=spec["names"]["kind"],
                plural=spec["names"]["plural"],
                namespaced=spec["scope"] == "Namespaced",
            )
            await self._wait(
                partial(self._served, kind),
                CUSTOM_RESOURCE_DEFINITION,
                name,
                f"is not served in {kind.version}",
                DEFAULT_TIMEOUT,
            )

    async def _served(self, kind: Kind) -> Any:
        """Return True if a kind is served: a real server does so some time after it is established."""
        try:
            # A missing object needs no conversion.
            await self.client.get(kind, "nothing", self.namespace if kind.namespaced else "")
        except NotFound as error:
            return None if error.kind_missing else True
        return True

    async def create(self, obj: T) -> T:
        """Create an object, in this namespace unless it names one."""
        if kind_of(obj).namespaced and not obj.metadata.namespace:
            obj.metadata.namespace = self.namespace
        return await self.client.create(obj)

    async def get(self, kind: type[T], name: str) -> T:
        """Return an object of this namespace from the server; raise NotFound if it does not exist."""
        return await self.client.get(kind, name, self.namespace if kind_of(kind).namespaced else "")

    async def find(self, kind: type[T], name: str) -> T | None:
        """Return an object of this namespace from the server, or None if it does not exist."""
        return await self.client.find(kind, name, self.namespace if kind_of(kind).namespaced else "")

    @overload
    async def eventually(
        self, kind: type[T], name: str, holds: Callable[[T], object] = ..., *, timeout: float = ...
    ) -> T: ...
    @overload
    async def eventually(
        self, kind: Kind, name: str, holds: Callable[[JsonObject], object] = ..., *, timeout: float = ...
    ) -> JsonObject: ...
    async def eventually(
        self, kind: Any, name: str, holds: Callable[[Any], object] = bool, *, timeout: float = DEFAULT_TIMEOUT
    ) -> Any:
        """Wait until an object exists and a condition is true; on timeout, raise with the object's history.

        A condition that accesses an item or a part that does not exist yet counts as false.
        """
        __tracebackhide__ = True
        namespace = self.namespace if kind_of(kind).namespaced else ""
        history = ObjectHistory(asyncio.get_running_loop().time())

        async def look() -> Any:
            try:
                found = await self.client.get(kind, name, namespace)
            except NotFound:
                return None
            history.see(found, asyncio.get_running_loop().time())
            try:
                history.hindrance = None
                return found if holds(found) else None
            except (LookupError, AttributeError) as error:
                if not comes_of_absence(error):
                    raise
                history.hindrance = error
                return None

        return await self._wait(look, kind, name, "did not become what the test waits for", timeout, history)

    async def eventually_gone(
        self, kind: type[Object] | Kind, name: str, *, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """Wait until an object is gone."""
        __tracebackhide__ = True
        namespace = self.namespace if kind_of(kind).namespaced else ""

        async def look() -> Any:
            try:
                await self.client.get(kind, name, namespace)
            except NotFound:
                return True
            return None

        await self._wait(look, kind, name, "is still there", timeout)

    async def settled(
        self, *kinds: type[Object] | Kind, quiet: float = 1.0, timeout: float = DEFAULT_TIMEOUT
    ) -> None:
        """Wait until no object of these kinds has changed for a while in this namespace."""
        __tracebackhide__ = True
        loop = asyncio.get_running_loop()
        deadline, since, seen = loop.time() + timeout, loop.time(), await self._versions(kinds)
        changes: Counter[str] = Counter()
        while loop.time() - since < quiet:
            await asyncio.sleep(POLL_INTERVAL * 5)
            now = await self._versions(kinds)
            if now != seen:
                changes.update(name for name in now | seen if now.get(name) != seen.get(name))
                seen, since = now, loop.time()
            if loop.time() > deadline:
                seen_to = ", ".join(
                    f"{name} ({count} changes seen)" for name, count in changes.most_common(5)
                )
                raise AssertionError(
                    f"objects of {self.namespace} still change after {timeout:g} s: {seen_to}"
                    if changes
                    else f"{timeout:g} s were too short to see {quiet:g} s without a change in {self.namespace}"
                )

    async def _versions(self, kinds: Sequence[type[Object] | Kind]) -> dict[str, str]:
        found: dict[str, str] = {}
        for kind in kinds:
            known = kind_of(kind)
            for item in await self.client.list(known, namespace=self.namespace if known.namespaced else ""):
                found[f"{known.kind}/{item['metadata']['name']}"] = item["metadata"]["resourceVersion"]
        return found

    async def _wait(
        self,
        look: Callable[[], Any],
        kind: type[Object] | Kind,
        name: str,
        failure: str,
        timeout: float,
        history: ObjectHistory | None = None,
    ) -> Any:
        # pytest shows the line of the test, not of this function.
        __tracebackhide__ = True
        found = await poll(look, timeout)
        if found is not None:
            return found
        known = kind_of(kind)
        namespace = self.namespace if known.namespaced else ""
        log = [*self.log, *await asyncio.to_thread(self._lines_of_processes)]
        story = await describe_failure(self.client, known, name, namespace, log, history)
        hindrance = history.hindrance if history else None
        why = f": {type(hindrance).__name__}: {hindrance}" if hindrance else ""
        raise AssertionError(
            f"{known.kind} {name} {failure} within {timeout:g} s{why}\n{story}"
        ) from hindrance

    def _lines_of_processes(self) -> list[str]:
        return [line for run in self._runs for line in run.log_lines()]


async def _until_ready(manager: Manager, work: asyncio.Task[None]) -> None:
    async with asyncio.TaskGroup() as group:
        ready = group.create_task(manager.ready.wait())
        await asyncio.wait({ready, work}, return_when=asyncio.FIRST_COMPLETED)
        ready.cancel()


def _definitions_in(path: Path) -> list[JsonObject]:
    """Return the CRDs in a file or directory; raise ValueError if there are none."""
    files = sorted(file for file in path.iterdir() if file.suffix in _SUFFIXES) if path.is_dir() else [path]
    documents: list[Any] = [document.value for file in files for document in read_yaml(file.read_bytes())]
    found = [each for each in documents if each and each.get("kind") == _DEFINITION]
    if not found:
        raise ValueError(f"{path} contains no CustomResourceDefinition")
    return found


def _established(definition: JsonObject) -> bool:
    status: JsonObject = definition.get("status") or {}
    return any(
        item["type"] == "Established" and item["status"] == "True" for item in status.get("conditions") or ()
    )
