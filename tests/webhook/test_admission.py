import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kubewright as kw
from kubewright.api import Kind, to_wire
from kubewright.api.builtin import core_v1, policy_v1
from kubewright.webhook import Admission, BadReview, UserCodeFailed, review_admission

from .kinds import Part, Widget, WidgetSpec, WidgetV1Alpha1, colored, sensible
from .reviews import JsonObject, admission_review, body, operations, patched


def ask(webhook: Admission[Any], review: JsonObject) -> JsonObject:
    answer = json.loads(review_admission(webhook, body(review)))
    assert (answer["kind"], answer["apiVersion"]) == ("AdmissionReview", "admission.k8s.io/v1")
    assert answer["response"]["uid"] == review["request"]["uid"]
    return answer["response"]


def widget(size: int = 1, color: str = "red") -> Widget:
    return Widget(kw.Meta("w", namespace="ns"), spec=WidgetSpec(size=size, color=color))


def test_an_object_without_problems_is_allowed() -> None:
    assert ask(sensible, admission_review(widget())) == {"uid": "u-1", "allowed": True}


def test_several_field_errors_are_one_invalid_response() -> None:
    response = ask(sensible, admission_review(widget(1, "pink"), widget(2), operation="UPDATE"))
    shrink = "Invalid value: 1: may not shrink"
    color = 'Unsupported value: "pink": supported values: "blue", "red"'
    assert response["allowed"] is False
    assert response["status"] == {
        "status": "Failure",
        "message": f'Widget.widgets.example.com "w" is invalid: [spec.size: {shrink}, spec.color: {color}]',
        "reason": "Invalid",
        "details": {
            "name": "w",
            "group": "widgets.example.com",
            "kind": "Widget",
            "causes": [
                {"reason": "FieldValueInvalid", "message": shrink, "field": "spec.size"},
                {"reason": "FieldValueNotSupported", "message": color, "field": "spec.color"},
            ],
        },
        "code": 422,
    }


