"""Write docs/reference/*.md, the API reference, from signatures and docstrings; `--check` only compares.

`PAGES` groups the public names by task. A public name that is on no page, or on two, is an error. Signatures are the text of
the source, so that they show the names that authors use. Members of base classes that have no entry of their own are
listed with the class that inherits them.
"""

import argparse
import ast
import copy
import importlib
import inspect
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import kubewright

REFERENCE = Path(__file__).resolve().parents[1] / "docs" / "reference"
WIDTH = 100
MODULES = (
    "kubewright",
    "kubewright.admission",
    "kubewright.conditions",
    "kubewright.disruption",
    "kubewright.rates",
    "kubewright.shards",
    "kubewright.namespaces",
    "kubewright.predicates",
    "kubewright.hashing",
    "kubewright.packaging",
    "kubewright.errors",
    "kubewright.client",
    "kubewright.manager",
    "kubewright.testing",
    "kubewright.testing.proving",
)
"""The modules whose `__all__` is public, in the order in which a name is attributed to one of them."""


@dataclass(frozen=True)
class Page:
    """One page: a task, and the names for it by section."""

    file: str
    title: str
    text: str
    sections: dict[str, str]
    """The names of each section, qualified by `kw.` for the names in `kubewright`."""


PAGES = (
    Page(
        "kinds.md",
        "Declaring kinds",
        "A kind is a class. See the [tutorial](../tutorial/first-operator.md) for a first one and"
        " [controller-gen markers](../markers.md) for a list of what can be declared.",
        {
            "Models and objects": "kw.Model kw.Field kw.Resource kw.Object kw.Kind",
            "Metadata": "kw.Meta kw.ObjectKey kw.is_controlled_by",
            "Status": "kw.Condition kw.Step",
            "Conditions": "conditions.true conditions.false conditions.unknown conditions.aggregate conditions.find"
            " conditions.is_true conditions.is_false conditions.set",
            "Columns, subresources and rules": "kw.Column kw.Scale kw.Rule",
            "Types that Kubernetes writes as strings": "kw.Quantity kw.Duration kw.IntOrString",
            "Versions": "kw.Conversion",
        },
    ),
    Page(
        "controllers.md",
        "Writing reconcilers",
        "A controller calls its reconciler with the object and a `Context`. See"
        " [Create, apply or update](../how-to/apply-create-update.md).",
        {
            "Controllers": "kw.controller kw.Controller kw.Options kw.Backoff",
            "In a reconciler": "kw.Context kw.Result kw.RetryLater kw.TerminalError",
            "Rates": "rates.Rate",
            "Limits for disruptive writes": "disruption.Budget disruption.Window disruption.Disruption",
            "Operators": "kw.Operator kw.run",
            "Shards": "shards.Shards",
            "Namespaces by label": "namespaces.NamespaceSelector",
        },
    ),
    Page(
        "watching.md",
        "Watching",
        "What triggers a reconcile, and which kinds a controller may access. See"
        " [Watches, references and indexes](../how-to/watching.md), [Selecting what is watched](../how-to/selecting.md) and"
        " [RBAC](../how-to/rbac.md).",
        {
            "Declarations": "kw.owned kw.watch kw.reference kw.source kw.needs",
            "Indexes and selectors": "kw.Index kw.Selector",
            "Hashes of contents": "hashing.content_hash",
            "Predicates": "predicates.generation_changed predicates.labels_changed predicates.annotations_changed"
            " predicates.with_labels predicates.on predicates.all_of predicates.any_of predicates.Change",
        },
    ),
    Page(
        "admission.md",
        "Admission webhooks",
        "`kw.admission` validates and changes objects before they are stored. See"
        " [Admission webhooks](../how-to/webhooks.md).",
        {
            "Declarations": "admission.validating_webhook admission.mutating_webhook admission.AdmissionRequest",
            "Results of a validating webhook": "admission.Problem admission.invalid admission.required"
            " admission.forbidden admission.not_supported admission.duplicate admission.denied admission.warning"
            " admission.audit",
        },
    ),
    Page(
        "testing.md",
        "Testing",
        "`kubewright.testing` is installed with `kubewright[testing]`. See [Testing](../how-to/testing.md).",
        {
            "Clusters": "testing.Cluster testing.embedded testing.isolated testing.eventually testing.DEFAULT_TIMEOUT testing.free_port",
            "Virtual time and faults": "testing.virtual_time testing.settle testing.Faults testing.RequestFaults testing.Match",
            "Proving": "testing.prove testing.External testing.proving.Prover testing.proving.Case testing.proving.CrashPoint"
            " testing.proving.explore testing.proving.Effort testing.proving.Report testing.proving.CaseResult"
            " testing.proving.FoundViolation testing.proving.DistinctViolation testing.proving.Property testing.proving.PROPERTIES"
            " testing.proving.PropertyFailed testing.proving.ProofError testing.proving.Observed"
            " testing.proving.FreshModules testing.proving.fresh_operator testing.proving.random_case"
            " testing.proving.single_crashes testing.proving.lost_responses testing.proving.refused_requests"
            " testing.proving.single_disturbances testing.proving.leader_pauses testing.proving.crash_pairs"
            " testing.proving.SpecSequence testing.proving.ApplySpec testing.proving.EditChild testing.proving.DeleteChild",
            "Simulations": "testing.simulated testing.simulate testing.Simulation testing.Replica testing.World"
            " testing.Write testing.Trace testing.SimulationError testing.Deadlock testing.Livelock testing.HotLoop",
            "Plans of faults": "testing.Plan testing.draw_plan testing.COMMON testing.PORTABLE testing.WEBHOOKS testing.BACKUPS"
            " testing.PlannedFault testing.SimulationFault testing.UnsupportedFault testing.Crash testing.Pause testing.PauseAt testing.PauseLeader testing.Refuse testing.RefuseRequest testing.Lose testing.Slow"
            " testing.CutWatches testing.Deviation testing.DropBookmarks testing.HoldEvents testing.SecondServer testing.WebhooksAway testing.EXTERNAL_SYSTEMS testing.FailExternal testing.LoseResponse testing.SlowExternal"
            " testing.JumpClock testing.RestoreBackup",
            "Faults on any API server": "testing.DisturbedRun testing.ReplicaProcess testing.FaultProxy testing.ProxyEndpoint"
            " testing.FaultTarget testing.FaultReplica testing.FaultEndpoint",
            "Invariants": "testing.truthful_generation testing.one_controller testing.nothing_doubled testing.holds_shard"
            " testing.stays_settled testing.healthy testing.outcome_of testing.nothing_left",
            "Servers": "testing.Environment testing.EmbeddedEnvironment testing.RealEnvironment"
            " testing.ExistingEnvironment testing.RunningEnvironment testing.ControlPlane testing.ControlPlaneError"
            " testing.find_binaries",
        },
    ),
    Page(
        "packaging.md",
        "Packaging",
        "`kw.packaging` describes the Deployment of an operator: `kw.Operator(..., env=[...], workload=...)`. See"
        " [Deploying](../how-to/deploying.md).",
        {"Deployment": "packaging.Env packaging.Volume packaging.Workload"},
    ),
    Page(
        "errors.md",
        "Errors",
        "All exceptions of kubewright are in `kw.errors` and derive from `KubewrightError`. The most used are also in"
        " `kw`: `kw.NotFound`.",
        {
            "Base": "errors.KubewrightError",
            "In declarations and reconcilers": "errors.DeclarationError errors.UndeclaredAccess"
            " errors.OwnedByAnother errors.CannotOwn errors.ContestedField errors.ObjectTerminating"
            " errors.DisruptionDeferred",
            "Responses of the API server": "errors.ApiError errors.BadRequest errors.Unauthorized errors.Forbidden"
            " errors.NotFound errors.MethodNotAllowed errors.NotAcceptable errors.AlreadyExists errors.Conflict"
            " errors.FieldConflict errors.Expired errors.RequestTooLarge errors.UnsupportedMediaType errors.Invalid"
            " errors.TooManyRequests errors.InternalError errors.ServiceUnavailable errors.ServerTimeout"
            " errors.GatewayTimeout",
            "Connections and configuration": "errors.ConnectionFailed errors.ConnectionLost errors.TimedOut"
            " errors.UnexpectedResponse errors.InvalidRequest errors.ConfigError errors.CredentialError",
            "Values": "errors.DecodeError errors.QuantityError errors.DurationError errors.SelectorError"
            " errors.PatchError",
        },
    ),
    Page(
        "client.md",
        "Client",
        "`kubewright.client` is an asyncio client; `ctx.client` is one. See"
        " [Connections, proxies and transports](../how-to/client.md).",
        {
            "Client": "client.Client client.ObjectList client.ServiceAccountToken client.ScaleReplicas"
            " client.ScaleState client.PortForward client.ThrottleStatistics client.ClientResponse",
            "Configuration": "client.load_config client.config_from_kubeconfig client.in_cluster_config"
            " client.ClusterConfig client.ExecPlugin client.OidcProvider client.Impersonation client.RateLimit",
            "Requests": "client.ApiRequest client.ListOptions client.WriteOptions",
            "Discovery": "client.ApiResource client.ServerVersion",
            "Errors": "client.error_from_status client.MissingRule",
        },
    ),
    Page(
        "manager.md",
        "Manager",
        "`kubewright.manager` runs an operator in a program. `kw.run` is simpler: see"
        " [Embedding in another program](../how-to/embedding.md).",
        {
            "Manager": "manager.Manager manager.ManagerOptions manager.ManagerStatistics",
            "Leader election": "manager.ElectionOptions manager.LeaseTimes",
            "Webhooks": "manager.WebhookOptions manager.Lifetimes manager.Reach",
        },
    ),
)
MADE_FOR_YOU = frozenset(
    {
        "Context",
        "Cluster",
        "Simulation",
        "Replica",
        "World",
        "Trace",
        "ObjectList",
        "RunningEnvironment",
        "Faults",
    }
)
"""Classes whose objects are only given to authors: their constructors are not shown."""
DERIVED = frozenset({"Model", "Object", "Resource"})
"""Classes whose subclasses take keywords."""
HIDDEN_KEYWORDS = ("builtin:", "kw_only:", "lists:", "**")
"""Keywords for the generated classes of built-in kinds."""


