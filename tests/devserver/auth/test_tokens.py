import pytest
from cryptography.hazmat.primitives.asymmetric import ec
from hypothesis import given
from hypothesis import strategies as st

from kubewright.devserver.auth.token_keys import SigningKey
from kubewright.devserver.auth.tokens import ISSUER, InvalidToken, TokenIssuer

NOW = 1_767_225_600.0
"""The time on the clock of every issuer here: the token below must not expire while other tests run."""


def new_key() -> SigningKey:
    return SigningKey(ec.generate_private_key(ec.SECP256R1()))


def issuer() -> TokenIssuer:
    return TokenIssuer(new_key(), lambda: NOW)


ISSUED_BY = issuer()
TOKEN, _ = ISSUED_BY.issue(namespace="ns", name="robot", uid="u1", audiences=[], seconds=600)


def test_a_token_claims_what_it_was_issued_for() -> None:
    claims = ISSUED_BY.claims(TOKEN)
    assert claims["sub"] == "system:serviceaccount:ns:robot"
    assert claims["aud"] == [ISSUER]
    assert claims["kubernetes.io"] == {"namespace": "ns", "serviceaccount": {"name": "robot", "uid": "u1"}}


def test_a_token_of_another_key_is_refused() -> None:
    with pytest.raises(InvalidToken):
        issuer().claims(TOKEN)


def test_a_token_is_refused_once_it_has_expired() -> None:
    now = NOW
    issuing = TokenIssuer(new_key(), lambda: now)
    token, expires = issuing.issue(namespace="ns", name="robot", uid="u1", audiences=[], seconds=600)
    assert expires == NOW + 600
    now = NOW + 599
    assert issuing.claims(token)["exp"] == expires
    now = NOW + 601
    with pytest.raises(InvalidToken, match="expired"):
        issuing.claims(token)


@given(st.integers(0, len(TOKEN) - 1), st.characters(min_codepoint=33, max_codepoint=126))
def test_a_token_with_any_other_character_is_refused(place: int, character: str) -> None:
    changed = TOKEN[:place] + character + TOKEN[place + 1 :]
    # The last character of the signature holds spare bits: other letters may mean the same bytes.
    if changed != TOKEN and place != len(TOKEN) - 1:
        with pytest.raises(InvalidToken):
            ISSUED_BY.claims(changed)


@given(st.text())
def test_any_text_is_refused_as_a_token(text: str) -> None:
    with pytest.raises(InvalidToken):
        ISSUED_BY.claims(text)
