"""What is translated, what stays a webhook and why, and what is rendered for both."""

import os
from collections.abc import Callable, Iterator
from typing import Annotated, Any

import pytest

import kubewright as kw
from kubewright.admission import AdmissionRequest, Problem, denied, invalid
from kubewright.api.builtin import core_v1
from kubewright.generate import KeptWebhook, Settings, is_idle, manifests, with_policies

from .kinds import MOST, OPERATOR, Pool, pools

JsonObject = dict[str, Any]
COMPUTED = int(os.environ.get("NEVER_SET", "3"))
CHANGED = 1
CHANGED = 2
LARGE = 20


class Hooked(kw.Model):
    """A model that changes itself."""

    size: int = 1

    def __post_init__(self) -> None:
        self.size += 1


class WideSpec(kw.Model):
    """Fields without bounds, and of types that policies cannot read."""

    count: Annotated[int, kw.Field(int64=True)] = 1
    ratio: float = 0.5
    names: list[str] = []
    memory: kw.Quantity | None = None
    hooked: Hooked = Hooked()
    note: str = ""


class Wide(kw.Resource[WideSpec, kw.Model], group="policies.example.com", version="v1"):
    """A kind without bounds."""


class SwitchSpec(kw.Model):
    """Booleans that may be None or absent."""

    on: bool = False
    off: bool = False
    maybe: bool | None = None
    name: str | None = None
    flags: Annotated[dict[str, bool], kw.Field(max_properties=3)] = {}


class Switch(kw.Resource[SwitchSpec, kw.Model], group="policies.example.com", version="v1"):
    """A kind with booleans."""


def kept(*webhooks: Any) -> list[KeptWebhook]:
    return list(with_policies(kw.Operator(pools, webhooks=webhooks))[2])


def validated(function: Callable[..., Any], kind: Any = Pool, **terms: Any) -> Any:
    return kw.admission.validating_webhook(kind, **terms)(function)


def mutated(function: Callable[..., Any], kind: Any = Pool, **terms: Any) -> Any:
    return kw.admission.mutating_webhook(kind, **terms)(function)


def loops(pool: Pool) -> Iterator[Problem]:
    for tag in pool.spec.tags:
        yield denied(tag)


def raises(pool: Pool) -> Iterator[Problem]:
    if pool.spec.size > 3:
        raise ValueError("no")
    yield denied("no")


def may_be_none(pool: Pool) -> Iterator[Problem]:
    if pool.spec.big > 3:  # type: ignore[operator]
        yield denied("no")


def reads_old_on_create(pool: Pool, old: Pool | None) -> Iterator[Problem]:
    if pool.spec.size > old.spec.size:  # type: ignore[union-attr]
        yield denied("no")


def uses_floats(wide: Wide) -> Iterator[Problem]:
    if wide.spec.ratio > 1:
        yield denied("no")


def divides(pool: Pool) -> Iterator[Problem]:
    if pool.spec.size / 2 > 1:
        yield denied("no")


def divides_negative_numbers(pool: Pool) -> Iterator[Problem]:
    if (pool.spec.size - 9) // 2 > 1:
        yield denied("no")


def overflows(wide: Wide) -> Iterator[Problem]:
    if wide.spec.count + 1 > 5:
        yield denied("no")


def costs_too_much(wide: Wide) -> Iterator[Problem]:
    if any(name == "x" for name in wide.spec.names):
        yield denied("no")


def reads_a_quantity(wide: Wide) -> Iterator[Problem]:
    if wide.spec.memory == kw.Quantity("1Gi"):
        yield denied("no")


def reads_a_model_that_changes_itself(wide: Wide) -> Iterator[Problem]:
    if wide.spec.hooked.size > 3:
        yield denied("no")


def calls_methods(pool: Pool) -> Iterator[Problem]:
    if pool.spec.zone.lower() == "x":
        yield denied("no")


def calls_functions(pool: Pool) -> Iterator[Problem]:
    if kept(pool):
        yield denied("no")


def compares_types(pool: Pool) -> Iterator[Problem]:
    if pool.spec.enabled == 1:
        yield denied("no")


def compares_a_list_with_a_tuple(pool: Pool) -> Iterator[Problem]:
    if pool.spec.numbers == (4,):
        yield denied("no")


def reads_a_computed_constant(pool: Pool) -> Iterator[Problem]:
    if pool.spec.size > COMPUTED:
        yield denied("no")


def reads_a_constant_that_changes(pool: Pool) -> Iterator[Problem]:
    if pool.spec.size > CHANGED:
        yield denied("no")


def reads_an_imported_constant(pool: Pool) -> Iterator[Problem]:
    if pool.spec.size > MOST:
        yield denied("no")


def shows_a_list(pool: Pool) -> Iterator[Problem]:
    if not pool.spec.tags:
        yield invalid("spec.tags", pool.spec.tags, "is empty")


def audits(pool: Pool) -> Iterator[Problem]:
    yield kw.admission.audit("zone", pool.spec.zone)


