"""Credentials renew themselves: files each minute, refused ones at once."""

import asyncio
import base64
import logging
from pathlib import Path

import pytest

from kubewright.client import ClusterConfig, CredentialError
from kubewright.client.credentials import FILE_LIFETIME, Authenticator, Credential, StaticSource
from kubewright.testing.virtual_time import virtual_time


def authenticator(**options: str | bytes) -> Authenticator:
    return Authenticator(StaticSource(ClusterConfig("https://x", **options)))  # pyright: ignore[reportArgumentType]


async def test_a_token_is_a_bearer() -> None:
    assert (await authenticator(token="t").renew()).authorization == "Bearer t"


async def test_a_name_and_password_are_basic() -> None:
    credential = await authenticator(username="u", password="p").renew()
    assert credential.authorization == f"Basic {base64.b64encode(b'u:p').decode()}"


async def test_a_token_and_a_certificate_are_sent_together() -> None:
    credential = await authenticator(token="t", client_cert_data=b"c", client_key_data=b"k").renew()
    assert (credential.authorization, credential.certificate, credential.key) == ("Bearer t", b"c", b"k")


@pytest.mark.parametrize("token", ["two\nlines", "a b", "ü"])
async def test_a_token_with_a_line_break_is_refused_without_being_shown(token: str) -> None:
    with pytest.raises(CredentialError) as caught:
        await authenticator(token=token).renew()
    assert token not in str(caught.value)


async def test_a_token_file_is_read_again_each_minute(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one\n")
    source = StaticSource(ClusterConfig("https://x", token_file=str(file)))
    first = await source.obtain(refused=False)
    assert first.authorization == "Bearer one"
    assert 0 < first.valid_until - asyncio.get_running_loop().time() <= FILE_LIFETIME == 60
    file.write_text("two\n")
    assert (await source.obtain(refused=False)).authorization == "Bearer two"


@virtual_time
async def test_an_expired_credential_is_requested_again() -> None:
    class Numbered:
        asked = 0

        async def obtain(self, refused: bool) -> Credential:
            self.asked += 1
            return Credential(f"Bearer {self.asked}", valid_until=asyncio.get_running_loop().time() + 60)

    subject = Authenticator(Numbered())
    assert (await subject.renew()).authorization == "Bearer 1"
    await asyncio.sleep(59)
    assert (await subject.renew()).authorization == "Bearer 1"
    await asyncio.sleep(2)
    assert subject.current() is None
    assert (await subject.renew()).authorization == "Bearer 2"


async def test_a_token_file_that_vanishes_leaves_the_old_token(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    source = StaticSource(ClusterConfig("https://x", token_file=str(file)))
    await source.obtain(refused=False)
    file.unlink()
    with caplog.at_level(logging.WARNING):
        assert (await source.obtain(refused=False)).authorization == "Bearer one"
    assert "going on with what it held" in caplog.text


async def test_a_missing_token_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(CredentialError, match="cannot be read: No such file"):
        await authenticator(token_file=str(tmp_path / "none")).renew()


async def test_an_empty_token_file_falls_back_to_the_token(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("")
    subject = authenticator(token_file=str(tmp_path / "token"), token="spare")
    assert (await subject.renew()).authorization == "Bearer spare"


async def test_certificate_files_are_read_again_too(tmp_path: Path) -> None:
    certificate, key = tmp_path / "crt", tmp_path / "key"
    certificate.write_text("c1")
    key.write_text("k1")
    source = StaticSource(
        ClusterConfig("https://x", client_cert_file=str(certificate), client_key_file=str(key))
    )
    assert (await source.obtain(refused=False)).certificate == b"c1"
    certificate.write_text("c2")
    assert (await source.obtain(refused=False)).certificate == b"c2"


async def test_a_refused_token_is_read_again_at_once(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text("one")
    subject = authenticator(token_file=str(file))
    refused = await subject.renew()
    file.write_text("two")
    assert await subject.replace(refused)
    present = subject.current()
    assert present is not None
    assert present.authorization == "Bearer two"


async def test_a_refused_token_without_another_is_final() -> None:
    subject = authenticator(token="t")
    assert not await subject.replace(await subject.renew())


async def test_concurrent_callers_share_one_request() -> None:
    class Slow:
        asked = 0

        async def obtain(self, refused: bool) -> Credential:
            self.asked += 1
            await asyncio.sleep(0)
            return Credential(f"Bearer {self.asked}")

    source = Slow()
    subject = Authenticator(source)
    assert (
        len(
            {
                (await task).authorization
                for task in [asyncio.ensure_future(subject.renew()) for _ in range(20)]
            }
        )
        == 1
    )
    refused = await subject.renew()
    assert all(await asyncio.gather(*(subject.replace(refused) for _ in range(20))))
    assert source.asked == 2


def test_a_credential_is_not_in_its_repr() -> None:
    assert "sesame" not in repr(Credential("Bearer sesame", b"sesame", b"sesame"))
