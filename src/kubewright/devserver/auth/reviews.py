"""Review kinds: TokenReview, SelfSubjectReview, SubjectAccessReview and its variants, SelfSubjectRulesReview; and tokens."""

from collections.abc import Mapping
from typing import Any

from kubewright.api import problems
from kubewright.devserver.auth.authentication import TokenAuthenticator
from kubewright.devserver.auth.rbac import RoleAuthorizer
from kubewright.devserver.auth.tokens import MIN_SECONDS, InvalidToken, TokenIssuer
from kubewright.devserver.objects import JsonObject
from kubewright.devserver.objects.clock import format_time
from kubewright.devserver.objects.metadata import drop_repeated_owners
from kubewright.devserver.objects.status import StatusError
from kubewright.devserver.request.identity import AuthorizationAttributes, Decision, UserInfo
from kubewright.devserver.strategy import EndpointRequest, EndpointResult, Strategy, SubresourceEndpoint

AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"
DEFAULT_SECONDS = 3600
MAX_SECONDS = 1 << 32
_BOUND = {"Pod": ("pods", "pod"), "Secret": ("secrets", "secret"), "Node": ("nodes", "node")}


class Reviews:
    """Respond to review kinds, which are created but never stored."""

    def __init__(self, authorizer: RoleAuthorizer, tokens: TokenAuthenticator, issuer: TokenIssuer) -> None:
        self._authorizer = authorizer
        self._tokens = tokens
        self._issuer = issuer

    def strategies(self) -> Mapping[tuple[str, str], Strategy]:
        """Return the strategies of the review kinds, by group and kind."""
        endpoints: dict[tuple[str, str], SubresourceEndpoint] = {
            (AUTHENTICATION, "TokenReview"): self.token,
            (AUTHENTICATION, "SelfSubjectReview"): self.myself,
            (AUTHORIZATION, "SubjectAccessReview"): self.access,
            (AUTHORIZATION, "LocalSubjectAccessReview"): self.access,
            (AUTHORIZATION, "SelfSubjectAccessReview"): self.my_access,
            (AUTHORIZATION, "SelfSubjectRulesReview"): self.my_rules,
        }
        return {kind: Strategy(endpoints={"": endpoint}) for kind, endpoint in endpoints.items()}

    async def token(self, call: EndpointRequest) -> EndpointResult:
        """Respond to a TokenReview."""
        body = _body(call)
        spec: JsonObject = body.get("spec") or {}
        if not spec.get("token"):
            raise StatusError.bad_request("token is required for TokenReview in authentication")
        await call.run_validating_admission(body)
        audiences = spec.get("audiences") or self._issuer.audiences
        try:
            user, matching = self._tokens.check(spec.get("token", ""), audiences)
        except InvalidToken as error:
            body["status"] = {"user": {}, "error": str(error)}
        else:
            body["status"] = {"authenticated": True, "user": user.to_wire(), "audiences": matching}
        return EndpointResult(body, 201)

    async def myself(self, call: EndpointRequest) -> EndpointResult:
        """Respond to a SelfSubjectReview."""
        body = _body(call)
        await call.run_validating_admission(body)
        body["metadata"] = {"creationTimestamp": call.clock.stamp()}
        body["status"] = {"userInfo": call.user.to_wire()}
        return EndpointResult(body, 201)

    async def access(self, call: EndpointRequest) -> EndpointResult:
        """Respond to a SubjectAccessReview or LocalSubjectAccessReview."""
        body = _body(call)
        spec: JsonObject = body.get("spec") or {}
        errors: list[problems.FieldError] = []
        if not spec.get("user") and not spec.get("groups"):
            detail = "at least one of user or group must be specified"
            errors.append(problems.invalid("spec.user", spec.get("user", ""), detail))
        given: dict[str, list[str]] = spec.get("extra") or {}
        extra = {key: tuple(values) for key, values in given.items()}
        user = UserInfo(spec.get("user", ""), spec.get("uid", ""), tuple(spec.get("groups") or ()), extra)
        return await self._decide(call, body, user, errors)

    async def my_access(self, call: EndpointRequest) -> EndpointResult:
        """Respond to a SelfSubjectAccessReview."""
        return await self._decide(call, _body(call), call.user, [])

    async def my_rules(self, call: EndpointRequest) -> EndpointResult:
        """Respond to a SelfSubjectRulesReview."""
        body = _body(call)
        spec: JsonObject = body.get("spec") or {}
        namespace: str = spec.get("namespace", "")
        if not namespace:
            raise StatusError.bad_request("no namespace on request")
        await call.run_validating_admission(body)
        rules = self._authorizer.rules(call.user, namespace)
        status: JsonObject = {
            "resourceRules": [_resource_rule(rule) for rule in rules if rule.get("resources")],
            "nonResourceRules": [
                {"verbs": list(rule["verbs"]), "nonResourceURLs": list(rule["nonResourceURLs"])}
                for rule in rules
                if rule.get("nonResourceURLs")
            ],
            "incomplete": False,
        }
        if error := self._authorizer.evaluation_error(call.user, namespace):
            status["evaluationError"] = error
        body["status"] = status
        body["spec"] = {}
        return EndpointResult(body, 201)

    async def issue_token(self, call: EndpointRequest) -> EndpointResult:
        """Issue a token for a ServiceAccount."""
        body = _body(call)
        spec: dict[str, Any] = body.setdefault("spec", {})
        account = call.api.get("", "serviceaccounts", call.namespace, call.name)
        seconds = spec.get("expirationSeconds") or DEFAULT_SECONDS
        metadata: JsonObject = body.get("metadata") or {}
        given: str = metadata.get("name") or call.name
        if given != call.name:
            text = "must match the service account name if specified"
            error = problems.invalid("metadata.name", given, text)
            raise StatusError.invalid(call.gvk.group, call.gvk.kind, call.name, [error])
        audiences = spec.get("audiences") or list(self._issuer.audiences)
        body["metadata"] = {
            **metadata,
            "name": call.name,
            "namespace": call.namespace,
            "uid": account["metadata"]["uid"],
            "creationTimestamp": call.clock.stamp(),
        }
        body["spec"] = {**spec, "audiences": audiences, "expirationSeconds": seconds}
        body["spec"].setdefault("boundObjectRef", None)
        if not MIN_SECONDS <= seconds <= MAX_SECONDS:
            bound = "less than 10 minutes" if seconds < MIN_SECONDS else "larger than 2^32 seconds"
            error = problems.invalid("spec.expirationSeconds", seconds, f"may not specify a duration {bound}")
            raise StatusError.invalid(call.gvk.group, call.gvk.kind, "", [error])
        await call.run_validating_admission(body)
        token, ends = self._issuer.issue(
            namespace=call.namespace,
            name=call.name,
            uid=account["metadata"]["uid"],
            audiences=audiences,
            seconds=seconds,
            bound=_bound(call, spec.get("boundObjectRef")),
        )
        body["status"] = {"token": token, "expirationTimestamp": format_time(ends)}
        return EndpointResult(body, 201)

    async def _decide(
        self, call: EndpointRequest, body: JsonObject, user: UserInfo, errors: list[problems.FieldError]
    ) -> EndpointResult:
        spec: JsonObject = body.get("spec") or {}
        resource: JsonObject | None = spec.get("resourceAttributes")
        path: JsonObject | None = spec.get("nonResourceAttributes")
        errors = [*_attribute_errors(resource, path), *errors, *_metadata_errors(call, body)]
        local = call.gvk.kind == "LocalSubjectAccessReview"
        if local and resource and resource.get("namespace", "") != call.namespace:
            given, text = resource.get("namespace", ""), "must match metadata.namespace"
            errors.append(problems.invalid("spec.resourceAttributes.namespace", given, text))
        errors += _selector_errors(resource or {})
        if errors:
            raise StatusError.invalid(call.gvk.group, "", call.name, errors)
        await call.run_validating_admission(body)
        decision = self._authorizer.decide(user, _attributes(resource, path or {}))
        body["status"] = _status(decision)
        return EndpointResult(body, 201)


