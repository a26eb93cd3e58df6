"""The text of `controllers.py`: a controller for each kind, which runs the handlers in their order."""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from kubewright.scaffold.from_kopf.kinds import KindClass
from kubewright.scaffold.naming import controller_name, variable_name


@dataclass
class HandlerCall:
    """One call of a handler in a controller."""

    handler: str
    identifier: str
    arguments: str
    is_async: bool
    conditions: list[str] = field(default_factory=list[str])
    needs: list[str] = field(default_factory=list[str])
    """The declarations that its controller needs for it."""

    @property
    def expression(self) -> str:
        """Return what is awaited."""
        if self.is_async:
            return f"{self.handler}({self.arguments})"
        return f"ctx.run_sync({', '.join(part for part in (self.handler, self.arguments) if part)})"


@dataclass
class KindHandlers:
    """The handlers of one kind."""

    kind: KindClass
    changes: list[HandlerCall] = field(default_factory=list[HandlerCall])
    deletes: list[HandlerCall] = field(default_factory=list[HandlerCall])
    events: list[HandlerCall] = field(default_factory=list[HandlerCall])
    event_labels: list[str | None] = field(default_factory=list[str | None])
    own_controllers: list[tuple[HandlerCall, str]] = field(default_factory=list[tuple[HandlerCall, str]])
    """Timers and daemons, with the value that their reconcile returns."""
    owns: dict[str, KindClass] = field(default_factory=dict[str, KindClass])
    watches_status: bool = False


