"""A Secret's data is masked in what servers say about it."""

import base64

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from kubewright.client.redaction import HIDDEN, hide_secret_data


def test_values_are_masked_in_plain_and_in_base64() -> None:
    body = msgspec.json.encode({"stringData": {"password": "hunter22"}})
    encoded = base64.b64encode(b"hunter22").decode()
    message = f'data[x]: Invalid value: "hunter22" or {encoded}: bad'
    assert hide_secret_data(message, body) == f'data[x]: Invalid value: "{HIDDEN}" or {HIDDEN}: bad'


def test_base64_data_is_masked_decoded_too() -> None:
    body = msgspec.json.encode({"data": {"password": base64.b64encode(b"hunter22").decode()}})
    assert "hunter22" not in hide_secret_data("got hunter22", body)


def test_a_value_of_the_wrong_type_is_masked() -> None:
    body = msgspec.json.encode({"data": {"pin": 4711}})
    message = ".data.pin: expected string, got &value.valueUnstructured{Value:4711}"
    assert "4711" not in hide_secret_data(message, body)


def test_values_in_patch_operations_are_masked() -> None:
    body = msgspec.json.encode([{"op": "add", "path": "/data/a", "value": {"k": ["s3cr3t"]}}])
    assert "s3cr3t" not in hide_secret_data("bad s3cr3t", body)


def test_a_short_value_does_not_garble_words() -> None:
    body = msgspec.json.encode({"stringData": {"a": "is"}})
    assert hide_secret_data('this "is" wrong', body) == f'this "{HIDDEN}" wrong'


def test_a_body_that_is_not_json_has_nothing_to_mask() -> None:
    assert hide_secret_data("as it was", b"{") == "as it was"


@given(st.text(min_size=4, alphabet=st.characters(categories=["L", "N"])), st.text())
def test_no_value_survives_in_any_message(value: str, around: str) -> None:
    body = msgspec.json.encode({"stringData": {"key": value}})
    assert value not in hide_secret_data(f"{around}{value}{around}", body).replace(HIDDEN, "\0")
