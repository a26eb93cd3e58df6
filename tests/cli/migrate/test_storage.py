"""migrate storage, on whichever server the tests run."""

import asyncio
import json

import pytest

from kubewright.api import CUSTOM_RESOURCE_DEFINITION, JsonObject, Kind
from kubewright.cli.app import main
from kubewright.cli.migrate.storage import PROGRESS_ANNOTATION
from kubewright.testing import Cluster, Match, eventually


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


class Library:
    """A kind of a test's own, with its versions and objects."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.group = f"{cluster.namespace}.example.com"
        self.name = f"books.{self.group}"

    def kind(self, version: str) -> Kind:
        return Kind(group=self.group, version=version, kind="Book", plural="books", namespaced=True)

    async def define(self, stored: str, *versions: str) -> None:
        """Create or replace the CRD."""
        spec = {"type": "object", "properties": {"title": {"type": "string"}}}
        schema = {"openAPIV3Schema": {"type": "object", "properties": {"spec": spec}}}
        definition: JsonObject = {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name},
            "spec": {
                "group": self.group,
                "scope": "Namespaced",
                "names": {"kind": "Book", "plural": "books", "singular": "book", "listKind": "BookList"},
                "versions": [
                    {"name": version, "served": True, "storage": version == stored, "schema": schema}
                    for version in versions
                ],
            },
        }
        await self.cluster.client.apply(
            definition, kind=CUSTOM_RESOURCE_DEFINITION, field_manager="test", force=True
        )
        await self.cluster.eventually(
            CUSTOM_RESOURCE_DEFINITION,
            self.name,
            lambda it: any(
                condition["type"] == "Established" and condition["status"] == "True"
                for condition in it.get("status", {}).get("conditions") or ()
            ),
        )

    async def put(self, name: str, version: str, title: str = "a") -> None:
        book = {
            "apiVersion": f"{self.group}/{version}",
            "kind": "Book",
            "metadata": {"name": name, "namespace": self.cluster.namespace},
            "spec": {"title": title},
        }

        await self.cluster.client.create(book, kind=self.kind(version))

    async def titles(self, version: str) -> dict[str, str]:
        found = await self.cluster.client.list(self.kind(version), namespace=self.cluster.namespace)
        return {book["metadata"]["name"]: book["spec"]["title"] for book in found}

    async def definition(self) -> JsonObject:
        return await self.cluster.client.get(CUSTOM_RESOURCE_DEFINITION, self.name)

    async def migrate(self) -> int:
        where = ("--kubeconfig", str(self.cluster.kubeconfig))
        return await asyncio.to_thread(run, "migrate", "storage", "--crd", self.name, *where)


@pytest.fixture
def library(cluster: Cluster) -> Library:
    return Library(cluster)


async def test_an_old_version_can_be_removed_after_the_migration(
    library: Library, capsys: pytest.CaptureFixture[str]
) -> None:
    await library.define("v1", "v1")
    for number in range(7):
        await library.put(f"b{number}", "v1", f"title {number}")
    await library.define("v2", "v1", "v2")
    assert (await library.definition())["status"]["storedVersions"] == ["v1", "v2"]
    assert await library.migrate() == 0
    printed = capsys.readouterr().out
    assert printed == f"{library.name}: 7 objects are stored in v2; removed from storedVersions: v1\n"
    definition = await library.definition()
    assert definition["status"]["storedVersions"] == ["v2"]
    assert PROGRESS_ANNOTATION not in (definition["metadata"].get("annotations") or {})

    # An object that was still stored in v1 could not be read any more.
    await library.define("v2", "v2")
    assert await library.titles("v2") == {f"b{number}": f"title {number}" for number in range(7)}

    assert await library.migrate() == 0
    assert capsys.readouterr().out == f"{library.name}: all objects are stored in v2\n"


async def test_an_object_that_cannot_be_written_keeps_the_stored_versions(
    embedded_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    library = await _with_older_objects(embedded_cluster, "bad", "good")
    refused = Match(verbs=("patch",), name="bad")
    with embedded_cluster.faults.add(match=refused, fail=422, message="no bad books"):
        assert await library.migrate() == 1
    message = capsys.readouterr().err
    assert "1 of 2 objects could not be written, so storedVersions is not changed" in message
    assert "no bad books" in message
    assert (await library.definition())["status"]["storedVersions"] == ["v1", "v2"]
    assert await library.migrate() == 0
    assert (await library.definition())["status"]["storedVersions"] == ["v2"]


async def test_an_interrupted_migration_continues_where_it_ended(embedded_cluster: Cluster) -> None:
    library = await _with_older_objects(embedded_cluster, "a", "b", "c")
    refused = Match(verbs=("patch",), name=library.name, subresource="status")
    with embedded_cluster.faults.add(match=refused, fail=403):
        assert await library.migrate() == 1
    reached = json.loads((await library.definition())["metadata"]["annotations"][PROGRESS_ANNOTATION])
    assert reached["after"] == f"{embedded_cluster.namespace}/c"

    written = embedded_cluster.faults.add(match=Match(verbs=("patch",), resource=library.name))
    await library.put("d", "v2")
    assert await library.migrate() == 0
    assert written.hits == 1


async def test_a_migration_to_an_earlier_spec_of_the_crd_does_not_count(embedded_cluster: Cluster) -> None:
    library = await _with_older_objects(embedded_cluster, "a", "b", "c")
    refused = Match(verbs=("patch",), name=library.name, subresource="status")
    with embedded_cluster.faults.add(match=refused, fail=403):
        assert await library.migrate() == 1
    await library.define("v1", "v1", "v2")
    await library.define("v2", "v1", "v2")
    written = embedded_cluster.faults.add(match=Match(verbs=("patch",), resource=library.name))
    assert await library.migrate() == 0
    assert written.hits == 3


async def test_a_crd_that_changes_during_the_migration_keeps_its_stored_versions(
    embedded_cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    library = await _with_older_objects(embedded_cluster, "a")
    with embedded_cluster.faults.add(match=Match(verbs=("patch",), resource=library.name), delay=1.0) as held:
        migration = asyncio.create_task(library.migrate())
        await eventually(lambda: held.hits)
        await library.define("v1", "v1", "v2")
        assert await migration == 1
    assert "the CRD was changed during the migration" in capsys.readouterr().err
    assert (await library.definition())["status"]["storedVersions"] == ["v1", "v2"]


async def test_a_crd_that_is_not_installed_is_named(
    cluster: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await Library(cluster).migrate() == 1
    assert (
        f"CustomResourceDefinition books.{cluster.namespace}.example.com is not installed"
        in capsys.readouterr().err
    )


async def _with_older_objects(cluster: Cluster, *names: str) -> Library:
    library = Library(cluster)
    await library.define("v1", "v1")
    for name in names:
        await library.put(name, "v1")
    await library.define("v2", "v1", "v2")
    return library
