"""Type checking of ValidatingAdmissionPolicies: what of their expressions does not fit the kinds that they match.

The API server accepts such a policy, because `object` may be of any kind there. The warnings are for its author; in a
cluster kube-controller-manager writes them to the status of the policy.
"""

from collections.abc import Iterable, Mapping
from typing import Any, cast

from kubewright.api import GroupVersionKind
from kubewright.devserver.expressions import ExpressionError, PolicyCompiler
from kubewright.devserver.objects import JsonObject, items, section
from kubewright.schema import cel

MAX_KINDS = 10
_REF = "#/components/schemas/"
_INT_OR_STRING = "int-or-string"
_ANYTHING: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


def matched_resources(policy: JsonObject) -> list[tuple[str, str, str]]:
    """Return the groups, versions and resources that a policy names; rules with wildcards name none."""
    found: list[tuple[str, str, str]] = []
    for rule in items(section(policy, "spec", "matchConstraints"), "resourceRules"):
        groups, versions = items(rule, "apiGroups"), items(rule, "apiVersions")
        if any("*" in name for name in (*groups, *versions)):
            continue
        plurals = [name for name in items(rule, "resources") if "*" not in name and "/" not in name]
        found += [
            (group, version, plural)
            for group in sorted(groups)
            for version in sorted(versions)
            for plural in sorted(plurals)
        ]
    return found


def schema_of(gvk: GroupVersionKind, document: Mapping[str, Any]) -> JsonObject | None:
    """Return the schema of a kind from the OpenAPI v3 document of its version, with all references replaced."""
    schemas: JsonObject = section(cast(JsonObject, document), "components", "schemas")
    wanted = {"group": gvk.group, "version": gvk.version, "kind": gvk.kind}
    for name, schema in schemas.items():
        if wanted in schema.get("x-kubernetes-group-version-kind", ()):
            return _resolved(schemas, {"$ref": f"{_REF}{name}"}, ())
    return None


def _resolved(schemas: JsonObject, schema: JsonObject, path: tuple[str, ...]) -> JsonObject:
    if len(parts := items(schema, "allOf")) == 1:
        schema = {**{key: item for key, item in schema.items() if key != "allOf"}, **parts[0]}
    if "$ref" in schema:
        name = str(schema["$ref"]).removeprefix(_REF)
        if name in path:
            return _ANYTHING
        return _resolved(schemas, schemas[name], (*path, name))
    made = dict(schema)
    if schema.get("format") == _INT_OR_STRING:
        made["x-kubernetes-int-or-string"] = True
    if properties := section(schema, "properties"):
        made["properties"] = {key: _resolved(schemas, item, path) for key, item in properties.items()}
    for name in ("items", "additionalProperties"):
        if isinstance(schema.get(name), dict):
            made[name] = _resolved(schemas, schema[name], path)
    return made


def type_warnings(
    policy: JsonObject, kinds: Iterable[tuple[GroupVersionKind, JsonObject]], params: JsonObject | None = None
) -> list[JsonObject]:
    """Return the warnings for a policy's status, given the kinds that it matches and the kind of its parameters."""
    declared = [(gvk, cel.declare(schema, name=gvk.kind)) for gvk, schema in kinds]
    known = None if params is None else cel.declare(params, name="params")
    found: list[JsonObject] = []
    for index, rule in enumerate(items(section(policy, "spec"), "validations")):
        for name in ("expression", "messageExpression"):
            if not (expression := rule.get(name)):
                continue
            texts = [
                f"{gvk.group}/{gvk.version}, Kind={gvk.kind}: {problem}\n"
                for gvk, kind in declared
                if (problem := _problem(section(policy, "spec"), expression, kind, known))
            ]
            if texts:
                found.append({"fieldRef": f"spec.validations[{index}].{name}", "warning": "\n".join(texts)})
    return found


def _problem(
    spec: JsonObject, expression: str, kind: cel.DeclaredType | None, params: cel.DeclaredType | None
) -> str:
    compiler = PolicyCompiler(spec, kind, params)
    for variable in items(spec, "variables"):
        try:
            compiler.variable(variable.get("name", ""), variable.get("expression", ""))
        except ExpressionError:
            # The variable has any type then; expressions that use it are checked for what remains.
            continue
    try:
        compiler.expression(expression)
    except ExpressionError as error:
        return str(error).removeprefix("compilation failed: ")
    return ""