def reads_the_options(pool: Pool, old: Pool | None, request: AdmissionRequest) -> Iterator[Problem]:
    if request.options:
        yield denied("no")


def indexes(pool: Pool) -> Iterator[Problem]:
    if pool.spec.weights["a"] > 1:
        yield denied("no")


def finds_nothing(pool: Pool) -> None:
    """Find nothing."""


def changes_in_validation(pool: Pool) -> None:
    pool.spec.lead = "x"


def reads_what_it_set(pool: Pool) -> None:
    if pool.spec.lead is None:
        pool.spec.lead = "x"
    if pool.spec.lead == "x":
        pool.spec.note = "y"


def sets_none(pool: Pool) -> None:
    pool.spec.lead = None


def sets_a_list(pool: Pool) -> None:
    pool.spec.tags = ["a"]


def sets_what_may_be_empty(pool: Pool) -> None:
    pool.spec.note = pool.spec.zone


def sets_the_name(pool: Pool) -> None:
    pool.metadata.name = "x"


def adds(pool: Pool) -> None:
    pool.spec.size += 1


def denies_and_sets(pool: Pool) -> Iterator[Problem]:
    pool.spec.lead = "x"
    yield denied("no")


def sets_a_field_with_a_default_twice(pool: Pool) -> None:
    pool.spec.frozen = True
    if pool.spec.size > 3:
        pool.spec.frozen = False


def takes_none_from_or(switch: Switch) -> Iterator[Problem]:
    if (switch.spec.on or switch.spec.maybe) is None:
        yield denied("no")


def takes_a_text_from_or(switch: Switch) -> Iterator[Problem]:
    if (switch.spec.on or switch.spec.name) is None:
        yield denied("no")


def takes_none_from_and(switch: Switch) -> Iterator[Problem]:
    both = switch.spec.flags.get("a") and switch.spec.on
    if both == switch.spec.off:
        yield denied("no")


@pytest.mark.parametrize(
    ("webhook", "why", "line"),
    [
        (validated(loops), "loops are not translated", 1),
        (validated(raises), "exceptions are not translated", 2),
        (validated(may_be_none), "`pool.spec.big` may be None here", 1),
        (validated(reads_old_on_create), "old may be None here", 1),
        (validated(uses_floats, Wide), "`wide.spec.ratio` is of type float", 1),
        (validated(divides), "`pool.spec.size / 2` is not translated", 1),
        (validated(divides_negative_numbers), "of negative numbers differ", 1),
        (validated(overflows, Wide), "may need more than 64 bits", 1),
        (validated(costs_too_much, Wide), "the API server would stop its evaluation", 0),
        (validated(reads_a_quantity, Wide), "`kw.Quantity('1Gi')` is not translated", 1),
        (validated(reads_a_model_that_changes_itself, Wide), "wide.spec.hooked is not a model", 1),
        (validated(calls_methods), "`pool.spec.zone.lower()` is not translated", 1),
        (validated(calls_functions), "`kept(pool)` is not translated", 1),
        (validated(compares_types), "a comparison of bool with int", 1),
        (validated(compares_a_list_with_a_tuple), "a comparison of", 1),
        (validated(reads_a_computed_constant), "COMPUTED is not assigned once, from a literal", 1),
        (validated(reads_a_constant_that_changes), "CHANGED is not assigned once, from a literal", 1),
        (validated(reads_an_imported_constant), "MOST is not assigned once, from a literal, in this module", 1),
        (validated(shows_a_list), "the value `pool.spec.tags` is shown in a message only if", 2),
        (validated(audits), "is not translated: yield kw.admission.invalid(...)", 1),
        (validated(reads_the_options), "request.options is not translated", 1),
        (validated(indexes), "raises an exception without this key", 1),
        (validated(finds_nothing), "it reports no findings and changes no field", 0),
        (validated(changes_in_validation), "a validating webhook that changes the object", 1),
        (validated(lambda pool: None, name="a"), "it is not declared with `def`", 0),
        (validated(loops, on=["create", "delete"]), "declare the webhook for create and update, or for delete only", 0),
        (validated(finds_nothing, kw.Kind(group="a.b", version="v1", kind="X", plural="xs")), "it gets a dictionary", 0),
        (validated(finds_nothing, core_v1.Pod, subresources=["eviction"]), "only a validating webhook of status or scale", 0),
        (mutated(reads_what_it_set), "it reads spec.lead after it has set it", 3),
        (mutated(sets_none), "only a str, int or bool is translated", 1),
        (mutated(sets_a_list), "only a str, int or bool is translated", 1),
        (mutated(sets_what_may_be_empty), "is left out if it is ''", 1),
        (mutated(sets_the_name), "may change only labels and annotations of the metadata", 1),
        (mutated(adds), "`pool.spec.size += 1` is not translated", 1),
        (mutated(denies_and_sets), "a mutating webhook that also reports findings", 2),
        (mutated(sets_a_field_with_a_default_twice), "`pool.spec.frozen` is set twice", 3),
        (validated(takes_none_from_or, Switch), "`and` and `or` are translated where only their truth matters", 1),
        (validated(takes_a_text_from_or, Switch), "`and` and `or` are translated where only their truth matters", 1),
        (validated(takes_none_from_and, Switch), "`and` and `or` are translated where only their truth matters", 1),
    ],
    ids=lambda each: getattr(each, "name", ""),
)  # fmt: skip
def test_a_function_with_another_meaning_in_cel_stays_a_webhook(webhook: Any, why: str, line: int) -> None:
    (found,) = kept(webhook)
    assert why in found.why
    assert found.file.endswith("test_translation.py")
    assert found.line == webhook.function.__code__.co_firstlineno + line
    assert str(found).startswith(f"{webhook.name} stays a webhook: {found.file}:{found.line}: ")


