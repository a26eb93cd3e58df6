"""Versions of custom resources: several served ones, changes of the storage version, conversion by a webhook."""

import random
from typing import Any

from area_reads import without_late_bookmarks
from compare_case import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, CaseBuilder, copy, query
from compare_conversions import HTTP_MISTAKES, OBJECT_MISTAKES, RESPONSE_MISTAKES, conversion_server
from conformance_exchange import Step

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
DEFINITION = f"{DEFINITIONS}/things.{{run}}.ex.io"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
METADATA_LIST = {"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
_NAMES = ("v1", "v2", "v1beta1")
_REQUESTS = 22
_BREAKS = (
    *OBJECT_MISTAKES,
    *(f"all-{name}" for name in RESPONSE_MISTAKES),
    *(f"all-{name}" for name in HTTP_MISTAKES),
)


def versions(case: CaseBuilder) -> None:
    """Create a definition with several versions, and write, read and watch its objects while the definition changes."""
    chance = case.random
    case.fixture = conversion_server
    case.namespace()
    names = chance.choice((("v1", "v2"), ("v1", "v2"), _NAMES))
    model = _Model(chance, names)
    case.clean(DEFINITION)
    case.send("POST", DEFINITIONS, model.definition(), pick=_without_conditions)
    case.prepare("GET", DEFINITION, until=_is_established_or_absent)
    _wait_until_in_effect(case)
    for _ in range(_REQUESTS):
        chance.choices((_write, _read, _watch, _change), (12, 6, 2, 4))[0](case, model)
    case.send("GET", DEFINITION, pick=_without_conditions)


class _Model:
    """The definition as its changes should have left it; one that is refused unexpectedly does no harm."""

    def __init__(self, chance: random.Random, names: tuple[str, ...]) -> None:
        self._random = chance
        self._revision = 0
        self.names = names
        stored = chance.choice(names)
        self.conversion = self.draw_conversion()
        self.versions = [self._version(name, storage=name == stored) for name in names]

    def path(self, version: str) -> str:
        """Return the path of the objects in a version."""
        return f"/apis/{{run}}.ex.io/{version}/namespaces/{{ns}}/things"

    def definition(self) -> dict[str, Any]:
        """Return the definition, with a column that no earlier state had."""
        self._revision += 1
        for version in self.versions:
            column = {"name": f"R{self._revision}", "type": "string", "jsonPath": ".spec.color"}
            version["additionalPrinterColumns"] = [column]
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": "things.{run}.ex.io"},
            "spec": copy(
                {
                    "group": "{run}.ex.io",
                    "scope": "Namespaced",
                    "names": {
                        "plural": "things",
                        "singular": "thing",
                        "kind": "Thing",
                        "listKind": "ThingList",
                    },
                    "versions": self.versions,
                    **({"conversion": self.conversion} if self.conversion else {}),
                }
            ),
        }

    def is_valid(self) -> bool:
        """Return True if exactly one version is stored, as a definition must have it."""
        return sum(version["storage"] for version in self.versions) == 1

    def state(self) -> tuple[Any, Any]:
        """Return the state, to restore it after a change that is not accepted."""
        return copy(self.versions), copy(self.conversion)

    def restore(self, state: tuple[Any, Any]) -> None:
        """Go back to an earlier state."""
        self.versions, self.conversion = state

    def redraw(self, name: str) -> None:
        """Draw another schema of a version."""
        index, old = next(item for item in enumerate(self.versions) if item[1]["name"] == name)
        self.versions[index] = {**self._version(name, storage=old["storage"]), "served": old["served"]}

    def draw_conversion(self) -> dict[str, Any] | None:
        """Draw a conversion: none, or a webhook that mostly responds well."""
        chance = self._random
        if chance.random() < 0.3:
            return chance.choice((None, {"strategy": "None"}))
        segment = "good"
        if chance.random() < 0.15:
            segment = chance.choice((*RESPONSE_MISTAKES, *HTTP_MISTAKES))
        webhook = {
            "clientConfig": {"url": f"https://{{hook}}/reply/{segment}", "caBundle": "{ca}"},
            "conversionReviewVersions": ["v1"],
        }
        if chance.random() < 0.1:
            webhook["conversionReviewVersions"] = chance.choice(
                (["v1", "v1beta1"], ["v1beta1"], ["v2", "v1"], ["v2"])
            )
        return {"strategy": "Webhook", "webhook": webhook}

    def _version(self, name: str, *, storage: bool) -> dict[str, Any]:
        chance = self._random
        size: dict[str, Any] = {"type": "integer"}
        if chance.random() < 0.3:
            size["maximum"] = 3
        color: dict[str, Any] = {"type": "string"}
        if chance.random() < 0.4:
            color["default"] = f"red-{name}"
        fields = {"color": color, "size": size}
        if name.endswith("2"):
            fields = {"color": color, "dimensions": {"type": "object", "properties": {"size": size}}}
        if chance.random() < 0.3:
            fields["only" + name] = {"type": "string", **({"default": "x"} if chance.random() < 0.5 else {})}
        spec: dict[str, Any] = {"type": "object", "properties": fields}
        if chance.random() < 0.2:
            spec["x-kubernetes-preserve-unknown-fields"] = True
        if chance.random() < 0.2:
            spec["x-kubernetes-validations"] = [{"rule": "!has(self.color) || self.color != 'bad'"}]
        status = {"type": "object", "properties": {"ready": {"type": "boolean"}}}
        root = {"type": "object", "properties": {"spec": spec, "status": status}}
        made: dict[str, Any] = {"name": name, "served": True, "storage": storage}
        made["schema"] = {"openAPIV3Schema": root}
        if chance.random() < 0.4:
            made["subresources"] = {"status": {}}
        if chance.random() < 0.2:
            made["deprecated"] = True
            if chance.random() < 0.5:
                made["deprecationWarning"] = "use another one"
        if chance.random() < 0.2:
            made["selectableFields"] = [{"jsonPath": ".spec.color"}]
        return made