def _attribute_errors(resource: JsonObject | None, path: JsonObject | None) -> list[problems.FieldError]:
    if (resource is None) != (path is None):
        return []
    shown = None if path is None else {"Path": path.get("path", ""), "Verb": path.get("verb", "")}
    detail = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
    return [problems.invalid("spec", shown, detail)]


def _metadata_errors(call: EndpointRequest, body: JsonObject) -> list[problems.FieldError]:
    """Return errors for metadata: a review is never stored, so it has no name."""
    local = call.gvk.kind == "LocalSubjectAccessReview"
    unset = ("managedFields", "creationTimestamp", *(("namespace",) if local else ()))
    metadata: JsonObject = body.get("metadata") or {}
    if not any(value for name, value in metadata.items() if name not in unset):
        return []
    shown = {name: value for name, value in metadata.items() if name != "managedFields" and value}
    return [
        problems.invalid(
            "metadata", shown, "must be empty except for namespace" if local else "must be empty"
        )
    ]


def _selector_errors(resource: JsonObject) -> list[problems.FieldError]:
    """Return errors for selectors: each is either raw text or requirements."""
    errors: list[problems.FieldError] = []
    for name in ("fieldSelector", "labelSelector"):
        selector: JsonObject | None = resource.get(name)
        if selector is None:
            continue
        path = f"spec.resourceAttributes.{name}"
        raw = selector.get("rawSelector") or ""
        if raw and selector.get("requirements"):
            text = "may not specified at the same time as requirements"
            errors.append(problems.invalid(f"{path}.rawSelector", raw, text))
        elif not raw and not selector.get("requirements"):
            text = f"when {path} is specified, requirements or rawSelector is required"
            errors.append(problems.required(f"{path}.requirements", text))
    return errors


