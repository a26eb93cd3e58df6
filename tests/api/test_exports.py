"""What `kubewright.api` offers and what it costs."""

import subprocess
import sys

from kubewright import api


def test_every_public_name_exists_and_has_a_docstring() -> None:
    for name in api.__all__:
        found = getattr(api, name)
        assert getattr(found, "__doc__", None), name


def test_loads_no_library_that_does_input_or_output() -> None:
    heavy = {"httptools", "cryptography", "prometheus_client", "yaml", "rich", "click", "asyncio"}
    script = (
        "import sys, types; root = types.ModuleType('kubewright');"
        f"root.__path__ = {list(sys.modules['kubewright'].__path__)!r}; sys.modules['kubewright'] = root;"
        "import kubewright.api; print(*sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert heavy.isdisjoint(found.stdout.split())


def test_results_of_the_selector_parsers_are_public() -> None:
    labels, fields = api.parse_labels("app=web"), api.parse_fields("metadata.name=a")
    assert labels == api.LabelMatcher((api.Requirement("app", "=", ("web",)),))
    assert isinstance(fields, api.FieldSelector)
    assert isinstance(fields.requirements[0], api.FieldRequirement)
    assert issubclass(api.Quantity, api.Scalar)


def test_managed_fields_are_read() -> None:
    entry = {"manager": "kubectl", "operation": "Apply", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    meta = api.from_wire(api.Meta, {"name": "a", "managedFields": [entry]})
    assert isinstance(meta.managed_fields[0], api.ManagedFieldsEntry)
    assert meta.managed_fields[0].manager == "kubectl"


def test_a_patch_schema_is_any_object_with_fields_items_and_keys() -> None:
    class ByName:
        strategy = frozenset({"merge"})
        merge_key = "name"

        def field(self, name: str) -> api.PatchSchema:
            return self

        def item(self) -> api.PatchSchema:
            return self

    schema: api.PatchSchema = ByName()
    live = {"items": [{"name": "a", "size": 1}, {"name": "b"}]}
    patched = api.strategic_patch(live, {"items": [{"name": "a", "size": 2}]}, schema)
    assert patched == {"items": [{"name": "a", "size": 2}, {"name": "b"}]}


def test_errors_hold_the_missing_or_conflicting_object() -> None:
    def error(code: int, reason: str, message: str = "") -> api.ApiError:
        return api.error_from_status(api.Status(code=code, reason=reason, message=message))

    assert isinstance(error(406, "NotAcceptable"), api.NotAcceptable)
    assert isinstance(error(500, "ServerTimeout"), api.ServerTimeout)
    refused = error(
        403,
        "Forbidden",
        'pods is forbidden: User "u" cannot list resource "pods" in API group "" in the namespace "n"',
    )
    assert isinstance(refused, api.Forbidden)
    assert refused.rule == api.MissingRule("list", resource="pods", namespace="n")
    cause = api.StatusCause(reason="FieldManagerConflict", message='conflict with "m"', field=".data.a")
    taken = api.Conflict(api.Status(code=409, details=api.StatusDetails(causes=[cause])))
    assert list(taken.fields) == [api.FieldConflict(".data.a", "m", 'conflict with "m"')]