def _without_conditions(body: Any, values: Any) -> Any:
    """Leave out conditions, which controllers set at their own time; `storedVersions` stays."""
    if not isinstance(body, dict) or body.get("kind") != "CustomResourceDefinition":
        return body
    status = {name: value for name, value in body.get("status", {}).items() if name == "storedVersions"}
    metadata = {name: value for name, value in body["metadata"].items() if name != "resourceVersion"}
    # The controllers that set them are managers too, from some moment on.
    metadata.pop("managedFields", None)
    return {**body, "metadata": metadata, "status": status}


def _is_established_or_absent(status: int, body: Any) -> bool:
    conditions = (body.get("status", {}).get("conditions") if status == 200 else None) or ()
    return status == 404 or any(
        item["type"] == "Established" and item["status"] == "True" for item in conditions
    )


def _wait_until_in_effect(case: CaseBuilder) -> None:
    """Wait until tables have the column of the definition as it is now, whether its last change was accepted or not."""
    case.prepare("GET", DEFINITION, save={"column": "spec.versions.0.additionalPrinterColumns.0.name"})
    # A namespace without objects: conversions of others may fail.
    empty = "/apis/{run}.ex.io/v1/namespaces/{ns}-empty/things"
    case.prepare("GET", empty, headers=TABLE, pick=_has_column, until=_holds)
    # A new storage version starts a new watch cache, which has no earlier revisions.
    case.prepare("GET", empty, save={"rv": "metadata.resourceVersion"})


def _has_column(body: Any, values: Any) -> bool:
    columns = body.get("columnDefinitions", ()) if isinstance(body, dict) else ()
    name = values.get("column")
    return not name or any(column["name"] == name for column in columns)


def _holds(status: int, body: Any) -> bool:
    return body is True


def _change(case: CaseBuilder, model: _Model) -> None:
    """Change the definition, in a way that is accepted or not."""
    chance = case.random
    way = chance.random()
    others = [version for version in model.versions if version["name"] != "v1"]
    if way < 0.25:
        stored = [chance.choice(_NAMES) for _ in range(chance.choice((0, 1, 1, 2)))]
        patch: Any = {"status": {"storedVersions": stored}}
        case.send("PATCH", f"{DEFINITION}/status", patch, MERGE_PATCH, pick=_without_conditions)
        return
    before = model.state()
    if way < 0.5:
        stored = chance.choice(model.versions)["name"]
        for version in model.versions:
            version["storage"] = version["name"] == stored
    elif way < 0.6 and others:
        version = chance.choice(others)
        version["served"] = not version["served"]
    elif way < 0.8:
        model.conversion = model.draw_conversion()
    elif way < 0.9 and len(others) > 1:
        model.versions.remove(chance.choice(others))
    elif way < 0.95:
        model.redraw(chance.choice(model.versions)["name"])
    else:
        chance.choice(model.versions)["storage"] = chance.random() < 0.5
    spec = model.definition()["spec"]
    conversion = {"strategy": "None", "webhook": None, **(model.conversion or {})}
    patch = {"spec": {"versions": spec["versions"], "conversion": conversion}}
    case.send("PATCH", DEFINITION, patch, MERGE_PATCH, pick=_without_conditions)
    if not model.is_valid():
        model.restore(before)
    _wait_until_in_effect(case)


