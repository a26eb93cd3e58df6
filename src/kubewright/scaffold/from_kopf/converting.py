"""Turn a kopf operator into a kubewright project: the handlers' modules, their controllers, and MIGRATION.md.

One kind becomes one controller, whose reconcile runs the handlers of create, update, resume and field in their order and
whose finalizer runs those of delete. Handlers of events and each timer and daemon get a controller of their own, because
they run at other times. A handler that kopf runs once for a change and that cannot simply be repeated is a decision.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from kubewright.api import JsonObject
from kubewright.generate import plain_yaml
from kubewright.scaffold.from_kopf.bodies import Bodies, Translated
from kubewright.scaffold.from_kopf.controllers import Controllers, HandlerCall, KindHandlers
from kubewright.scaffold.from_kopf.kinds import KindClass, Kinds, require
from kubewright.scaffold.from_kopf.reading import (
    CHANGES,
    KopfError,
    KopfFile,
    KopfHandler,
    KopfRegistration,
    constant_of,
    parameters,
    read_files,
)
from kubewright.scaffold.from_kopf.report import MigrationItem, MigrationReport
from kubewright.scaffold.naming import package_name, variable_name
from kubewright.scaffold.project import project_files
from kubewright.scaffold.texts import fill

KOPF_FINALIZER = "kopf.zalando.org/KopfFinalizerMarker"
_GIVEN = frozenset(
    ["body", "spec", "meta", "status", "name", "namespace", "uid", "labels", "annotations", "logger", "patch"]
)
_NOT_GIVEN = {
    "old": ("the reconciler gets the current state, not the change", "semantics.md"),
    "diff": ("the reconciler gets the current state, not the change", "semantics.md"),
    "reason": ("a reconcile has no reason: compare the state instead", "semantics.md"),
    "event": ("a reconcile has no event: compare the state instead", "semantics.md"),
    "type": (
        "a reconcile has no event type; clean up after a deletion in a finalizer",
        "how-to/finalizers.md",
    ),
    "retry": ("retries are not counted: return, or raise kw.RetryLater, by the state", "how-to/backoff.md"),
    "started": ("retries are not timed: compare a time in the status", "how-to/backoff.md"),
    "runtime": ("retries are not timed: compare a time in the status", "how-to/backoff.md"),
    "memo": (
        "there is no memory for each object: read the state, or keep it in an object of yours",
        "how-to/external-systems.md",
    ),
    "settings": (
        "kopf's settings have no counterpart: see the options of `kubewright run`",
        "reference/cli.md",
    ),
    "stopped": (
        "a daemon is a task of the operator's lifespan that passes its events to kw.source",
        "how-to/external-systems.md",
    ),
    "resource": ("name the kind in the code", "how-to/from-kopf.md"),
    "userinfo": (
        "take `request: kw.admission.AdmissionRequest` and read `request.user`",
        "how-to/webhooks.md",
    ),
    "headers": ("the headers of an admission request are not given", "how-to/webhooks.md"),
    "sslpeer": ("the certificate of an admission request is not given", "how-to/webhooks.md"),
    "indexes": ("use `await ctx.list(index, value)`", "how-to/watching.md"),
    "indices": ("use `await ctx.list(index, value)`", "how-to/watching.md"),
}
_FILTERS = frozenset({"labels", "annotations", "when", "field", "value", "new", "old"})
_KNOWN_OPTIONS = _FILTERS | {
    "id", "param", "retries", "timeout", "backoff", "errors", "optional", "deleted", "interval", "initial_delay",
    "sharp", "idle", "operation", "operations", "subresource", "persistent", "side_effects", "ignore_failures",
}  # fmt: skip


class KopfModule(NamedTuple):
    """One file of the kopf operator."""

    path: str
    module: str
    text: str


class Converted(NamedTuple):
    """The files of the new project, and how many decisions it needs."""

    files: dict[str, str]
    decisions: int
    reviews: int


def convert(
    sources: Sequence[KopfModule], documents: Sequence[JsonObject], *, name: str, kubewright: str
) -> Converted:
    """Return the project; raise KopfError with file and line if the operator cannot be read."""
    return _Conversion(read_files(sources), documents, name, kubewright).project()


class _Conversion:
    def __init__(
        self, files: list[KopfFile], documents: Sequence[JsonObject], name: str, kubewright: str
    ) -> None:
        self._files = files
        self._documents = [each for each in documents if each.get("kind") == "CustomResourceDefinition"]
        self._name, self._kubewright = name, kubewright
        self._package = package_name(name)
        self._report = MigrationReport()
        self._kinds = Kinds(self._package, documents)
        self._bodies = {
            each.module: Bodies(each, [other for other in files if other is not each], self._report)
            for each in files
        }
        self._indexes: dict[str, KindClass] = {}
        group = next((each["spec"]["group"] for each in self._documents), "example.com")
        self._controllers = Controllers(self._package, name, group)

    def project(self) -> Converted:
        """Return the files of the project."""
        for each in self._files:
            for handler in each.handlers:
                for registration in handler.registrations:
                    if registration.reaction == "index" and registration.kind is not None:
                        self._indexes[handler.name] = require(
                            self._kinds, registration.kind, f"{each.path}:{registration.line}"
                        )
        for each in self._files:
            self._bodies[each.module].translate_helpers()
            for handler in each.handlers:
                self._handler(each, handler)
        files = project_files(self._name, domain="", kubewright=self._kubewright)
        del files["tests/test_samples.py"]
        files["tests/test_operator.py"] = fill("test_converted.py", module=self._package)
        files["pyproject.toml"] = self._pyproject(files["pyproject.toml"])
        siblings = {each.module for each in self._files}
        for each in self._files:
            files[f"{self._package}/{each.module}.py"] = self._bodies[each.module].text(
                self._package, siblings
            )
        files |= self._kinds.files
        files[f"{self._package}/support.py"] = fill("kopf_support.py")
        files[f"{self._package}/controllers.py"] = self._controllers_text()
        files[f"{self._package}/__init__.py"] = (
            f'"""The operator {self._name}, converted from kopf."""\n\n'
            f"from {self._package}.controllers import operator\n\n"
            '__all__ = ["operator"]\n'
        )
        for document in self._documents:
            files[f"crds/{document['metadata']['name']}.yaml"] = plain_yaml(document)
        paths = [each.path for each in self._files]
        files["MIGRATION.md"] = self._report.text(self._package, paths, KOPF_FINALIZER)
        return Converted(files, len(self._report.decisions), len(self._report.reviews))

    # Handlers.

    def _handler(self, file: KopfFile, handler: KopfHandler) -> None:
        bodies, decisions = self._bodies[file.module], list[MigrationItem]()
        reactions = {each.reaction for each in handler.registrations}
        if reactions == {"login"}:
            bodies.remove_handler(handler)
            self._report.review(
                file.path, handler.node.lineno, f"the login handler `{handler.name}` was removed",
                "kubewright reads the kubeconfig or the ServiceAccount itself", "reference/client.md",
            )  # fmt: skip
            return
        for registration in handler.registrations:
            self._options(file, handler, registration, decisions)
        self._parameters(file, handler, reactions, decisions)
        done = bodies.translate_handler(handler, decisions)
        if done.needs_context and reactions & {"validate", "mutate", "index", "startup", "cleanup", "probe"}:
            decisions.append(
                self._report.decide(
                    file.path, handler.node.lineno, f"`{handler.name}` writes objects or Events",
                    "there is no context outside of a reconcile", "how-to/webhooks.md",
                )
            )  # fmt: skip
        self._repetition(file, handler, reactions, done, decisions)
        for registration in handler.registrations:
            self._register(file, handler, registration, done, decisions)
        if decisions:
            bodies.raise_at_top(handler.node, decisions)

    def _decide(
        self, file: KopfFile, line: int, subject: str, reason: str, page: str, decisions: list[MigrationItem]
    ) -> None:
        decisions.append(self._report.decide(file.path, line, subject, reason, page))

    def _options(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        decisions: list[MigrationItem],
    ) -> None:
        """Decide or list the options that have no counterpart."""
        at, name = (file, registration.line), handler.name
        for word, value in registration.options.items():
            if word not in _KNOWN_OPTIONS or word in ("errors", "idle"):
                self._decide(
                    *at,
                    f"`{word}=` of `{name}`",
                    f"{word}= has no counterpart",
                    "how-to/backoff.md",
                    decisions,
                )
            elif word in ("retries", "timeout", "backoff"):
                self._report.review(
                    file.path, registration.line, f"`{word}={ast.unparse(value)}` of `{name}` is left out",
                    "failures are retried with the controller's backoff, without a limit", "how-to/backoff.md",
                )  # fmt: skip
            elif word in ("initial_delay", "sharp", "deleted", "persistent"):
                self._report.review(
                    file.path, registration.line, f"`{word}=` of `{name}` is left out",
                    "the first run comes at once, the next after the interval", "how-to/backoff.md",
                )  # fmt: skip
            elif word == "optional":
                self._report.review(
                    file.path, registration.line, f"`optional=` of `{name}`",
                    "the finalizer is always added, so the handler always runs before the object is gone",
                    "how-to/finalizers.md",
                )  # fmt: skip
            elif word == "subresource" and not (isinstance(value, ast.Constant) and value.value is None):
                self._decide(
                    *at, f"`subresource=` of `{name}`", "declare the webhook with subresources=[...]",
                    "how-to/webhooks.md", decisions,
                )  # fmt: skip
        if registration.reaction == "daemon":
            self._decide(
                *at, f"the daemon `{name}`", _NOT_GIVEN["stopped"][0], "how-to/external-systems.md", decisions
            )
        if registration.reaction == "probe":
            self._decide(
                *at, f"the probe `{name}` is not called", "probes of your own have no counterpart", "how-to/metrics.md",
                decisions,
            )  # fmt: skip
        if registration.reaction == "event":
            self._report.review(
                file.path, registration.line, f"`{name}` is not called when an object is deleted",
                "a reconciler gets objects that exist; clean up in a finalizer", "how-to/finalizers.md",
            )  # fmt: skip

    def _parameters(
        self, file: KopfFile, handler: KopfHandler, reactions: set[str], decisions: list[MigrationItem]
    ) -> None:
        """Decide about the arguments that kubewright does not have."""
        node, name = handler.node, handler.name
        for parameter in parameters(node):
            if parameter in self._indexes:
                reason = f"use `await ctx.list({parameter}_index, value)`: it returns the objects"
                self._decide(
                    file,
                    node.lineno,
                    f"index `{parameter}` in `{name}`",
                    reason,
                    "how-to/watching.md",
                    decisions,
                )
            elif parameter in _NOT_GIVEN:
                if parameter == "stopped" and "daemon" in reactions:
                    continue
                reason, page = _NOT_GIVEN[parameter]
                self._decide(file, node.lineno, f"`{parameter}` in `{name}`", reason, page, decisions)
            elif parameter == "new" and not all("field" in each.options for each in handler.registrations):
                reason, page = _NOT_GIVEN["diff"]
                self._decide(file, node.lineno, f"`new` in `{name}`", reason, page, decisions)
        kwargs = node.args.kwarg.arg if node.args.kwarg else ""
        if kwargs and any(isinstance(each, ast.Name) and each.id == kwargs for each in ast.walk(node)):
            self._decide(
                file, node.lineno, f"`**{kwargs}` in `{name}`", "name the arguments that the body uses",
                "how-to/from-kopf.md", decisions,
            )  # fmt: skip

    def _repetition(
        self,
        file: KopfFile,
        handler: KopfHandler,
        reactions: set[str],
        done: Translated,
        decisions: list[MigrationItem],
    ) -> None:
        """Decide about a handler that kopf calls once for a change, and whose effects may not be repeated."""
        changed = reactions & CHANGES
        if not changed or changed >= {"create", "update", "resume"}:
            return
        once = "/".join(sorted(changed))
        if done.records_events:
            self._report.review(
                file.path, handler.node.lineno, f"`{handler.name}` records its Event in each reconcile",
                f"kopf called it for {once} only; repeated Events are counted in one object", "how-to/events.md",
            )  # fmt: skip
        shared = {
            key: other.name
            for each in self._files
            for other in each.handlers
            if other.node is not handler.node and _same_kind(handler, other)
            for key in _status_keys(handler) & _status_keys(other)
        }
        for key, other in shared.items():
            self._decide(
                file, handler.node.lineno, f"`{handler.name}` sets status.{key} in each reconcile",
                f"kopf called it for {once} only, and {other} sets status.{key} as well: let one of them set it",
                "how-to/conditions.md", decisions,
            )  # fmt: skip
        if not done.effects:
            return
        self._decide(
            file, handler.node.lineno, f"`{handler.name}` runs in each reconcile",
            f"kopf called it for {once} only; make it safe to repeat: {', '.join(done.effects[:3])}",
            "how-to/apply-create-update.md", decisions,
        )  # fmt: skip

    # Registrations.

    def _register(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        done: Translated,
        decisions: list[MigrationItem],
    ) -> None:
        reaction, where = registration.reaction, f"{file.path}:{registration.line}"
        if reaction in ("startup", "cleanup"):
            calls = self._controllers.startup if reaction == "startup" else self._controllers.cleanup
            calls.append(self._call(file, handler, registration, done, decisions))
            return
        if registration.kind is None:
            return
        kind = require(self._kinds, registration.kind, where)
        if reaction == "index":
            self._index(file, handler, kind, done, decisions)
            return
        if reaction in ("validate", "mutate"):
            self._webhook(file, handler, registration, kind, done, decisions)
            return
        group = self._controllers.kinds.setdefault(kind.reference, KindHandlers(kind))
        call = self._call(file, handler, registration, done, decisions)
        for child in done.owns:
            group.owns[child.reference] = child
        if _patches_object(handler) or ("patch" in parameters(handler.node) and not kind.kind.status):
            call.needs.append(f'kw.needs({kind.reference}, "patch")')
        for parameter in parameters(handler.node):
            if parameter in self._indexes:
                call.needs.append(f'kw.needs({self._indexes[parameter].reference}, "get", "list", "watch")')
        if reaction in CHANGES:
            path = constant_of(registration.options.get("field"), {})
            group.watches_status = group.watches_status or bool(path and path.startswith("status"))
            _add(group.changes, call)
        elif reaction == "delete":
            _add(group.deletes, call)
        elif reaction == "event":
            _add(group.events, call)
            group.event_labels.append(_label_selector(registration.options, file))
        else:
            group.own_controllers.append((call, self._interval(file, handler, registration, decisions)))

    def _interval(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        decisions: list[MigrationItem],
    ) -> str:
        """Return the seconds between two runs of a timer; an empty string for a daemon."""
        if registration.reaction != "timer":
            return ""
        value = registration.options.get("interval")
        text = self._importable(file, value) if value is not None else None
        if text is None:
            self._decide(
                file, registration.line, f"the interval of `{handler.name}`", "it is not a constant of the module",
                "how-to/backoff.md", decisions,
            )  # fmt: skip
            return "60"
        return text

    def _call(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        done: Translated,
        decisions: list[MigrationItem],
    ) -> HandlerCall:
        self._controllers.import_from(file.module, handler.name)
        path = constant_of(registration.options.get("field"), {})
        identifier = constant_of(registration.options.get("id"), {}) or handler.name
        arguments = [*(f"{each.partition(':')[0]}={_added(each)}" for each in done.added)]
        arguments += self._arguments(file, parameters(handler.node), registration, path)
        call = HandlerCall(
            handler.name, f"{identifier}/{path}" if path else identifier, ", ".join(arguments), done.is_async
        )
        call.conditions = [self._condition(file, handler, registration, path, decisions)]
        return call

    def _arguments(
        self, file: KopfFile, names: Sequence[str], registration: KopfRegistration, path: str | None
    ) -> Iterator[str]:
        for name in names:
            if name in _GIVEN:
                yield f"{name}=handling.{name}"
            elif name == "new" and path:
                self._controllers.support.add("value_at")
                yield f'new=value_at(handling.body, "{path}")'
            elif name == "param" and "param" in registration.options:
                yield f"param={self._importable(file, registration.options['param']) or 'handling.undecided'}"
            elif name == "warnings":
                yield "warnings=warnings"
            elif name == "dryrun":
                yield "dryrun=request.dry_run"
            elif name == "operation":
                yield "operation=request.operation.upper()"
            else:
                yield f"{name}=handling.undecided"

    # Filters.

    def _condition(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        path: str | None,
        decisions: list[MigrationItem],
    ) -> str:
        """Return the filters of a decorator as an expression; an empty string if there are none."""
        parts: list[str] = []
        options = registration.options
        for word in ("labels", "annotations"):
            if word in options:
                parts += self._meta_filter(file, handler, registration, word, decisions)
        if "field" in options and path is None:
            self._filter_decision(file, handler, registration, "field", decisions)
        elif path:
            value = options.get("value", options.get("new"))
            if value is None:
                parts.append(f"{self._value_at(path)} is not None")
            elif (test := self._comparison(file, self._value_at(path), value)) is not None:
                parts.append(test)
            else:
                self._filter_decision(file, handler, registration, "value", decisions)
        if "old" in options:
            self._filter_decision(file, handler, registration, "old", decisions)
        if "when" in options:
            test = self._when(file, handler, options["when"])
            if test is None:
                self._filter_decision(file, handler, registration, "when", decisions)
            else:
                parts.append(test)
        return " and ".join(parts)

    def _value_at(self, path: str) -> str:
        self._controllers.support.add("value_at")
        return f'value_at(handling.body, "{path}")'

    def _filter_decision(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        word: str,
        decisions: list[MigrationItem],
    ) -> None:
        reason, page = (
            f"the filter {word}= cannot be written as a condition of the state",
            "how-to/selecting.md",
        )
        self._decide(file, registration.line, f"`{word}=` of `{handler.name}`", reason, page, decisions)

    def _meta_filter(
        self,
        file: KopfFile,
        handler: KopfHandler,
        registration: KopfRegistration,
        word: str,
        decisions: list[MigrationItem],
    ) -> Iterator[str]:
        given = registration.options[word]
        if not isinstance(given, ast.Dict) or None in given.keys:
            self._filter_decision(file, handler, registration, word, decisions)
            return
        for key, value in zip(given.keys, given.values, strict=True):
            name = self._importable(file, key) if key is not None else None
            marker = file.dotted(value)
            if name is None:
                self._filter_decision(file, handler, registration, word, decisions)
            elif marker in ("kopf.PRESENT", "kopf.ABSENT"):
                yield f"{name} {'in' if marker == 'kopf.PRESENT' else 'not in'} handling.{word}"
            elif (test := self._comparison(file, f"handling.{word}.get({name})", value)) is not None:
                yield test
            else:
                self._filter_decision(file, handler, registration, word, decisions)

    def _comparison(self, file: KopfFile, value: str, expected: ast.expr) -> str | None:
        marker = file.dotted(expected)
        if marker in ("kopf.PRESENT", "kopf.ABSENT"):
            return f"{value} is {'not None' if marker == 'kopf.PRESENT' else 'None'}"
        if isinstance(expected, ast.Name) and expected.id in file.functions:
            return None
        text = self._importable(file, expected)
        if text is None:
            return None
        return f"{value} {'is' if text in ('True', 'False', 'None') else '=='} {text}"

    def _when(self, file: KopfFile, handler: KopfHandler, when: ast.expr) -> str | None:
        if isinstance(when, ast.Name) and when.id in file.functions:
            names, name = parameters(file.functions[when.id]), when.id
            if isinstance(file.functions[when.id], ast.AsyncFunctionDef):
                return None
        elif isinstance(when, ast.Lambda):
            names = [each.arg for each in (*when.args.args, *when.args.kwonlyargs)]
            name = f"{handler.name}_when"
            typed = ", ".join(
                [*(f"{each}: Any" for each in names), *(["**_: Any"] if when.args.kwarg else [])]
            )
            text = self._bodies[file.module].text_of(when.body)
            body = f"    return bool({text})\n"
            self._bodies[file.module].append(
                name,
                f'def {name}({typed}) -> bool:\n    """Return True if {handler.name} applies to the object."""\n{body}',
            )
        else:
            return None
        if not _GIVEN.issuperset(names):
            return None
        self._controllers.import_from(file.module, name)
        return f"{name}({', '.join(f'{each}=handling.{each}' for each in names)})"

    def _importable(self, file: KopfFile, node: ast.expr) -> str | None:
        """Return an expression that can be written in another module, and import the names it uses."""
        names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
        if any(isinstance(each, ast.Call | ast.Lambda) for each in ast.walk(node)):
            return None
        modules = {each.module for each in self._files}
        found: dict[str, str] = {}
        for name in names:
            module, _, original = file.imported.get(name, "").rpartition(".")
            if module.rpartition(".")[2] in modules and original == name:
                found[name] = module.rpartition(".")[2]
            elif name in _assigned(file):
                found[name] = file.module
            else:
                return None
        for name, module in found.items():
            self._controllers.import_from(module, name)
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            return '"' + node.value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        return ast.unparse(node)

    # Webhooks and indexes.

    def _webhook(
        self, file: KopfFile, handler: KopfHandler, registration: KopfRegistration, kind: KindClass, done: Translated,
        decisions: list[MigrationItem],
    ) -> None:  # fmt: skip
        call = self._call(file, handler, registration, done, decisions)
        mutates = registration.reaction == "mutate"
        words = [kind.reference]
        operations = _operations(registration.options)
        if operations:
            words.append(f"on=[{', '.join(operations)}]")
        else:
            self._report.review(
                file.path, registration.line, f"the webhook `{handler.name}` handles create and update",
                "kopf calls it for delete and connect as well; pass on=[...] for those", "how-to/webhooks.md",
            )  # fmt: skip
        for option, text in (
            ("side_effects", 'side_effects="NoneOnDryRun"'),
            ("ignore_failures", 'failure_policy="Ignore"'),
        ):
            value = registration.options.get(option)
            if isinstance(value, ast.Constant) and value.value is True:
                words.append(text)
        variable = variable_name(kind.kind.kind)
        awaits = "await " if done.is_async else ""
        run = f"{awaits}{call.handler}({call.arguments})"
        name = f"{handler.name}_webhook"
        decorator = f"@kw.admission.{'mutating' if mutates else 'validating'}_webhook({', '.join(words)})"
        head = "async def" if done.is_async else "def"
        condition = call.conditions[0]
        indent = "        " if condition else "    "
        lines = [decorator]
        has_old = "request." in run
        parameters_ = f"{variable}: {kind.annotation}"
        if has_old:
            parameters_ += f", old: {kind.annotation} | None, request: kw.admission.AdmissionRequest"
        lines.append(
            f"{head} {name}({parameters_}) -> {'None' if mutates else 'list[kw.admission.Problem]'}:"
        )
        lines.append(f'    """Run the handler of kopf\'s {registration.reaction}."""')
        lines.append(f"    handling = Handling({variable})")
        if "warnings=warnings" in run or not mutates:
            lines.append("    warnings: list[str] = []")
        if condition:
            lines.append(f"    if {condition}:")
        if mutates:
            self._controllers.support |= {"overwrite", "merged"}
            lines += [
                f"{indent}{run}",
                f"{indent}overwrite({variable}, merged(handling.body, handling.patch))",
            ]
        else:
            self._controllers.support.add("AdmissionError")
            lines += [f"{indent}try:", f"{indent}    {run}", f"{indent}except AdmissionError as error:"]
            lines.append(
                f"{indent}    return [kw.admission.denied(str(error)), *map(kw.admission.warning, warnings)]"
            )
            lines.append("    return [kw.admission.warning(text) for text in warnings]")
        self._controllers.webhooks[name] = "\n".join(lines) + "\n"
        self._controllers.import_kind(kind)

    def _index(
        self,
        file: KopfFile,
        handler: KopfHandler,
        kind: KindClass,
        done: Translated,
        decisions: list[MigrationItem],
    ) -> None:
        if done.is_async or not kind.is_typed:
            self._decide(
                file, handler.node.lineno, f"the index `{handler.name}`", "kw.Index takes a plain function of a class",
                "how-to/watching.md", decisions,
            )  # fmt: skip
            return
        self._controllers.import_from(file.module, handler.name)
        arguments = ", ".join(self._arguments(file, parameters(handler.node), handler.registrations[0], None))
        variable = variable_name(kind.kind.kind)
        self._controllers.indexes.append(
            f"def {handler.name}_values({variable}: {kind.reference}) -> list[str]:\n"
            f'    """Return the keys that kopf\'s index has for an object."""\n'
            f"    handling = Handling({variable})\n"
            f"    return [str(key) for key in {handler.name}({arguments}) or {{}}]\n\n\n"
            f"{handler.name}_index = kw.Index({kind.reference}, {handler.name}_values)\n"
        )
        self._controllers.import_kind(kind)
        self._report.review(
            file.path, handler.node.lineno, f"the index `{handler.name}` has text keys and returns objects",
            "kopf's indexes hold any key and value", "how-to/watching.md",
        )  # fmt: skip

    def _controllers_text(self) -> str:
        bodies = self._bodies.values()
        for each in bodies:
            self._controllers.client_needs |= each.client_needs
        # The imports may be gone with the calls.
        needs_config = any(each.uses_client for each in bodies) and bool(self._report.client_calls)
        if needs_config and not any(each.loads_config for each in bodies):
            self._controllers.loads_client_config = True
            self._report.review(
                self._files[0].path, 1, "the client library is configured in the lifespan",
                "kopf did that as a side effect of its login", "reference/client.md",
            )  # fmt: skip
        return self._controllers.text()

    def _pyproject(self, text: str) -> str:
        """Add the libraries of the original, and check its modules less strictly than new code: they are not typed."""
        libraries = sorted(self._libraries())
        if libraries:
            self._report.review(
                self._files[0].path, 1, f"{', '.join(libraries)} are dependencies without a version",
                "requirements.lock has the packages of kubewright only: compile it again", "how-to/deploying.md",
            )  # fmt: skip
        listed = "".join(f', "{each}"' for each in libraries)
        text = text.replace(
            f'dependencies = ["kubewright>={self._kubewright}"]',
            f'dependencies = ["kubewright>={self._kubewright}"{listed}]',
        )
        text = text.replace('typeCheckingMode = "strict"', 'typeCheckingMode = "basic"')
        start, end = text.index("[tool.ruff.lint]"), text.index("[tool.pyright]")
        rules = (
            f'[tool.ruff.format]\nexclude = ["{self._package}/**"] # the layout of the original is kept\n\n'
        )
        rules += '[tool.ruff.lint]\nselect = ["E4", "E7", "E9", "F"]\n\n'
        return text[:start] + rules + text[end:]

    def _libraries(self) -> set[str]:
        own = {each.module for each in self._files} | {"kopf", "kubewright", ""}
        roots = {name.partition(".")[0] for each in self._files for name in each.imported.values()}
        distributions = {"yaml": "PyYAML", "git": "GitPython", "hcl2": "python-hcl2", "ldap3": "ldap3"}
        return {distributions.get(root, root) for root in roots - own - sys.stdlib_module_names}