def going(**changes: Any) -> JsonObject:
    """Return a widget that breaks a rule, is deleted, and waits for a finalizer."""
    wire = to_wire(widget(1, "pink"))
    wire["metadata"] |= {"deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["example.com/f"]}
    return wire | changes


def released(wire: JsonObject) -> JsonObject:
    return wire | {"metadata": wire["metadata"] | {"finalizers": []}}


@kw.admission.validating_webhook(Widget, terminating=True)
def watchful(found: Widget, old: Widget | None) -> Any:
    if old and old.metadata.finalizers and not found.metadata.finalizers:
        yield kw.admission.denied("not yet")


@pytest.mark.parametrize("spec", [{"color": "pink"}, {"color": "", "size": 1}, {"size": "no number"}])
@pytest.mark.parametrize("webhook", [sensible, colored])
def test_terminating_objects_may_lose_their_finalizers_even_if_they_are_invalid(
    webhook: Admission[Any], spec: JsonObject
) -> None:
    wire = going(spec=spec)
    answer = ask(webhook, admission_review(released(wire), wire, operation="UPDATE"))
    assert answer == {"uid": "u-1", "allowed": True}


def test_a_spec_change_of_a_terminating_object_is_validated() -> None:
    changed = going(spec={"color": "pink", "size": 2})
    assert not ask(sensible, admission_review(released(changed), going(), operation="UPDATE"))["allowed"]


def test_objects_that_are_not_terminating_are_validated() -> None:
    received = going()
    old = to_wire(widget(1, "pink"))
    assert not ask(sensible, admission_review(released(received), old, operation="UPDATE"))["allowed"]
    # A field of that name is not the metadata's.
    old["status"] = {"deletionTimestamp": "never"}
    assert not ask(sensible, admission_review(old, old, operation="UPDATE"))["allowed"]


@pytest.mark.parametrize(
    "old", [{"metadata": ["deletionTimestamp"]}, {"metadata": None}, ["deletionTimestamp"]]
)
@pytest.mark.parametrize("new", [None, [], {"metadata": None}])
def test_requests_without_an_object_are_denied(old: Any, new: Any) -> None:
    review = admission_review(going(), going(), operation="UPDATE")
    review["request"] |= {"object": new, "oldObject": old}
    assert not ask(sensible, review)["allowed"]


def test_removal_of_finalizers_may_be_validated() -> None:
    answer = ask(watchful, admission_review(released(going()), going(), operation="UPDATE"))
    assert answer["status"]["message"] == "not yet"


def test_warnings_and_audit_annotations_go_with_allowed_and_denied() -> None:
    allowed = ask(sensible, admission_review(widget(501), dryRun=True))
    assert (allowed["allowed"], allowed["warnings"]) == (True, ["unusually big"])
    assert allowed["auditAnnotations"] == {"dry": "yes"}
    refused = ask(sensible, admission_review(widget(501, "pink")))
    assert (refused["allowed"], refused["warnings"]) == (False, ["unusually big"])


def test_a_denial_without_a_field_is_forbidden_and_stands_before_field_errors() -> None:
    @kw.admission.validating_webhook(Widget)
    def closed(widget: Widget) -> list[kw.admission.Problem]:
        errors: list[kw.admission.Problem] = (
            [kw.admission.required("spec.color")] if not widget.spec.color else []
        )
        return [*errors, kw.admission.denied("closed on Sundays")]

    status = ask(closed, admission_review(widget()))["status"]
    assert (status["code"], status["reason"], status["message"]) == (403, "Forbidden", "closed on Sundays")
    status = ask(closed, admission_review(widget(color="")))["status"]
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert status["message"].startswith('closed on Sundays; Widget.widgets.example.com "w" is invalid')


def test_the_function_gets_the_admission_request() -> None:
    seen: list[kw.admission.AdmissionRequest] = []

    @kw.admission.validating_webhook(Widget, on=["delete"])
    def farewell(widget: Widget, old: Widget | None, request: kw.admission.AdmissionRequest) -> None:
        seen.append(request)
        assert widget == old

    ask(farewell, admission_review(None, widget(), operation="DELETE", dryRun=True))
    (request,) = seen
    assert (request.operation, request.name, request.namespace) == ("delete", "w", "ns")
    assert (request.user.name, list(request.user.groups)) == ("alice", ["dev", "system:authenticated"])
    assert (request.dry_run, request.kind.kind, request.resource.resource) == (True, "Widget", "widgets")
    assert request.request_resource == request.resource
    assert request.options["kind"] == "CreateOptions"


def test_defaulting_gives_a_minimal_patch() -> None:
    review = admission_review(widget(color=""))
    assert operations(ask(colored, review)) == [{"op": "add", "path": "/spec/color", "value": "blue"}]


def test_an_unchanged_object_gets_no_patch() -> None:
    assert "patch" not in ask(colored, admission_review(widget()))


def test_unknown_fields_inside_lists_survive_a_patch() -> None:
    @kw.admission.mutating_webhook(Widget)
    def counted(widget: Widget) -> None:
        for part in widget.spec.parts:
            part.count += 1
        widget.spec.parts.insert(0, Part(name="new"))
        widget.metadata.labels["seen"] = "yes"

    raw = to_wire(widget())
    raw["spec"]["parts"] = [{"name": "a", "count": 1, "unknown": {"x": 1}}]
    raw["spec"]["future"] = [1, 2]
    raw["metadata"]["managedFields"] = [{"manager": "m", "fieldsV1": {"f:spec": {}}}]
    raw["metadata"]["selfLink"] = "/old"
    after = patched(raw, ask(counted, admission_review(raw)))
    assert after["spec"]["parts"][1] == {"name": "a", "count": 2, "unknown": {"x": 1}}
    assert after["spec"]["parts"][0]["name"] == "new"
    assert after["spec"]["future"] == [1, 2]
    assert after["metadata"]["managedFields"] == raw["metadata"]["managedFields"]
    assert after["metadata"]["selfLink"] == "/old"
    assert after["metadata"]["labels"] == {"seen": "yes"}


@given(st.dictionaries(st.text(max_size=5), st.integers() | st.text() | st.lists(st.integers()), max_size=4))
def test_no_unknown_field_is_ever_touched(unknown: JsonObject) -> None:
    raw = to_wire(widget(color=""))
    raw["spec"] = {**unknown, **raw["spec"]}
    raw["spec"].pop("color", None)
    after = patched(raw, ask(colored, admission_review(raw)))
    assert after == {**raw, "spec": {**raw["spec"], "color": "blue"}}


def test_a_mutating_function_may_refuse() -> None:
    @kw.admission.mutating_webhook(Widget)
    def strict(widget: Widget) -> list[kw.admission.Problem]:
        widget.spec.color = "x"
        return [kw.admission.forbidden("spec.color", "no")]

    response = ask(strict, admission_review(widget()))
    assert response["allowed"] is False
    assert "patch" not in response


def test_built_in_kinds_are_validated_as_their_classes() -> None:
    @kw.admission.validating_webhook(core_v1.Pod)
    def pinned(pod: core_v1.Pod) -> list[kw.admission.Problem]:
        return [
            kw.admission.forbidden(f"spec.containers[{index}].image", "latest")
            for index, container in enumerate(pod.spec.containers)
            if container.image.endswith(":latest")
        ]

    pod = core_v1.Pod(
        kw.Meta("p"), spec=core_v1.PodSpec(containers=[core_v1.Container(name="a", image="x:latest")])
    )
    status = ask(pinned, admission_review(pod))["status"]
    assert status["message"] == 'Pod "p" is invalid: spec.containers[0].image: Forbidden: latest'
    assert "group" not in status["details"]


def test_a_subresource_with_an_object_of_another_kind_is_validated() -> None:
    @kw.admission.validating_webhook(
        policy_v1.Eviction, of=core_v1.Pod, subresources=["eviction"], on=["create"]
    )
    def held(
        eviction: policy_v1.Eviction, old: Any, request: kw.admission.AdmissionRequest
    ) -> list[kw.admission.Problem]:
        return [
            kw.admission.denied(
                f"{request.resource.resource}/{request.subresource} {eviction.metadata.name} is held"
            )
        ]

    review = admission_review(policy_v1.Eviction(kw.Meta("p")), subResource="eviction")
    review["request"]["resource"] = {"group": "", "version": "v1", "resource": "pods"}
    assert ask(held, review)["status"]["message"] == "pods/eviction p is held"


def test_kinds_without_a_class_are_validated_and_patched_as_dictionaries() -> None:
    exec_options = Kind(group="", version="v1", kind="PodExecOptions", plural="pods")

    @kw.admission.validating_webhook(exec_options, of=core_v1.Pod, subresources=["exec"], on=["connect"])
    def no_shell(options: JsonObject) -> list[kw.admission.Problem]:
        return [kw.admission.denied("no shells")] if "sh" in options["command"] else []

    options = {"apiVersion": "v1", "kind": "PodExecOptions", "metadata": {}, "command": ["sh"]}
    assert ask(no_shell, admission_review(options, operation="CONNECT"))["allowed"] is False

    @kw.admission.mutating_webhook(exec_options, of=core_v1.Pod, subresources=["exec"], on=["connect"])
    def quiet(options: JsonObject) -> None:
        options["tty"] = False

    response = ask(quiet, admission_review(options, operation="CONNECT"))
    assert operations(response) == [{"op": "add", "path": "/tty", "value": False}]


def test_an_exception_of_the_function_is_distinguished_from_a_denial() -> None:
    @kw.admission.validating_webhook(Widget)
    def broken(widget: Widget) -> None:
        raise KeyError("oops")

    with pytest.raises(UserCodeFailed) as caught:
        review_admission(broken, body(admission_review(widget())))
    assert isinstance(caught.value.__cause__, KeyError)
    assert (caught.value.uid, caught.value.request.name) == ("u-1", "w")


@pytest.mark.parametrize(
    ("returned", "way_out"),
    [
        ("too big", "kw.admission.invalid"),
        (kw.admission.denied("no"), "return a list"),
        (True, "return a list"),
    ],
)
def test_a_function_that_returns_an_unknown_type_fails_with_a_fix(returned: Any, way_out: str) -> None:
    @kw.admission.validating_webhook(Widget)
    def odd(widget: Widget) -> Any:
        return returned

    with pytest.raises(UserCodeFailed) as caught:
        review_admission(odd, body(admission_review(widget())))
    assert way_out in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "empty"),
        (b"{", "not a Kubernetes object"),
        (b"[]", "not a Kubernetes object"),
        (b"\xff\xfe", "not a Kubernetes object"),
        (b"[" * 100_000, "not a Kubernetes object"),
        (b'{"kind":"Pod","apiVersion":"v1"}', "expected AdmissionReview, got Pod"),
        (b'{"kind":"AdmissionReview"}', "without apiVersion"),
        (body(admission_review(widget()) | {"apiVersion": "admission.k8s.io/v2"}), "use admission.k8s.io/v1"),
        (b'{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1"}', "request"),
        (body(admission_review(widget(), uid="")), "uid"),
        (body(admission_review(widget(), operation="EAT")), "operation"),
    ],
)
def test_a_body_that_is_not_a_review_is_refused(data: bytes, said: str) -> None:
    with pytest.raises(BadReview, match=said):
        review_admission(sensible, data)


