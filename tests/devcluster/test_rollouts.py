from hypothesis import given
from hypothesis import strategies as st

from kubewright.devcluster.rollouts import SetSize, limits, proportional, resolve, scale_down, scale_up

sizes = st.integers(0, 40)
shares = st.integers(0, 10) | st.integers(0, 100).map(lambda percent: f"{percent}%")


@st.composite
def set_sizes(draw: st.DrawFn) -> SetSize:
    replicas = draw(sizes)
    return SetSize(replicas, draw(st.integers(0, replicas)), draw(sizes))


olds = st.lists(set_sizes(), max_size=4)


def test_percentages_of_surge_round_up_and_of_unavailability_down() -> None:
    assert limits(3, "25%", "25%") == (1, 0)
    assert limits(10, "25%", "25%") == (3, 2)
    assert resolve(2, 100, round_up=True) == 2


def test_limits_of_zero_become_one_unavailable_pod() -> None:
    assert limits(3, 0, 0) == (0, 1)


@given(desired=sizes, surge=shares, unavailable=shares)
def test_limits_always_let_a_rollout_proceed(desired: int, surge: int | str, unavailable: int | str) -> None:
    more, fewer = limits(desired, surge, unavailable)
    assert more >= 0
    assert fewer >= 0
    assert more + fewer > 0


@given(desired=sizes, surge=sizes, new=set_sizes(), old=olds)
def test_scaling_up_never_exceeds_the_desired_size_nor_the_surge(
    desired: int, surge: int, new: SetSize, old: list[SetSize]
) -> None:
    size = scale_up(desired, surge, new, old)
    assert size <= desired
    others = sum(item.replicas for item in old)
    assert size <= new.replicas or size + others <= desired + surge


@given(desired=sizes, unavailable=sizes, new=set_sizes(), old=olds)
def test_scaling_down_keeps_enough_available_pods(
    desired: int, unavailable: int, new: SetSize, old: list[SetSize]
) -> None:
    after = scale_down(desired, unavailable, new, old)
    assert all(0 <= size <= item.replicas for size, item in zip(after, old, strict=True))
    before = new.available + sum(item.available for item in old)
    serving = new.available + sum(min(size, item.available) for size, item in zip(after, old, strict=True))
    assert serving >= min(before, desired - unavailable)


@given(
    desired=st.integers(1, 30), surge=shares, unavailable=shares, start=st.integers(0, 30), picks=st.data()
)
def test_every_rollout_ends_with_the_new_set_alone(
    desired: int, surge: int | str, unavailable: int | str, start: int, picks: st.DataObject
) -> None:
    more, fewer = limits(desired, surge, unavailable)
    new, old = SetSize(0, 0), [SetSize(start, start)]
    for _ in range(500):
        if (new.replicas, new.available) == (desired, desired) and old[0].replicas == 0:
            return
        new = SetSize(scale_up(desired, more, new, old), new.available)
        new = SetSize(new.replicas, min(new.available, new.replicas))
        size = scale_down(desired, fewer, new, old)[0]
        old = [SetSize(size, size)]
        ready = picks.draw(st.integers(new.available, new.replicas), label="ready")
        # Pods become available at some time.
        new = SetSize(new.replicas, max(ready, min(new.available + 1, new.replicas)))
    raise AssertionError(f"the rollout hangs at {new} and {old}")


@given(desired=sizes, surge=st.integers(0, 10), sets=st.lists(set_sizes(), min_size=2, max_size=4))
def test_scaling_in_proportion_reaches_the_allowed_total(
    desired: int, surge: int, sets: list[SetSize]
) -> None:
    after = proportional(desired, surge, sets)
    assert all(size >= 0 for size in after)
    assert sum(after) == (desired + surge if desired else 0)


def test_scaling_in_proportion_keeps_the_shares() -> None:
    assert proportional(10, 0, [SetSize(3, 3, 5), SetSize(2, 2, 5)]) == [6, 4]