@dataclass
class Controllers:
    """The contents of the module of the controllers."""

    package: str
    name: str
    group: str
    """The API group of finalizers for kinds that have none."""
    kinds: dict[str, KindHandlers] = field(default_factory=dict[str, KindHandlers])
    webhooks: dict[str, str] = field(default_factory=dict[str, str])
    """The text of each webhook by its name."""
    indexes: list[str] = field(default_factory=list[str])
    startup: list[HandlerCall] = field(default_factory=list[HandlerCall])
    cleanup: list[HandlerCall] = field(default_factory=list[HandlerCall])
    client_needs: dict[tuple[str, str, str], KindClass] = field(
        default_factory=dict[tuple[str, str, str], KindClass]
    )
    loads_client_config: bool = False
    support: set[str] = field(default_factory=set[str])
    _imports: dict[str, set[str]] = field(default_factory=dict[str, set[str]])

    def import_from(self, module: str, *names: str) -> None:
        """Import names of a module of the project."""
        self._imports.setdefault(f"{self.package}.{module}", set()).update(names)

    def import_kind(self, kind: KindClass) -> None:
        """Import the class of a kind."""
        module, name = kind.imports
        self._imports.setdefault(module, set()).add(name)

    def text(self) -> str:
        """Return the module."""
        needs = self.client_needs
        blocks: list[str] = []
        if needs:
            for kind in needs.values():
                self.import_kind(kind)
            blocks.append(_client_needs(needs))
        blocks += self.indexes
        names: list[str] = []
        for number, group in enumerate(self.kinds.values()):
            self.import_kind(group.kind)
            for child in group.owns.values():
                self.import_kind(child)
            for name, text in self._group(group, with_needs=bool(needs) and not number):
                names.append(name)
                blocks.append(text)
        blocks += self.webhooks.values()
        lifespan = self._lifespan()
        if lifespan:
            blocks.append(lifespan)
        arguments = [*names, f'name="{self.name}"']
        if self.webhooks:
            arguments.append(f"webhooks=[{', '.join(self.webhooks)}]")
        if lifespan:
            arguments.append("lifespan=lifespan")
        line = f"operator = kw.Operator({', '.join(arguments)})\n"
        if len(line) > 120:
            line = "operator = kw.Operator(\n" + "".join(f"    {each},\n" for each in arguments) + ")\n"
        blocks.append(line)
        body = "\n\n".join(blocks)
        return f'"""The controllers that run the handlers which came from kopf."""\n\n{self._import_lines(body)}\n\n{body}'

    def _import_lines(self, body: str) -> str:
        standard: list[str] = []
        if "to_thread(" in body:
            standard.append("import asyncio\n")
        if "getLogger(" in body:
            standard.append("import logging\n")
        if "AsyncGenerator[" in body:
            standard.append("from collections.abc import AsyncGenerator\n")
        if "@asynccontextmanager" in body:
            standard.append("from contextlib import asynccontextmanager\n")
        if "timedelta(" in body:
            standard.append("from datetime import timedelta\n")
        if "Any]" in body or ": Any" in body:
            standard.append("from typing import Any\n")
        support = {name for name in (*self.support, "Handling", "ESSENCE") if f"{name}" in body}
        if support:
            self._imports.setdefault(f"{self.package}.support", set()).update(support)
        theirs = ["import kubernetes\n"] if "kubernetes.config" in body else []
        theirs.append("import kubewright as kw\n")
        own: list[str] = []
        for module, names in sorted(self._imports.items()):
            line = f"from {module} import {', '.join(sorted(names))}\n"
            if len(line) > 120:
                line = (
                    f"from {module} import (\n" + "".join(f"    {name},\n" for name in sorted(names)) + ")\n"
                )
            (own if module.startswith(f"{self.package}.") else theirs).append(line)
        return "\n".join("".join(part) for part in (standard, theirs, own) if part)

    def _group(self, group: KindHandlers, *, with_needs: bool) -> Iterator[tuple[str, str]]:
        kind, names = group.kind, controller_name(group.kind.kind.kind)
        variable, status = variable_name(kind.kind.kind), kind.kind.status
        more = ["*CLIENT_CALLS"] if with_needs else []
        finish = f"    await handling.finish(has_status={status})\n"
        start = f"    handling = Handling({variable}, ctx)\n"
        signature = f"({variable}: {kind.annotation}, ctx: kw.Context)"
        if group.changes or group.deletes:
            words = [kind.reference]
            if group.owns:
                words.append(f"owns=[{', '.join(sorted(group.owns))}]")
            words.append(_needs([*group.changes, *group.deletes], more))
            more = []
            if not group.watches_status:
                words.append("when=ESSENCE")
            text = _decorator(words)
            text += f'async def {names}{signature} -> None:\n    """Run the handlers of kopf\'s create, update, resume and field, in their order."""\n'
            text += (
                start + "".join(map(_run, group.changes)) + finish
                if group.changes
                else "    # kopf had a handler of delete only.\n"
            )
            if group.deletes:
                domain = kind.kind.group or self.group
                text += f'\n\n@{names}.finalizer("{domain}/{self.name}")\n'
                text += f'async def {names}_deleted{signature} -> None:\n    """Run the handlers of kopf\'s delete before the object is gone."""\n'
                text += start + "".join(map(_run, group.deletes)) + finish
            yield names, text
        if group.events:
            labels = set(group.event_labels)
            selector = next(iter(labels)) if len(labels) == 1 else None
            words = [kind.reference, f'name="{kind.kind.kind.lower()}-events"']
            if selector:
                words.append(f'selector=kw.Selector(labels="{selector}")')
                for each in group.events:
                    each.conditions = [
                        " and ".join(part for part in test.split(" and ") if "handling.labels" not in part)
                        for test in each.conditions
                    ]
            words.append(_needs(group.events, more))
            more = []
            text = _decorator(words)
            text += f'async def {names}_events{signature} -> None:\n    """Run the handlers of kopf\'s events."""\n'
            text += start + "".join(map(_run, group.events)) + finish
            yield f"{names}_events", text
        for call, seconds in group.own_controllers:
            dashed = call.handler.replace("_", "-").strip("-").lower()
            text = _decorator(
                [
                    kind.reference,
                    f'name="{kind.kind.kind.lower()}-{dashed}"',
                    _needs([call], more),
                    'when=kw.predicates.on("create")',
                ]
            )
            what, more = "timer" if seconds else "daemon", []
            text += f'async def {call.handler}_{what}{signature} -> {"kw.Result" if seconds else "None"}:\n    """Run kopf\'s {what} `{call.handler}`."""\n'
            text += start + _run(call) + finish
            if seconds:
                text += f"    return kw.Result(after=timedelta(seconds={seconds}))\n"
            yield f"{call.handler}_{what}", text

    def _lifespan(self) -> str:
        if not (self.startup or self.cleanup or self.loads_client_config):
            return ""
        text = "@asynccontextmanager\nasync def lifespan() -> AsyncGenerator[None, None]:\n"
        text += '    """Run the handlers of kopf\'s startup and cleanup."""\n'
        calls = [*self.startup, *self.cleanup]
        if any("handling." in call.arguments for call in calls):
            text += "    handling = Handling({})\n"
        if self.loads_client_config:
            text += "    kubernetes.config.load_config()\n"
        for call in self.startup:
            text += f"    await {_outside(call)}\n"
        text += "    yield\n"
        for call in self.cleanup:
            text += f"    await {_outside(call)}\n"
        return text


