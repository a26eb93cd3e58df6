"""The status of ValidatingAdmissionPolicies: warnings about expressions that do not fit the matched kinds."""

import json
from typing import Any

from kubewright.api import GroupVersionKind, to_wire
from kubewright.api.builtin import admissionregistration_v1 as admission_v1
from kubewright.client import Client, requests
from kubewright.controller import Change, Context, Controller, Options
from kubewright.devserver.policy_types import MAX_KINDS, matched_resources, schema_of, type_warnings

NAME = "validatingadmissionpolicy-status"


class PolicyTypes:
    """Check the types of a policy whenever its spec changes."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def reconcile(self, policy: admission_v1.ValidatingAdmissionPolicy, ctx: Context) -> None:
        """Write the warnings about a policy to its status."""
        generation = policy.metadata.generation
        if generation <= policy.status.observed_generation:
            return
        wire = to_wire(policy)
        kinds = await self._kinds(wire)
        params = policy.spec.param_kind
        schema = None
        if params is not None:
            schema = await self._schema(GroupVersionKind.parse(params.api_version, params.kind))
        checked = admission_v1.TypeChecking(
            expression_warnings=[
                admission_v1.ExpressionWarning(field_ref=item["fieldRef"], warning=item["warning"])
                for item in type_warnings(wire, kinds, schema)
            ]
        )
        status = admission_v1.ValidatingAdmissionPolicyStatus(
            observed_generation=generation, type_checking=checked
        )
        await ctx.patch_status(policy, status)

    async def _kinds(self, policy: dict[str, Any]) -> list[tuple[GroupVersionKind, dict[str, Any]]]:
        wanted = matched_resources(policy)
        if not wanted:
            return []
        served = {
            (item.kind.group, item.kind.version, item.kind.plural): item.kind.gvk
            for item in await self._client.api_resources()
        }
        chosen = sorted({served[key] for key in wanted if key in served})[:MAX_KINDS]
        found: list[tuple[GroupVersionKind, dict[str, Any]]] = []
        for gvk in chosen:
            schema = await self._schema(gvk)
            if schema is not None:
                found.append((gvk, schema))
        return found

    async def _schema(self, gvk: GroupVersionKind) -> dict[str, Any] | None:
        version = f"apis/{gvk.group}/{gvk.version}" if gvk.group else f"api/{gvk.version}"
        response = await self._client.raw(requests.get_path(f"/openapi/v3/{version}"))
        return schema_of(gvk, json.loads(response.body)) if response.status == 200 else None


def _is_new(change: Change[admission_v1.ValidatingAdmissionPolicy]) -> bool:
    new = change.new
    return new is not None and new.metadata.generation > new.status.observed_generation


def controller(client: Client) -> Controller[admission_v1.ValidatingAdmissionPolicy]:
    """Declare the controller of the status of policies."""
    return Controller(
        admission_v1.ValidatingAdmissionPolicy,
        PolicyTypes(client),
        name=NAME,
        when=_is_new,
        options=Options(reporter=NAME, field_manager=NAME),
    )