class PagesError(Exception):
    """The pages do not match the public names."""


Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Member:
    """A field, property or method of a class; a method may have several signatures."""

    name: str
    nodes: list[ast.AnnAssign | Function] = field(default_factory=list[ast.AnnAssign | Function])
    doc: str = ""
    module: str = ""

    @property
    def is_method(self) -> bool:
        """Return True if the member is called."""
        return isinstance(self.nodes[0], Function) and not _is_property(self.nodes[0])


class _Readable(ast.NodeTransformer):
    """Rewrite annotations for readers: aliases of Literal written out, no quotes, no Annotated, no `builtins.`."""

    def __init__(self, module: str) -> None:
        self._module = module

    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        """Parse a forward reference."""
        return self.visit(ast.parse(node.value, mode="eval").body) if isinstance(node.value, str) else node

    def visit_Attribute(self, node: ast.Attribute) -> ast.expr:
        """Leave out the module of builtins."""
        return ast.Name(node.attr) if ast.unparse(node.value) == "builtins" else node

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        """Reduce Annotated to its type."""
        if ast.unparse(node.value) == "Literal":
            return node
        if ast.unparse(node.value) == "Annotated" and isinstance(node.slice, ast.Tuple):
            return self.visit(node.slice.elts[0])
        return ast.Subscript(self.visit(node.value), self.visit(node.slice))

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Write out an alias of Literal."""
        match defined(self._module, node.id):
            case [ast.Assign(value=ast.Subscript(value=ast.Name(id="Literal")) as literal)]:
                return literal
            case _:
                return node


@cache
def tree_of(module: str) -> ast.Module:
    """Parse the source of a module."""
    return ast.parse(inspect.getsource(importlib.import_module(module)))


def defined(module: str, name: str) -> list[ast.stmt]:
    """Return the statements that define a name of a module, or nothing if it is not defined in kubewright."""
    try:
        return find(module, name)[1]
    except PagesError:
        return []


def find(module: str, name: str) -> tuple[str, list[ast.stmt], str]:
    """Follow imports to where a name is defined; return the module, its statements and its docstring."""
    body = tree_of(module).body
    for statement in body:
        if isinstance(statement, ast.ImportFrom) and (statement.module or "").startswith("kubewright"):
            assert statement.module is not None
            for alias in statement.names:
                if (alias.asname or alias.name) == name:
                    return find(statement.module, alias.name)
    found: list[ast.stmt] = []
    doc = ""
    for number, statement in enumerate(body):
        if isinstance(statement, ast.ClassDef | Function) and statement.name == name:
            found.append(statement)
            doc = ast.get_docstring(statement) or doc
        elif name in _assigned(statement):
            found.append(statement)
            doc = _doc_after(body, number)
    if not found:
        raise PagesError(f"{module}: {name} is not defined there")
    return module, found, doc


def _assigned(statement: ast.stmt) -> list[str]:
    match statement:
        case ast.Assign(targets=targets):
            return [target.id for target in targets if isinstance(target, ast.Name)]
        case ast.AnnAssign(target=ast.Name(id=name)):
            return [name]
        case _:
            return []


def _doc_after(body: list[ast.stmt], number: int) -> str:
    match body[number + 1 : number + 2]:
        case [ast.Expr(value=ast.Constant(value=str(text)))]:
            return inspect.cleandoc(text)
        case _:
            return ""


def _is_property(node: ast.stmt) -> bool:
    names = {ast.unparse(each) for each in node.decorator_list} if isinstance(node, Function) else set[str]()
    return bool(names & {"property", "cached_property", "functools.cached_property"})


def _is_overload(node: ast.stmt) -> bool:
    return isinstance(node, Function) and any(ast.unparse(each) == "overload" for each in node.decorator_list)


# Signatures.


def _text(node: ast.AST) -> str:
    """Return source text with the quotes of the project."""
    text = ast.unparse(node)
    return text if '"' in text else text.replace("'", '"')


def _annotation(node: ast.expr, module: str) -> str:
    return _text(_Readable(module).visit(copy.deepcopy(node)))


def _default(node: ast.expr | None) -> str:
    """Return the text of a default; what a factory makes is shown as a literal."""
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("field", "msgspec.field"):
        text = _text(node) if node else ""
        return "..." if text.startswith("_") else text
    for keyword in node.keywords:
        text = _text(keyword.value)
        if keyword.arg == "default":
            return text
        if keyword.arg == "default_factory" and text.startswith("_"):
            return "..."
        if keyword.arg == "default_factory":
            return {"dict": "{}", "list": "[]", "set": "set()"}.get(text.partition("[")[0], f"{text}()")
    return ""


def _parameter(name: str, annotation: ast.expr | None, default: str, module: str) -> str:
    text = f"{name}: {_annotation(annotation, module)}" if annotation else name
    return text + ((" = " if annotation else "=") + default if default else "")


def parameters_of(node: Function, module: str, *, bound: bool) -> list[str]:
    """Return the parameters of a function as text; those of a bound one without self or cls."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults = [""] * (len(positional) - len(arguments.defaults)) + [
        _default(each) for each in arguments.defaults
    ]
    found: list[str] = []
    for number, (each, default) in enumerate(zip(positional, defaults, strict=True)):
        if not (bound and number == 0):
            found.append(_parameter(each.arg, each.annotation, default, module))
        # With self as the only one before it, the slash says nothing.
        if number + 1 == len(arguments.posonlyargs) and found:
            found.append("/")
    if arguments.vararg:
        found.append("*" + _parameter(arguments.vararg.arg, arguments.vararg.annotation, "", module))
    elif arguments.kwonlyargs:
        found.append("*")
    for each, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        found.append(_parameter(each.arg, each.annotation, _default(value), module))
    if arguments.kwarg:
        found.append("**" + _parameter(arguments.kwarg.arg, arguments.kwarg.annotation, "", module))
    return found


