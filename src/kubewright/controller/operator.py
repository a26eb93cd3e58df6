"""An operator as data: controllers, webhooks, a lifespan, and the settings of its Deployment."""

from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractAsyncContextManager
from copy import copy
from typing import Any

from kubewright.api import DeclarationError, Kind, Object, kind_of, names
from kubewright.api.scoping import NamespaceSelector
from kubewright.api.sharding import Shards
from kubewright.controller.declaration import Controller
from kubewright.packaging import Env, Workload
from kubewright.webhook import Admission, Authentication, Endpoints, Webhook

DEFAULT_WORKLOAD = Workload()


class Operator:
    """Declare an operator: `Operator(shells, webhooks=[sensible], lifespan=session)`.

    The lifespan is entered before the controllers start and left after they stopped; declaring,
    rendering and installing never enter it. `planning` is entered in its place by `kubewright plan`: it must
    not change external systems. `planning=contextlib.nullcontext` says that the operator changes only the cluster.
    `proving` is entered in its place by `kubewright prove`: it uses simulated external systems. `keeps` lists the kinds
    of objects that the operator creates and that are meant to stay after everything is deleted; `kubewright prove` reports
    others as left behind. `kinds` lists kinds whose CRDs the operator installs beside those that it reconciles;
    a kind that it only owns or watches, and one declared with `external=True`, is installed by another operator.
    `env` and `workload` describe its Deployment.
    `shards` divides its objects over all replicas: a number of shards, or `kubewright.shards.Shards(8, by="namespace")`.
    `namespaces` limits it to the namespaces with certain labels: `kubewright.namespaces.NamespaceSelector("team=a")`.
    """

    def __init__(
        self,
        *controllers: Controller[Any],
        name: str = "",
        webhooks: Sequence[Webhook] = (),
        lifespan: Callable[[], AbstractAsyncContextManager[object]] | None = None,
        env: Sequence[Env] = (),
        kinds: Sequence[type[Object]] = (),
        workload: Workload = DEFAULT_WORKLOAD,
        planning: Callable[[], AbstractAsyncContextManager[object]] | None = None,
        proving: Callable[[], AbstractAsyncContextManager[object]] | None = None,
        keeps: Sequence[type[Object] | Kind] = (),
        shards: Shards | int | None = None,
        namespaces: NamespaceSelector | None = None,
    ) -> None:
        if not controllers and not webhooks:
            raise DeclarationError("Operator() has no controllers and no webhooks: give it at least one")
        seen: dict[str, Controller[Any]] = {}
        for controller in controllers:
            other = seen.setdefault(controller.name, controller)
            if other is not controller:
                both = f"{kind_of(other.kind).kind} and {kind_of(controller.kind).kind}"
                raise DeclarationError(
                    f'two controllers are named {controller.name!r} ({both}): give one of them name="..."'
                )
        self.controllers: tuple[Controller[Any], ...] = tuple(seen.values())
        self.webhooks: Endpoints = Endpoints(webhooks)
        self.name: str = name or _default_name(self.controllers, webhooks)
        problems = names.dns1123_subdomain(self.name)
        if problems:
            raise DeclarationError(f"operator name {self.name!r}: {problems[0]}")
        self.lifespan = lifespan
        self.planning = planning
        self.proving = proving
        self.keeps: tuple[Kind, ...] = tuple(kind_of(kind) for kind in keeps)
        self.shards: Shards | None = Shards(shards) if isinstance(shards, int) else shards
        if namespaces is not None and not isinstance(namespaces, NamespaceSelector):  # pyright: ignore[reportUnnecessaryIsInstance]  (authors need no type checker)
            raise DeclarationError(
                f"namespaces={namespaces!r}: expected kubewright.namespaces.NamespaceSelector(labels); "
                "choose namespaces by name with `kubewright run -n`"
            )
        self.namespaces: NamespaceSelector | None = namespaces
        if self.shards is not None:
            self.check_shards(self.shards, namespaces)
        self.env: tuple[Env, ...] = tuple(env)
        self.workload = workload
        for kind in kinds:
            if kind_of(kind).external:
                raise DeclarationError(
                    f"kinds=[{kind.__name__}]: its CRD is installed by another project (external=True): "
                    "remove it from kinds="
                )
        own = (controller.kind for controller in self.controllers)
        converted = (cls for each in self.webhooks.versions.values() for cls in each.classes.values())
        declared = (*own, *kinds, *converted)
        self.kinds: tuple[type[Any], ...] = tuple(
            dict.fromkeys(kind for kind in declared if isinstance(kind, type) and _is_installed_here(kind))
        )
        self.webhooks.check(self.kinds)

    def without_webhooks(self, names: Collection[str]) -> "Operator":
        """Return the operator without the admission webhooks of these names, which policies replace.

        Raise DeclarationError for a name that no admission webhook has.
        """
        known = [endpoint.name for endpoint in self.webhooks.admissions]
        for name in names:
            if name not in known:
                raise DeclarationError(
                    f"operator {self.name!r} has no admission webhook {name!r}: "
                    f"choose from {', '.join(known) or 'none'}, or generate the manifests again"
                )
        made = copy(self)
        made.webhooks = self.webhooks.without(names)
        return made

    def following(self, namespaces: NamespaceSelector) -> "Operator":
        """Return a copy of the operator that is limited to the namespaces with these labels."""
        limited = copy(self)
        limited.namespaces = namespaces
        if self.shards is not None:
            self.check_shards(self.shards, namespaces)
        return limited

    def check_shards(self, shards: Shards, namespaces: NamespaceSelector | None = None) -> None:
        """Raise DeclarationError if the objects of a controller, in the selected namespaces, cannot be divided in this way."""
        if namespaces is not None and shards.by != "namespace":
            raise DeclarationError(
                f"{shards}: with namespaces by label ({namespaces}) objects can only be divided by namespace: "
                f'use Shards({shards.count}, by="namespace"), or run --shards {shards.count},namespace'
            )
        for controller in self.controllers:
            if not controller.options.needs_leader_election:
                continue  # it runs on every replica, on all objects
            if shards.by == "namespace" and not kind_of(controller.kind).namespaced:
                raise DeclarationError(
                    f"{shards}: {kind_of(controller.kind).kind} is cluster-scoped and has no namespace: "
                    f"use {shards.count} shards by uid"
                )
            if controller.sources:
                raise DeclarationError(
                    f"{shards}: controller {controller.name!r} watches a source, whose events cannot be divided: "
                    "run it in an operator without shards"
                )

    def __repr__(self) -> str:
        return f"Operator({', '.join(map(repr, self.controllers))}, name={self.name!r})"


def _is_installed_here(kind: type[Object]) -> bool:
    declared = kind_of(kind)
    return not (declared.builtin or declared.external)


def _default_name(controllers: Sequence[Controller[Any]], webhooks: Sequence[Webhook]) -> str:
    if controllers:
        return controllers[0].name
    first = webhooks[0]
    if isinstance(first, Authentication):
        return "authentication"
    return kind_of(first.kind if isinstance(first, Admission) else first.hub).kind.lower()