def _body(call: EndpointRequest) -> JsonObject:
    if call.body is None:
        raise StatusError.bad_request("the request has no body")
    drop_repeated_owners(call.body, call.context.warnings)
    return call.body


def _attributes(resource: Mapping[str, Any] | None, path: Mapping[str, Any]) -> AuthorizationAttributes:
    if resource is None:
        return AuthorizationAttributes(path.get("verb", ""), path=path.get("path", ""))
    names = ("verb", "group", "version", "resource", "subresource", "namespace", "name")
    return AuthorizationAttributes(*(resource.get(name) or "" for name in names))


def _status(decision: Decision) -> JsonObject:
    status: JsonObject = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return status


def _resource_rule(rule: Mapping[str, Any]) -> JsonObject:
    names = ("verbs", "apiGroups", "resources", "resourceNames")
    return {name: list(rule[name]) for name in names if rule.get(name)}


def _bound(call: EndpointRequest, reference: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if not reference:
        return None
    if reference.get("kind") not in _BOUND:
        group, _, version = str(reference.get("apiVersion") or "").rpartition("/")
        gvk = f"{group}/{version}, Kind={reference.get('kind', '')}"
        raise StatusError.bad_request(f"cannot bind token to object of type {gvk}")
    resource, claim = _BOUND[reference["kind"]]
    namespace = "" if claim == "node" else call.namespace
    target = call.api.get("", resource, namespace, reference.get("name", ""))
    uid = target["metadata"]["uid"]
    if claim == "pod" and target["spec"].get("serviceAccountName", "") != call.name:
        account = problems.quoted(call.name)
        text = f"cannot bind token for serviceaccount {account} to pod running with different serviceaccount name."
        raise StatusError.bad_request(text)
    if reference.get("uid") not in (None, "", uid):
        raise StatusError.conflict(
            "",
            resource,
            reference["name"],
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. The object might have been deleted and then recreated",
        )
    bound: dict[str, Any] = {claim: {"name": reference["name"], "uid": uid}}
    if claim == "pod" and (node := target["spec"].get("nodeName")):
        found = call.api.find("", "nodes", "", node)
        bound["node"] = {"name": node, **({"uid": found["metadata"]["uid"]} if found else {})}
    return bound