def _outside(call: HandlerCall) -> str:
    if call.is_async:
        return f"{call.handler}({call.arguments})"
    return f"asyncio.to_thread({', '.join(part for part in (call.handler, call.arguments) if part)})"


def _run(call: HandlerCall) -> str:
    conditions = [each for each in call.conditions if each]
    if len(conditions) > 1:
        conditions = [f"({each})" if " and " in each else each for each in conditions]
    indent = "        " if conditions else "    "
    head = f"    if {' or '.join(conditions)}:\n" if conditions else ""
    line = f'{indent}await handling.run("{call.identifier}", {call.expression})\n'
    if len(line) <= 121:
        return head + line
    arguments = [*([] if call.is_async else [call.handler]), *_split(call.arguments)]
    inner = "".join(f"{indent}        {each},\n" for each in arguments)
    function = call.handler if call.is_async else "ctx.run_sync"
    return f'{head}{indent}await handling.run(\n{indent}    "{call.identifier}",\n{indent}    {function}(\n{inner}{indent}    ),\n{indent})\n'


def _split(arguments: str) -> list[str]:
    """Return the arguments of a call one by one."""
    call = ast.parse(f"f({arguments})", mode="eval").body
    return (
        [ast.unparse(each).replace("'", '"') for each in call.keywords] if isinstance(call, ast.Call) else []
    )


def _needs(calls: Sequence[HandlerCall], more: Sequence[str]) -> str:
    found = list(dict.fromkeys([*(need for call in calls for need in call.needs), *more]))
    return f"needs=[{', '.join(found)}]" if found else ""


def _decorator(words: Sequence[str]) -> str:
    given = [word for word in words if word]
    line = f"@kw.controller({', '.join(given)})\n"
    return (
        line
        if len(line) <= 121
        else "@kw.controller(\n" + "".join(f"    {word},\n" for word in given) + ")\n"
    )


def _client_needs(needs: Mapping[tuple[str, str, str], KindClass]) -> str:
    verbs: dict[tuple[str, str], list[str]] = {}
    for reference, verb, subresource in needs:
        verbs.setdefault((reference, subresource), []).append(verb)
    lines = "".join(
        f"    kw.needs({reference}, {', '.join(repr(verb).replace(chr(39), chr(34)) for verb in sorted(set(given)))}"
        f"{f', subresource={chr(34)}{subresource}{chr(34)}' if subresource else ''}),\n"
        for (reference, subresource), given in sorted(verbs.items())
    )
    return f'CLIENT_CALLS = [\n{lines}]\n"""The rights of the client library\'s calls in the handlers."""\n'
