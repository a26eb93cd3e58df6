"""Continue tokens survive the round trip and refuse everything else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver import StatusError
from kubewright.devserver.storage import decode_token, encode_token


@given(st.integers(1, 2**62), st.text(st.characters(codec="ascii", exclude_characters="/."), min_size=1))
def test_a_continue_token_continues_after_its_key(revision: int, key: str) -> None:
    assert decode_token(encode_token(revision, key)) == (revision, f"{key}\0")


def test_a_token_has_the_real_servers_form() -> None:
    assert encode_token(213, "l1") == "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MjEzLCJzdGFydCI6Ii9sMVx1MDAwMCJ9"


@given(st.text(max_size=60))
def test_invalid_continue_tokens_are_a_bad_request(text: str) -> None:
    with pytest.raises(StatusError) as refused:
        decode_token(text)
    assert refused.value.code == 400


@pytest.mark.parametrize("start", ["../../secrets", "a/../b"])
def test_a_continue_token_is_bound_to_its_list(start: str) -> None:
    with pytest.raises(StatusError):
        decode_token(encode_token(5, start))