def _call(start: str, parameters: list[str], end: str) -> str:
    line = f"{start}({', '.join(parameters)}){end}"
    if len(line) <= WIDTH or not parameters:
        return line
    return "\n".join([f"{start}(", *(f"    {each}," for each in parameters), f"){end}"])


def signature_of(node: Function, name: str, module: str, *, bound: bool) -> str:
    """Return the text of a function's signature."""
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    static = any(ast.unparse(each) == "staticmethod" for each in node.decorator_list)
    returns = f" -> {_annotation(node.returns, module)}" if node.returns else ""
    decorators = [ast.unparse(each) for each in node.decorator_list]
    shown = [f"@{each}\n" for each in decorators if each in ("classmethod", "staticmethod")]
    # A context manager is entered, whichever decorator made it one.
    if any(each.endswith("asynccontextmanager") for each in decorators):
        shown.append("@asynccontextmanager\n")
    return "".join(shown) + _call(
        f"{kind} {name}", parameters_of(node, module, bound=bound and not static), returns
    )


# Classes.


def bases_of(cls: type[Any], *, every: bool) -> Iterator[tuple[str, ast.ClassDef]]:
    """Yield module and source of a class and of its bases that are listed with it, or of every base of kubewright."""
    for number, base in enumerate(cls.__mro__):
        if not base.__module__.startswith("kubewright") or (number and base in DOCUMENTED and not every):
            continue
        for node in tree_of(base.__module__).body:
            if isinstance(node, ast.ClassDef) and node.name == base.__name__:
                yield base.__module__, node


