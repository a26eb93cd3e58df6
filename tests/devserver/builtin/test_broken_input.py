"""Objects with fields removed, emptied or replaced are accepted or refused, and never raise another error."""

import random
from typing import Any

import pytest
from builtin_cases import recording
from hypothesis import given
from hypothesis import strategies as st

from kubewright.api import GroupVersionKind
from kubewright.devserver import KubernetesRelease
from kubewright.devserver.builtin import strategy_for, strategy_in_release
from kubewright.devserver.objects import copy
from kubewright.devserver.wire import WireDecodeError, load_types

RELEASES = (KubernetesRelease.known()[0], "1.34", KubernetesRelease.known()[-1])
TYPES = {version: load_types(KubernetesRelease.find(version)) for version in RELEASES}
CASES = [entry["case"] for entry in recording("accepted")]
CASES = [case for case in CASES if case["kind"] != "CustomResourceDefinition"]
ODD: list[Any] = [
    None,
    "",
    "x",
    "-",
    "a/b/c",
    "é" * 70,
    0,
    -1,
    2**31 - 1,
    True,
    [],
    {},
    [None],
    [{}],
    {"": ""},
]


def places(value: Any) -> list[tuple[Any, Any]]:
    """List every (holder, key) in a document."""
    found: list[tuple[Any, Any]] = []
    pairs = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in list(pairs):
        found.append((value, key))
        found += places(item)
    return found


def damage(case: Any, seed: int) -> Any:
    """Change a few parts of an object at random."""
    chance = random.Random(seed)
    broken = copy(case)
    for _ in range(chance.randint(1, 3)):
        known = [place for place in places(broken) if place[1] not in ("apiVersion", "kind", "metadata")]
        if not known:
            break
        holder, key = chance.choice(known)
        if chance.random() < 0.3:
            del holder[key]
        else:
            holder[key] = copy(chance.choice(ODD))
    return broken


@pytest.mark.parametrize("version", RELEASES)
@given(index=st.integers(0, len(CASES) - 1), seed=st.integers(0, 2**32))
def test_a_damaged_object_is_accepted_or_refused(version: str, index: int, seed: int) -> None:
    types = TYPES[version]
    broken = damage(CASES[index], seed)
    gvk = GroupVersionKind.parse(broken["apiVersion"], broken["kind"])
    if not types.has(gvk):
        return
    strategy = strategy_in_release(strategy_for(gvk.group, gvk.kind), gvk, types)
    try:
        obj, _ = types.decode(gvk, broken)
    except WireDecodeError:
        return
    obj.update(kind=gvk.kind, apiVersion=gvk.api_version)
    obj["metadata"].update(uid="u", creationTimestamp="2026-01-01T00:00:00Z")
    obj["metadata"].setdefault("name", "x")
    strategy.default(obj)
    strategy.prepare_create(obj)
    if strategy.validate(obj):
        return
    strategy.warnings(obj, None)
    stored = copy(obj)
    strategy.prepare_update(obj, stored)
    strategy.validate_update(obj, stored)
    for read in strategy.selectable_fields.values():
        assert isinstance(read(stored), str)
    if strategy.row is not None:
        assert len(strategy.row(stored, 0.0)) >= len(strategy.columns)
