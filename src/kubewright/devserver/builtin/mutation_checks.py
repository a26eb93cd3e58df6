"""What makes a mutating admission policy acceptable: its conditions, variables and mutations."""

from kubewright.api import FieldError, problems
from kubewright.devserver.builtin import field_checks as check
from kubewright.devserver.builtin.admission_checks import (
    Compile,
    check_conditions,
    check_expression,
    check_match,
    check_variable,
)
from kubewright.devserver.expressions import PolicyCompiler
from kubewright.devserver.objects import JsonObject, items

# What is deleted cannot be changed.
_OPERATIONS = ("*", "CONNECT", "CREATE", "UPDATE")
_FORMS = {"ApplyConfiguration": "applyConfiguration", "JSONPatch": "jsonPatch"}


def check_mutating_policy(spec: JsonObject) -> list[FieldError]:
    """Check the expressions of a mutating policy, and when it is asked again."""
    compiler = PolicyCompiler(spec)
    errors = check_conditions(items(spec, "matchConditions"), "spec.matchConditions", compiler.condition)
    for index, variable in enumerate(items(spec, "variables")):
        errors += check_variable(variable, f"spec.variables[{index}]", compiler)
    if not items(spec, "mutations"):
        errors.append(problems.required("spec.mutations", "mutations must contain at least one item"))
    for index, mutation in enumerate(items(spec, "mutations")):
        errors += _check_mutation(mutation, f"spec.mutations[{index}]", compiler)
    if not spec.get("reinvocationPolicy"):
        return [*errors, problems.required("spec.reinvocationPolicy")]
    return errors + check.one_of("spec.reinvocationPolicy", spec["reinvocationPolicy"], ("IfNeeded", "Never"))


def check_mutating_match(match: JsonObject, path: str) -> list[FieldError]:
    """Check which writes a mutating policy or its binding is about."""
    errors = check_match(match, path)
    for rule in items(match, "resourceRules"):
        for operation in items(rule, "operations"):
            errors += check.one_of(f"{path}.resourceRules.operations", operation, _OPERATIONS)
    return errors


def _check_mutation(mutation: JsonObject, path: str, compiler: PolicyCompiler) -> list[FieldError]:
    form = mutation.get("patchType", "")
    if not form:
        return [problems.required(f"{path}.patchType")]
    if form not in _FORMS:
        return [problems.not_supported(f"{path}.patchType", form, tuple(_FORMS))]
    wanted, compiles = _FORMS[form], _compiler(form, compiler)
    errors: list[FieldError] = []
    if mutation.get(wanted) is None:
        text = f"must be specified when patchType is {form}"
        errors.append(problems.required(f"{path}.{wanted}", text))
    else:
        place, expression = f"{path}.{wanted}.expression", mutation[wanted].get("expression", "").strip()
        errors += check_expression(expression, place, compiles) if expression else [problems.required(place)]
    for other in _FORMS.values():
        if other != wanted and mutation.get(other) is not None:
            text = f"must not be specified when patchType is {form}"
            errors.append(problems.invalid(f"{path}.{other}", f"{{{other}}}", text))
    return errors


def _compiler(form: str, compiler: PolicyCompiler) -> Compile:
    return compiler.patch if form == "JSONPatch" else compiler.configuration