def members_of(cls: type[Any], *, every: bool = False) -> dict[str, Member]:
    """Return the members of a class, those of the class itself first."""
    found: dict[str, Member] = {}
    for module, node in bases_of(cls, every=every):
        own: dict[str, Member] = {}
        for number, statement in enumerate(node.body):
            match statement:
                case ast.AnnAssign(target=ast.Name(id=name)):
                    if not ast.unparse(statement.annotation).startswith("ClassVar"):
                        doc = _doc_after(node.body, number) or _description(statement.annotation)
                        own[name] = Member(name, [statement], doc, module)
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    if any(ast.unparse(each).endswith(".setter") for each in statement.decorator_list):
                        continue
                    member = own.setdefault(name, Member(name, module=module))
                    if member.nodes and _is_overload(member.nodes[0]) and not _is_overload(statement):
                        # The implementation has the docstring; its signature is not for callers.
                        member.doc = ast.get_docstring(statement) or ""
                    else:
                        member.nodes.append(statement)
                        member.doc = member.doc or ast.get_docstring(statement) or ""
                case _:
                    pass
        for name, member in [*own.items(), *_attributes(node, module).items()]:
            found.setdefault(name, member)
    return found


def _attributes(node: ast.ClassDef, module: str) -> dict[str, Member]:
    """Return the attributes that methods set on self, with their annotation or that of the parameter they hold."""
    found: dict[str, Member] = {}
    for method in node.body:
        if not isinstance(method, Function):
            continue
        types = {each.arg: each.annotation for each in [*method.args.args, *method.args.kwonlyargs]}
        for number, statement in enumerate(method.body):
            match statement:
                case ast.AnnAssign(
                    target=ast.Attribute(value=ast.Name(id="self"), attr=name), annotation=annotation
                ):
                    pass
                case ast.Assign(
                    targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=ast.Name(id=given)
                ) if method.name == "__init__" and (annotation := types.get(given)):
                    pass
                case _:
                    continue
            shown = ast.AnnAssign(ast.Name(name), annotation, None, simple=1)
            found.setdefault(name, Member(name, [shown], _doc_after(method.body, number), module))
    return found


