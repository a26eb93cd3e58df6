"""The public functions of `kubewright.schema`."""

from kubewright import schema


def test_a_compiled_schema_is_a_validator() -> None:
    compiled = schema.compile_schema({"type": "object", "properties": {"a": {"type": "string"}}})
    assert isinstance(compiled, schema.Validator)
    assert compiled.validate({"a": "x"}, old=schema.ABSENT) == []


def test_compare_reports_breaking_changes_by_path() -> None:
    def definition(version: str) -> dict[str, object]:
        return {"spec": {"versions": [{"name": version, "served": True, "storage": True}]}}

    broken = schema.compare(definition("v1"), definition("v2"))
    assert broken
    assert all(isinstance(change, schema.BreakingChange) and change.path in str(change) for change in broken)
