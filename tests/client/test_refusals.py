"""What a server refuses, and leaves the client usable, on a real API server or the embedded one (--server)."""

import logging

import pytest

from kubewright.api import Meta
from kubewright.api.builtin import core_v1
from kubewright.client import (
    AlreadyExists,
    BadRequest,
    Client,
    Invalid,
    MethodNotAllowed,
    RequestTooLarge,
)

from .objects import config_map, deployment

pytestmark = pytest.mark.asyncio(loop_scope="session")


async def test_creating_twice_is_already_exists(client: Client, namespace: str) -> None:
    await client.create(config_map(namespace))
    with pytest.raises(AlreadyExists):
        await client.create(config_map(namespace))


async def test_an_unknown_field_is_warned_of_or_refused(
    client: Client, namespace: str, caplog: pytest.LogCaptureFixture
) -> None:
    strange = deployment(namespace)
    strange["spec"]["bogus"] = 1
    with pytest.raises(BadRequest, match=r'unknown field "spec\.bogus"'):
        await client.create(strange, field_validation="Strict")
    with caplog.at_level(logging.WARNING, logger="kubewright.client"):
        await client.create(strange, field_validation="Warn")
    assert 'unknown field "spec.bogus"' in caplog.text


async def test_an_invalid_object_error_lists_its_fields(client: Client, namespace: str) -> None:
    with pytest.raises(Invalid) as caught:
        await client.create(core_v1.ConfigMap(Meta("Not A Name", namespace=namespace)))
    assert [cause.field for cause in caught.value.status.details.causes] == ["metadata.name"]


async def test_a_verb_that_a_kind_lacks_is_not_allowed(client: Client) -> None:
    with pytest.raises(MethodNotAllowed):
        await client.delete_collection(core_v1.Namespace)


async def test_an_object_of_five_megabytes_is_too_large(client: Client, namespace: str) -> None:
    with pytest.raises(RequestTooLarge, match="3 MiB"):
        await client.create(config_map(namespace, x="y" * 5_000_000))
    await client.create(config_map(namespace))