def _description(annotation: ast.expr) -> str:
    """Return the description in `Annotated[..., Field(description=...)]`."""
    for node in ast.walk(annotation):
        match node:
            case ast.keyword(arg="description", value=ast.Constant(value=str(text))):
                return text
            case _:
                pass
    return ""


def constructor_of(cls: type[Any], name: str, members: dict[str, Member]) -> str:
    """Return how a class is called, or an empty string for a class that authors only receive."""
    if (
        name in MADE_FOR_YOU
        or issubclass(cls, BaseException)
        or inspect.isabstract(cls)
        or hasattr(cls, "__total__")
    ):
        return ""
    own = members.get("__init__") or members.get("__new__")
    if own is not None:
        return "\n".join(
            _call(name, parameters_of(node, own.module, bound=True), "")
            for node in own.nodes
            if isinstance(node, Function)
        )
    if not any(hasattr(cls, each) for each in ("__struct_fields__", "__dataclass_fields__", "_fields")):
        return ""
    members = members_of(cls, every=True)
    parameters: list[str] = []
    for each in inspect.signature(cls).parameters.values():
        if each.kind is each.KEYWORD_ONLY and "*" not in parameters:
            parameters.append("*")
        member = members.get(each.name)
        if member is not None and isinstance(node := member.nodes[0], ast.AnnAssign):
            parameters.append(_parameter(each.name, node.annotation, _default(node.value), member.module))
        elif each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL) and not each.name.startswith("_"):
            parameters.append(each.name)
    return _call(name, parameters, "") if parameters else ""