def test_v1beta1_reviews_are_answered_in_v1beta1() -> None:
    old = admission_review(widget()) | {"apiVersion": "admission.k8s.io/v1beta1"}
    answer = json.loads(review_admission(sensible, body(old)))
    assert answer["apiVersion"] == "admission.k8s.io/v1beta1"
    assert answer["response"]["allowed"] is True


def test_an_object_of_the_wrong_kind_is_a_bad_request() -> None:
    response = ask(sensible, admission_review(WidgetV1Alpha1(kw.Meta("w"))))
    assert (response["allowed"], response["status"]["code"]) == (False, 400)
    assert (
        "expected Widget of widgets.example.com/v1, got Widget of widgets.example.com/v1alpha1"
        in (response["status"]["message"])
    )


@pytest.mark.parametrize(
    "change",
    [
        {"object": None},
        {"object": {"apiVersion": "v1", "kind": "Pod"}},
        {"object": {"apiVersion": "widgets.example.com/v1", "kind": "Widget", "spec": {"size": "x"}}},
        {"object": 3},
        {"operation": "UPDATE"},
        {"operation": "DELETE"},
    ],
)
def test_an_object_that_is_missing_or_does_not_fit_is_a_bad_request(change: JsonObject) -> None:
    response = ask(sensible, admission_review(widget(), **change))
    assert (response["allowed"], response["status"]["code"]) == (False, 400)


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    )
)
def test_no_object_crashes_the_webhook(value: Any) -> None:
    review = admission_review(widget())
    review["request"]["object"] = value
    assert ask(colored, review)["allowed"] is False