def test_a_function_that_depends_on_an_earlier_webhook_stays_one() -> None:
    def set_lead(pool: Pool) -> None:
        if pool.spec.lead is None:
            pool.spec.lead = "x"

    def set_note(pool: Pool) -> None:
        if pool.spec.lead is None:
            pool.spec.note = "y"

    (dependent,) = kept(mutated(set_lead), mutated(set_note))
    assert dependent.name == "set-note"
    assert "set-lead uses the same fields before it" in dependent.why
    untranslated, behind = kept(mutated(adds), mutated(set_lead))
    assert (untranslated.name, behind.name) == ("adds", "set-lead")
    assert "adds runs before it and stays one" in behind.why


def test_an_operator_whose_functions_are_all_policies_has_no_webhooks() -> None:
    operator, settings, stay = with_policies(OPERATOR, Settings(image="a"))
    assert not stay
    assert not operator.webhooks
    documents = manifests(operator, ("crds", "rbac", "webhooks", "deployment", "network"), settings)
    kinds = {document["kind"] for document in documents}
    assert {"ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"} <= kinds
    assert not kinds & {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "PodDisruptionBudget",
    }
    assert "webhook" not in str([each["metadata"]["name"] for each in documents])
    (deployed,) = (each["spec"] for each in documents if each["kind"] == "Deployment")
    (container,) = deployed["template"]["spec"]["containers"]
    assert deployed["replicas"] == 1
    assert [port["name"] for port in container["ports"]] == ["metrics", "probes"]
    assert "--without-webhook=check-numbers.pools.policies.example.com" in container["args"]
    assert not OPERATOR.without_webhooks(settings.replaced_webhooks).webhooks


def test_a_policy_keeps_the_terms_of_its_webhook() -> None:
    def large(pool: Pool) -> Iterator[Problem]:
        if pool.spec.size > LARGE:
            yield denied("too large")

    webhook = validated(
        large,
        on=["update"],
        failure_policy="Ignore",
        match_policy="Exact",
        match_conditions={"named": "object.metadata.name != 'x'"},
        object_selector="a=b",
        namespace_selector={"matchLabels": {"c": "d"}},
        terminating=True,
    )
    _, settings, _ = with_policies(kw.Operator(pools, webhooks=[webhook]))
    policy, binding = settings.policies
    assert policy["spec"] == {
        "failurePolicy": "Ignore",
        "matchConstraints": {
            "matchPolicy": "Exact",
            "resourceRules": [
                {
                    "apiGroups": ["policies.example.com"],
                    "apiVersions": ["v1"],
                    "operations": ["UPDATE"],
                    "resources": ["pools"],
                    "scope": "Namespaced",
                }
            ],
            "namespaceSelector": {"matchLabels": {"c": "d"}},
            "objectSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]},
        },
        "matchConditions": [{"name": "named", "expression": "object.metadata.name != 'x'"}],
        "validations": [
            {"expression": "object.spec.size <= 20", "message": "too large", "reason": "Forbidden"}
        ],
    }
    name = "pool-large.pools.policies.example.com"
    assert policy["metadata"]["name"] == binding["metadata"]["name"] == name
    assert binding["spec"] == {"policyName": name, "validationActions": ["Deny"]}


def test_an_operator_of_policies_only_has_nothing_to_run() -> None:
    def large(pool: Pool) -> Iterator[Problem]:
        if pool.spec.size > LARGE:
            yield denied("too large")

    operator, settings, _ = with_policies(kw.Operator(webhooks=[validated(large)], kinds=[Pool]))
    assert is_idle(operator)
    kinds = {
        each["kind"] for each in manifests(operator, ("crds", "rbac", "webhooks", "deployment"), settings)
    }
    assert kinds == {
        "ClusterRole",
        "CustomResourceDefinition",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }


def test_a_webhook_that_is_not_there_cannot_be_left_out() -> None:
    with pytest.raises(
        kw.errors.DeclarationError, match="no admission webhook 'x': choose from check-numbers"
    ):
        OPERATOR.without_webhooks(["x"])