def _parents(cls: type[Any]) -> list[str]:
    """Link the documented bases of a class, and name builtin ones."""
    nearest: list[type[Any]] = []
    for base in cls.__mro__[1:]:
        shown = base in DOCUMENTED or (base.__module__ == "builtins" and base is not object)
        if shown and not any(issubclass(other, base) for other in nearest):
            nearest.append(base)
    return [
        f"[`{DOCUMENTED[base][0]}`]({DOCUMENTED[base][1]})" if base in DOCUMENTED else f"`{base.__name__}`"
        for base in nearest
    ]


def class_entry(cls: type[Any], label: str, doc: str) -> Iterator[str]:
    """Render a class: constructor, docstring, fields, methods."""
    members = members_of(cls)
    name = cls.__name__
    constructor = constructor_of(cls, name, members)
    yield f"### {label}\n"
    yield f"```python\nclass {constructor or name}\n```\n"
    if parents := _parents(cls):
        yield f"Base: {', '.join(parents)}\n"
    if doc:
        yield f"{doc}\n"
    if keywords := _class_keywords(cls):
        yield f"Keywords of a subclass:\n\n```python\n{keywords}\n```\n"
    public = [each for each in members.values() if not each.name.startswith("_")]
    fields = [each for each in public if not each.is_method]
    # The signature of the constructor shows the others.
    if fields := [each for each in fields if each.doc or not constructor]:
        yield "\n".join(_field_line(each) for each in fields) + "\n"
    for member in public:
        if member.is_method:
            yield f"#### {name}.{member.name}\n"
            lines = [
                signature_of(node, member.name, member.module, bound=True)
                for node in member.nodes
                if isinstance(node, Function)
            ]
            yield "```python\n" + "\n".join(lines) + "\n```\n"
            yield f"{member.doc}\n"


def _class_keywords(cls: type[Any]) -> str:
    """Return what can be given after the bases of a subclass, for classes that are made to be derived from."""
    if cls.__name__ not in DERIVED:
        return ""
    member = members_of(cls, every=True)["__init_subclass__"]
    (node,) = (each for each in member.nodes if isinstance(each, Function))
    shown = [
        each
        for each in parameters_of(node, member.module, bound=True)
        if not each.startswith(HIDDEN_KEYWORDS)
    ]
    return _call("class YourClass", [cls.__name__, *shown], ": ...")


def _field_line(member: Member) -> str:
    node = member.nodes[0]
    found = node.annotation if isinstance(node, ast.AnnAssign) else node.returns
    annotation = _annotation(found, member.module) if found else "Any"
    doc = " ".join(member.doc.split())
    return f"- `{member.name}: {annotation}`" + (f": {doc}" if doc else "")


# Pages.


def label_of(qualified: str) -> str:
    """Return the name as authors write it in code."""
    module, _, name = qualified.partition(".")
    if qualified == "kw.controller":
        # Its anchor must differ from that of the class.
        return "kw.controller (decorator)"
    if module in ("client", "manager", "testing"):
        return name
    return f"kw.{name}" if name in kubewright.__all__ else f"kw.{qualified}"


