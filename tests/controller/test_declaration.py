from datetime import timedelta
from typing import Any, cast

import pytest

from kubewright.api import DeclarationError, Meta
from kubewright.controller import (
    Context,
    Controller,
    Index,
    Operator,
    Result,
    controller,
    needs,
    on,
    owned,
    reference,
    source,
    watch,
)
from kubewright.packaging import Env

from .kinds import Note, Shell, ShellSpec, Zone


async def reconcile(shell: Shell, ctx: Context) -> Result | None:
    return Result(after=timedelta(seconds=shell.spec.size))


class Shells:
    async def reconcile(self, shell: Shell, ctx: Context) -> None:
        pass

    async def finalize(self, shell: Shell, ctx: Context) -> None:
        pass


def test_the_decorator_returns_the_controller_it_declares() -> None:
    @controller(Shell, owns=[Note])
    async def shells(shell: Shell, ctx: Context) -> None:
        pass

    assert isinstance(shells, Controller)
    assert shells.name == "shell"
    assert shells.field_manager == "shell"
    assert [child.kind for child in shells.owns] == [Note]


def test_a_finalizer_is_declared_by_decorating_a_function() -> None:
    @controller(Shell)
    async def shells(shell: Shell, ctx: Context) -> None:
        pass

    assert shells.finalizer_name == ""

    @shells.finalizer("example.com/goodbye")
    async def goodbye(shell: Shell, ctx: Context) -> None:
        pass

    assert shells.finalizer_name == "example.com/goodbye"
    with pytest.raises(DeclarationError, match="has a finalizer already"):
        shells.finalizer("example.com/again")(goodbye)


def test_an_object_with_reconcile_and_finalize_is_a_reconciler() -> None:
    declared = Controller(Shell, Shells(), finalizer="vm-operator")
    assert declared.finalizer_name == "vm-operator"


async def test_a_declared_controller_can_still_be_called() -> None:
    declared = Controller(Shell, reconcile)
    result = await declared(Shell(Meta("a"), spec=ShellSpec(size=3)), cast(Context, None))
    assert result == Result(after=timedelta(seconds=3))


@pytest.mark.parametrize(
    ("declare", "message"),
    [
        (lambda: Controller(Shell, Shells()), 'add finalizer="example.com/name"'),
        (lambda: Controller(Shell, reconcile, finalizer="a.b/c"), "nothing to run"),
        (lambda: Controller(Shell, cast(Any, lambda shell, ctx: None)), "must be `async def`"),
        (lambda: Controller(Shell, cast(Any, object())), "a reconciler is an async function"),
        (lambda: Controller(Shell, Shells(), finalizer="no spaces"), "no spaces"),
        (lambda: Controller(Shell, reconcile, name="Shell!"), "Shell!"),
        (lambda: Controller(Shell, reconcile, concurrency=0), "at least 1"),
        (lambda: Controller(Shell, reconcile, resync=timedelta(0)), "must be positive"),
        (
            lambda: Controller(Shell, reconcile, resync=cast(Any, 300)),
            "controller 'shell': resync=300: pass timedelta(seconds=300)",
        ),
        (lambda: Controller(cast(Any, int), reconcile), "int is no kind"),
        (lambda: watch(Note), "give either map="),
        (lambda: watch(Note, via=Index(Shell, lambda shell: ["a"])), "via= and key= go together"),
        (lambda: needs(Note, "fetch"), "unknown verb 'fetch'"),
        (lambda: needs(Note), "no verbs given"),
        (lambda: on(cast(Any, "created")), "name one or more of create, update, delete"),
        (lambda: owned(Note, finalizer="a b"), "a b"),
        (lambda: Env("A", value="x", secret="y"), "give one of"),
        (lambda: Env("A", key="x"), "key= belongs to"),
        (lambda: Env("A", secret="x", required=True, optional=True), "give one of required=True"),
        (lambda: Env("A", value="x", required=True), "required=True has no effect with value="),
        (Operator, "has no controllers"),
        (lambda: Operator(Controller(Shell, reconcile), name="A"), "operator name 'A'"),
        (
            lambda: Operator(
                Controller(Shell, reconcile), Controller(Note, cast(Any, reconcile), name="shell")
            ),
            "two controllers are named 'shell'",
        ),
        (
            lambda: Controller(
                Shell,
                reconcile,
                watches=[watch(Note, via=Index(Zone, lambda zone: [zone.text]), key=lambda note: note.text)],
            ),
            "needs an index of Shell, not of Zone",
        ),
        (
            lambda: Controller(Note, cast(Any, reconcile), watches=[reference(Shell, "frend")]),
            "controller 'note': reference(Shell, 'frend'): 'frend': Note has no field 'frend': did you mean 'friend'?",
        ),
        (
            lambda: Controller(Zone, cast(Any, reconcile), watches=[reference(Note, "text")]),
            "Zone is cluster-scoped and Note is not: name the field that holds the namespace with namespace_path=",
        ),
        (
            lambda: Controller(
                Note, cast(Any, reconcile), watches=[reference(Shell, "friend", namespace_path="text_")]
            ),
            "did you mean 'text'?",
        ),
        (
            lambda: Controller(
                Shell,
                reconcile,
                watches=[
                    reference(Note, "status.conditions[*].reason", namespace_path="metadata.generateName")
                ],
            ),
            "namespace_path= belongs to a single name",
        ),
    ],
)
def test_impossible_declarations_are_refused_with_a_fix(declare: Any, message: str) -> None:
    with pytest.raises(DeclarationError) as refusal:
        declare()
    assert message in str(refusal.value)


