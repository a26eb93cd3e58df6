import pytest
from hypothesis import given
from hypothesis import strategies as st

from kubewright.backoff import Backoff


def test_starts_at_the_base_and_doubles() -> None:
    assert [Backoff().delay(attempt) for attempt in range(4)] == [0.005, 0.01, 0.02, 0.04]


def test_stays_at_the_maximum_for_ever() -> None:
    assert Backoff().delay(18) == 1000.0
    assert Backoff().delay(10**9) == 1000.0


def test_a_constant_backoff_never_grows() -> None:
    assert Backoff(base=3, factor=1).delay(10**9) == 3


@given(
    attempt=st.integers(0, 10**6),
    base=st.floats(0, 100),
    maximum=st.floats(0, 10**4),
    factor=st.floats(1, 10),
    jitter=st.floats(0, 1),
)
def test_a_delay_is_between_the_plain_value_and_its_jitter(
    attempt: int, base: float, maximum: float, factor: float, jitter: float
) -> None:
    plain = Backoff(base, maximum, factor).delay(attempt)
    assert 0 <= plain <= maximum
    assert plain <= Backoff(base, maximum, factor, jitter).delay(attempt) <= plain * (1 + jitter) * (1 + 1e-9)


@given(attempt=st.integers(0, 100))
def test_delays_never_shrink(attempt: int) -> None:
    backoff = Backoff(base=0.8, maximum=30)
    assert backoff.delay(attempt) <= backoff.delay(attempt + 1)


@pytest.mark.parametrize("wrong", [{"base": -1}, {"maximum": -1}, {"factor": 0.5}, {"jitter": -0.1}])
def test_refuses_invalid_backoff_parameters(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="a backoff needs"):
        Backoff(**wrong)