def anchor_of(label: str) -> str:
    """Return the anchor that the site and code hosts give a heading."""
    return "".join(each for each in label.lower().replace(" ", "-") if each.isalnum() or each in "-_")


def module_of(qualified: str) -> ModuleType:
    """Import the module that a qualified name is in."""
    module = qualified.rpartition(".")[0]
    return importlib.import_module("kubewright" if module == "kw" else f"kubewright.{module}")


def value_of(qualified: str) -> Any:
    """Return what a qualified name stands for."""
    return getattr(module_of(qualified), qualified.rpartition(".")[2])


def entry(qualified: str) -> Iterator[str]:
    """Render one public name."""
    module, name = module_of(qualified), qualified.rpartition(".")[2]
    where, nodes, doc = find(module.__name__, name)
    label = label_of(qualified)
    value = value_of(qualified)
    if isinstance(nodes[0], ast.ClassDef):
        yield from class_entry(value, label, doc)
        return
    yield f"### {label}\n"
    functions = [node for node in nodes if isinstance(node, Function)]
    shown = [node for node in functions if _is_overload(node)] or functions
    lines = [signature_of(node, name, where, bound=False) for node in shown]
    if isinstance(constant := nodes[0], ast.AnnAssign):
        lines = [f"{name}: {_annotation(constant.annotation, where)}"]
    yield "```python\n" + "\n".join(lines or [_text(nodes[0])]) + "\n```\n"
    if doc:
        yield f"{doc}\n"


def summary_of(qualified: str) -> str:
    """Return the first sentence of a name's docstring, for the table of a page."""
    _, _, doc = find(module_of(qualified).__name__, qualified.rpartition(".")[2])
    if not doc:
        raise PagesError(f"{qualified} has no docstring")
    first = " ".join(doc.partition("\n\n")[0].split())
    return first.replace("|", "\\|")


def render(page: Page) -> str:
    """Render a page."""
    parts = [f"# {page.title}\n", f"{page.text}\n"]
    rows = [
        f"| [`{label_of(name).partition(' ')[0]}`](#{anchor_of(label_of(name))}) | {summary_of(name)} |"
        for names in page.sections.values()
        for name in names.split()
    ]
    parts.append("\n".join(["| name | summary |", "|---|---|", *rows]) + "\n")
    for title, names in page.sections.items():
        parts.append(f"## {title}\n")
        for name in names.split():
            parts += entry(name)
    return "\n".join(parts)


def documented() -> dict[Any, tuple[str, str]]:
    """Return label and link of each documented class."""
    found: dict[Any, tuple[str, str]] = {}
    for page in PAGES:
        for names in page.sections.values():
            for name in names.split():
                value = value_of(name)
                if isinstance(value, type):
                    found[value] = (label_of(name), f"{page.file}#{anchor_of(label_of(name))}")
    return found


def check_complete() -> None:
    """Raise PagesError unless each public name is on exactly one page."""
    listed = [name for page in PAGES for names in page.sections.values() for name in names.split()]
    if repeated := sorted({name for name in listed if listed.count(name) > 1}):
        raise PagesError(f"on two pages of PAGES: {', '.join(repeated)}")
    known = {id(value_of(name)) for name in listed}
    missing: list[str] = []
    for module in map(importlib.import_module, MODULES):
        for name in module.__all__:
            value = getattr(module, name)
            if not inspect.ismodule(value) and id(value) not in known:
                missing.append(f"{module.__name__}.{name}")
    if missing:
        raise PagesError(f"on no page: add to PAGES in {Path(__file__).name}: {', '.join(missing)}")


DOCUMENTED = documented()


def program() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing, fail on a difference")
    check = parser.parse_args().check
    try:
        check_complete()
        pages = {REFERENCE / page.file: render(page) for page in PAGES}
    except PagesError as error:
        print(f"{Path(__file__).name}: {error}", file=sys.stderr)
        return 1
    stale = [path for path, text in pages.items() if not path.exists() or path.read_text() != text]
    for path in stale:
        if check:
            print(
                f"docs/reference/{path.name} is stale: run python tools/{Path(__file__).name}",
                file=sys.stderr,
            )
        else:
            path.write_text(pages[path])
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(program())