def _assigned(file: KopfFile) -> set[str]:
    """Return the names that a module assigns."""
    return {
        target.id
        for statement in file.tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (statement.targets if isinstance(statement, ast.Assign) else [statement.target])
        if isinstance(target, ast.Name)
    }


def _added(parameter: str) -> str:
    name = parameter.partition(":")[0]
    return "ctx" if name == "ctx" else f"handling.{name}"


def _add(calls: list[HandlerCall], call: HandlerCall) -> None:
    """Add a call; a call that exists already then runs if either condition is true."""
    for each in calls:
        if (each.identifier, each.expression) == (call.identifier, call.expression):
            each.conditions = (
                [] if "" in (*each.conditions, *call.conditions) else [*each.conditions, *call.conditions]
            )
            each.conditions = list(dict.fromkeys(each.conditions)) or [""]
            return
    calls.append(call)


def _operations(options: Mapping[str, ast.expr]) -> list[str]:
    given = options.get("operations", options.get("operation"))
    values = given.elts if isinstance(given, ast.List | ast.Tuple | ast.Set) else [given]
    texts = [each.value for each in values if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return [f'"{text.lower()}"' for text in texts]


def _label_selector(options: Mapping[str, ast.expr], file: KopfFile) -> str | None:
    """Return a label filter as a selector, if all its values are constant."""
    given = options.get("labels")
    if not isinstance(given, ast.Dict):
        return None
    parts: list[str] = []
    for key, value in zip(given.keys, given.values, strict=True):
        name, text, marker = constant_of(key, {}), constant_of(value, {}), file.dotted(value)
        if name is None or (text is None and marker not in ("kopf.PRESENT", "kopf.ABSENT")):
            return None
        parts.append(
            f"{name}={text}" if text is not None else f"{'' if marker == 'kopf.PRESENT' else '!'}{name}"
        )
    return ",".join(parts)


def _same_kind(one: KopfHandler, other: KopfHandler) -> bool:
    names = {registration.kind.name for registration in one.registrations if registration.kind}
    return any(registration.kind and registration.kind.name in names for registration in other.registrations)


def _status_keys(handler: KopfHandler) -> set[str]:
    """Return the keys that a handler assigns in `patch.status`."""
    return {
        key
        for node in ast.walk(handler.node)
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store)
        if isinstance(node.value, ast.Attribute) and node.value.attr == "status"
        if (key := constant_of(node.slice, {})) is not None
    }


def _patches_object(handler: KopfHandler) -> bool:
    """Return True if a handler may patch more than the status."""
    if "patch" not in parameters(handler.node):
        return False
    allowed = {
        id(each.value)
        for each in ast.walk(handler.node)
        if isinstance(each, ast.Attribute) and each.attr == "status" and isinstance(each.value, ast.Name)
    }
    return any(
        isinstance(each, ast.Name) and each.id == "patch" and id(each) not in allowed
        for each in ast.walk(handler.node)
    )


__all__ = ["Converted", "KopfError", "KopfModule", "convert"]
