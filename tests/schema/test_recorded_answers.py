"""The same errors, results and warnings as recorded from a real API server."""

from copy import deepcopy

import pytest
import schema_definitions as definitions
import schema_ratchets as ratchets
import schema_rule_values as rule_values
import schema_rules as rules
import schema_values as values
from schema_answers import answers, causes, seen, thing

from kubewright.schema import apply_defaults, check_crd, prune, validate


@pytest.mark.parametrize("name", definitions.DEFINITIONS)
def test_rejects_crds_like_the_real_server(name: str) -> None:
    assert causes(check_crd(definitions.DEFINITIONS[name])) == seen(answers("definitions")[name])


@pytest.mark.parametrize("name", values.VALUES)
def test_prunes_defaults_and_validates_like_the_real_server(name: str) -> None:
    answer, value = answers("values")[name], thing(deepcopy(values.VALUES[name]))
    dropped = prune(values.WIDE, value)
    apply_defaults(values.WIDE, value)
    assert causes(validate(values.WIDE, value)) == seen(answer)
    if answer["accepted"]:
        assert value["spec"] == answer["spec"]
    if "strict" in answer:
        listed = ", ".join(f'unknown field "{path}"' for path in dropped)
        assert answer["strict"].endswith(f"strict decoding error: {listed}")
    else:
        assert dropped == []


@pytest.mark.parametrize("name", ratchets.UPDATES)
def test_ratchets_updates_like_the_real_server(name: str) -> None:
    errors = validate(ratchets.NEW, thing(ratchets.UPDATES[name]), old=thing(ratchets.BEFORE))
    assert causes(errors) == seen(answers("ratchets")[name])


@pytest.mark.parametrize("name", rules.DEFINITIONS)
def test_compiles_rules_and_estimates_costs_like_the_real_server(name: str) -> None:
    assert causes(check_crd(rules.DEFINITIONS[name])) == seen(answers("rule_definitions")[name])


@pytest.mark.parametrize(
    ("group", "name"),
    [(group, name) for group, content in rule_values.VALUES.items() for name in content["specs"]],
)
def test_evaluates_rules_on_values_like_the_real_server(group: str, name: str) -> None:
    schema, value = (
        rule_values.VALUES[group]["schema"],
        thing(deepcopy(rule_values.VALUES[group]["specs"][name])),
    )
    prune(schema, value)
    apply_defaults(schema, value)
    assert causes(validate(schema, value)) == seen(answers("rule_values")[group][name])


@pytest.mark.parametrize(
    ("group", "name"),
    [(group, name) for group, content in rule_values.UPDATES.items() for name in content["specs"]],
)
def test_evaluates_rules_on_updates_like_the_real_server(group: str, name: str) -> None:
    content = rule_values.UPDATES[group]
    errors = validate(content["new"], thing(content["specs"][name]), old=thing(content["before"]))
    assert causes(errors) == seen(answers("rule_updates")[group][name])