def _spec(chance: random.Random, version: str) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if chance.random() < 0.7:
        size = chance.choice((1, 2, 5)) if chance.random() > 0.05 else "text"
        made |= {"dimensions": {"size": size}} if version.endswith("2") else {"size": size}
    if chance.random() < 0.4:
        made["color"] = chance.choice(("blue", "bad", ""))
    if chance.random() < 0.2:
        made[chance.choice(("extra", "onlyv1", "onlyv2", "size", "dimensions"))] = "e"
    return made


def _object(chance: random.Random, version: str) -> dict[str, Any]:
    metadata: dict[str, Any] = {"name": chance.choice(("x", "y", "z"))}
    if chance.random() < 0.12:
        metadata["labels"] = {"break": chance.choice(_BREAKS)}
    elif chance.random() < 0.3:
        metadata["labels"] = {"a": chance.choice("bc")}
    return {
        "apiVersion": f"{{run}}.ex.io/{version}",
        "kind": "Thing",
        "metadata": metadata,
        "spec": _spec(chance, version),
    }


def _write(case: CaseBuilder, model: _Model) -> None:
    chance = case.random
    version = chance.choice(model.versions)["name"]
    path, body = model.path(version), _object(chance, version)
    one = f"{path}/{body['metadata']['name']}"
    dry = "All" if chance.random() < 0.1 else ""
    way = chance.random()
    if way < 0.4:
        case.send("POST", query(path, dryRun=dry), body)
    elif way < 0.55:
        case.prepare("GET", one, save={"at": "metadata.resourceVersion"})
        body["metadata"]["resourceVersion"] = "{at}"
        case.send("PUT", query(one, dryRun=dry), body)
    elif way < 0.65:
        case.send("PATCH", query(one, dryRun=dry), {"spec": body["spec"]}, MERGE_PATCH)
    elif way < 0.7:
        patch = [{"op": "add", "path": "/spec/color", "value": "green"}]
        case.send("PATCH", query(one, dryRun=dry), patch, JSON_PATCH)
    elif way < 0.72:
        labels = chance.choice(({"break": None}, {"break": chance.choice(_BREAKS)}))
        case.send("PATCH", query(one, dryRun=dry), {"metadata": {"labels": labels}}, MERGE_PATCH)
    elif way < 0.9:
        options = {"fieldManager": chance.choice(("one", "two")), "force": chance.choice(("", "true"))}
        case.send("PATCH", query(one, dryRun=dry, **options), body, APPLY_PATCH)
    elif way < 0.94:
        patch = {"status": {"ready": chance.random() < 0.5}}
        case.send("PATCH", query(f"{one}/status", dryRun=dry), patch, MERGE_PATCH)
    elif way < 0.98:
        case.send("DELETE", query(one, dryRun=dry))
    else:
        case.send("DELETE", query(path, dryRun=dry))


def _read(case: CaseBuilder, model: _Model) -> None:
    chance = case.random
    version = chance.choice((*(item["name"] for item in model.versions), *model.names))
    path = model.path(version)
    if chance.random() < 0.5:
        case.send(
            "GET", f"{path}/{chance.choice(('x', 'y', 'z'))}", headers=chance.choice((None, None, TABLE))
        )
        return
    options: dict[str, Any] = {}
    if chance.random() < 0.2:
        options["labelSelector"] = chance.choice(("a%3Db", "a", "%21break"))
    if chance.random() < 0.15:
        options["fieldSelector"] = chance.choice(("spec.color%3Dblue", "metadata.name%3Dx"))
    if chance.random() < 0.2:
        options["limit"] = chance.choice((1, 2))
    if chance.random() < 0.2:
        options["resourceVersion"] = "{rv}"
    case.send("GET", query(path, **options), headers=chance.choice((None, None, None, TABLE, METADATA_LIST)))


def _watch(case: CaseBuilder, model: _Model) -> None:
    chance = case.random
    options: dict[str, Any] = {"watch": 1, "timeoutSeconds": 3, "resourceVersion": "{rv}"}
    if chance.random() < 0.3:
        options |= {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
        }
    if chance.random() < 0.15:
        options["labelSelector"] = "a%3Db"
    during: list[Step] = []
    for index in range(chance.choice((0, 1, 2))):
        version = chance.choice(model.versions)["name"]
        body = _object(chance, version)
        body["metadata"]["name"] += f"{len(case.steps)}{index}"
        name = f"{len(case.steps):03}-{index}"
        during.append(Step(name, "POST", model.path(version), body, compared=False))
    version = chance.choice(model.versions)["name"]
    headers = chance.choice((None, None, None, TABLE))
    path = query(model.path(version), **options)
    case.send("GET", path, headers=headers, during=tuple(during), pick=without_late_bookmarks)