def test_a_result_needs_a_positive_delay() -> None:
    with pytest.raises(ValueError, match="return None when done"):
        Result(after=timedelta(0))


def test_sources_and_watches_are_distinguished() -> None:
    async def ticks() -> Any:
        yield 1

    declared = Controller(
        Shell,
        reconcile,
        watches=[source(ticks, map=lambda tick: []), watch(Note, map=lambda note: [note.key])],
    )
    assert len(declared.sources) == 1
    assert [watched.kind for watched in declared.watches] == [Note]


def test_an_operator_installs_its_own_kinds_but_no_external_ones() -> None:
    operator = Operator(
        Controller(Shell, reconcile, owns=[Note], watches=[watch(Zone, map=lambda zone: [])]),
        Controller(Shell, reconcile, name="again"),
    )
    assert operator.kinds == (Shell,)
    assert operator.name == "shell"
    assert Operator(*operator.controllers, kinds=[Note]).kinds == (Shell, Note)


def test_a_reconciler_that_does_not_take_the_context_is_refused_in_one_line() -> None:
    async def forgetful(shell: Shell) -> None: ...

    with pytest.raises(DeclarationError) as refusal:
        controller(Shell)(cast("Any", forgetful))
    assert "the reconciler of controller 'shell' takes the object and a context" in str(refusal.value)
    assert "write `async def forgetful(obj, ctx: kw.Context)`" in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_a_plain_function_is_refused_with_the_line_to_write() -> None:
    def plain(shell: Shell, ctx: Context) -> None: ...

    with pytest.raises(DeclarationError, match=r"must be `async def`: write `async def plain\(...\)`"):
        controller(Shell)(cast("Any", plain))


@pytest.mark.parametrize(
    ("keyword", "given", "line"),
    [
        ("owns", Note, r"write owns=\[Note\]"),
        ("watches", watch(Note, map=lambda _: []), r"write watches=\[watch\(...\)\]"),
        ("needs", needs(Note, "get"), r"write needs=\[needs\(...\)\]"),
    ],
)
def test_a_keyword_that_takes_a_list_shows_the_brackets(keyword: str, given: Any, line: str) -> None:
    with pytest.raises(DeclarationError, match=line):
        Controller(Shell, reconcile, **{keyword: given})
