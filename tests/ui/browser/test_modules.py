"""The parts of the page that compute: index, store, layout, differences, manifests."""

import random
from typing import Any

import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .fake_feed import FakeFeed, GeneratedState
from .page import Page

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.text()
    | st.from_regex(r"[yn0-9.:#~|>-]{1,6}"),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(values=st.lists(JSON, min_size=1, max_size=20))
def test_manifest_as_yaml_reads_back_as_the_same_value(page: Page, feed: FakeFeed, values: list[Any]) -> None:
    if not page.driver.current_url.startswith(feed.url):
        page.open(feed.url)
    # Lone surrogates cannot be sent to the browser, and no server sends them.
    documents = [{"value": value} for value in values]
    shown = page.module("manifest", "return given[0].map(m.yamlText);", documents)
    assert [yaml.safe_load(text) for text in shown] == documents


def test_block_of_lines_reads_back_as_the_same_text(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    texts = [
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "a\n\n  b\nc",
        " a\nb",
        "a \nb",
        "a\nb ",
        "\na\nb",
        "a\n\tb",
        "a\r\nb",
        "#!/bin/sh\nset -e\n",
    ]
    shown = page.module(
        "manifest", "return given[0].map((text) => m.yamlText({ data: { text, list: [text] } }));", texts
    )
    assert [yaml.safe_load(text) for text in shown] == [
        {"data": {"text": text, "list": [text]}} for text in texts
    ]


def test_field_managers_are_found_for_list_elements_and_inner_fields(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    ports = [{"containerPort": 80, "protocol": "TCP"}, {"containerPort": 80, "protocol": "UDP"}]
    manifest = {
        "metadata": {"labels": {"app.kubernetes.io/name": "x"}, "finalizers": ["example.com/a"]},
        "spec": {
            "containers": [{"name": "sh", "image": "a", "ports": ports}, {"name": "other", "image": "b"}]
        },
    }
    managers = {
        "metadata.labels.app.kubernetes.io/name": "kubectl",
        "metadata.finalizers[example.com/a]": "finalizing",
        "spec.containers[name=sh]": "operator",
        "spec.containers[name=sh].image": "updater",
        "spec.containers[name=sh].ports[containerPort=80,protocol=UDP].protocol": "dns",
    }
    found = page.module(
        "manifest",
        "const { find, selectors } = m.managersByPath(given[1]);"
        "return m.yamlLines(given[0], selectors).map((line) => [line.text, find(line.path)?.manager ?? '']);",
        manifest,
        [{"path": path, "manager": manager} for path, manager in managers.items()],
    )
    assert found == [
        ["metadata:", ""],
        ["labels:", ""],
        ["app.kubernetes.io/name: x", "kubectl"],
        ["finalizers:", ""],
        ["- example.com/a", "finalizing"],
        ["spec:", ""],
        ["containers:", ""],
        ["- name: sh", "operator"],
        ["image: a", "updater"],
        ["ports:", "operator"],
        ["- containerPort: 80", "operator"],
        ["protocol: TCP", "operator"],
        ["- containerPort: 80", "operator"],
        ["protocol: UDP", "dns"],
        ["- name: other", ""],
        ["image: b", ""],
    ]


def test_difference_of_lines_keeps_both_sides(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    chance = random.Random(3)
    pairs = [
        [chance.choices("abcd", k=chance.randrange(12)), chance.choices("abcd", k=chance.randrange(12))]
        for _ in range(300)
    ]
    shown = page.module("diff", "return given[0].map(([a, b]) => m.diffLines(a, b));", pairs)
    for (before, after), rows in zip(pairs, shown, strict=True):
        assert [row["left"] for row in rows if row["left"] is not None] == before
        assert [row["right"] for row in rows if row["right"] is not None] == after
        assert all(row["left"] == row["right"] for row in rows if row["same"])


def test_difference_finds_the_longest_common_lines(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    rows = page.module("diff", "return m.diffLines([...'abcdefg'], [...'axcdyg']);")
    assert [row["left"] for row in rows if row["same"]] == ["a", "c", "d", "g"]


def test_index_stays_sorted_through_changes_and_deletions(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    chance = random.Random(5)
    steps: list[dict[str, Any]] = []
    for _ in range(400):
        number = chance.randrange(40)
        owner = {
            "uid": f"u{chance.randrange(40)}",
            "kind": "A",
            "name": "x",
            "controller": chance.random() < 0.5,
        }
        steps.append(
            {
                "uid": f"u{number}",
                "remove": chance.random() < 0.3,
                "kind": chance.choice(["A", "B"]),
                "name": f"n{chance.randrange(50)}-{number}",
                "reconciled": chance.random() < 0.2,
                "owners": [owner] if chance.random() < 0.5 else [],
            }
        )
    names, children, kinds = page.module(
        "objects",
        """
        const index = new m.ObjectIndex();
        for (const step of given[0]) step.remove ? index.remove(step.uid) : index.put([step]);
        const owned = Object.fromEntries(index.sorted.map((o) => [o.uid, index.children(o.uid).map((c) => c.uid).sort()]));
        return [index.sorted.map((o) => [!o.reconciled, o.kind, o.name]), owned, index.kinds];
        """,
        steps,
    )
    left: dict[str, dict[str, Any]] = {}
    for step in steps:
        left.pop(step["uid"], None)
        if not step["remove"]:
            left[step["uid"]] = step
    assert names == sorted([not o["reconciled"], o["kind"], o["name"]] for o in left.values())
    for uid in left:
        owned = sorted(o["uid"] for o in left.values() if any(owner["uid"] == uid for owner in o["owners"]))
        assert children[uid] == owned
    assert dict(kinds) == {kind: sum(o["kind"] == kind for o in left.values()) for kind in ("A", "B")}


def test_reset_in_parts_replaces_the_objects_at_once(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    sizes = page.module(
        "store",
        """
        const store = new m.Store();
        const part = (reset, more, ...names) => {
            const changed = names.map((name) => ({ uid: name, kind: "A", name }));
            store.receive("objects", { reset, more, changed, removed: [] });
            return [store.index.size, store.loaded];
        };
        return [part(true, true, "a"), part(false, false, "b"), part(true, true, "c"), part(false, true, "d"), part(false, false, "e")];
        """,
    )
    assert sizes == [[0, False], [2, True], [2, True], [2, True], [3, True]]


def test_reconciles_are_kept_in_order_and_replaced_by_id(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    ids = page.module(
        "store",
        """
        const log = new m.ReconcileLog();
        const at = (id, second) => ({ operator: "o", id, startedAt: `2026-01-01T00:00:0${second}Z` });
        log.add([at("a", 1), at("c", 3)]);
        log.add([at("b", 2)]);
        log.add([at("a", 4)]);
        return [log.entries.map((e) => e.id), log.countUntil(Date.parse("2026-01-01T00:00:03Z"))];
        """,
    )
    assert ids == [["b", "c", "a"], 2]


BUILD = """
    const { ObjectIndex } = await import("/static/objects.js");
    const index = new ObjectIndex();
    index.put(given[0]);
    const graph = m.buildGraph(index, index.sorted, { ...given[1], all: true, opened: new Set(given[1].opened ?? []) });
    const size = m.layOut(graph, given[1].width ?? 1200);
    return [[...graph.nodes.values()].map((n) => ({ id: n.id, type: n.type, x: n.x, y: n.y, uids: (n.members ?? [n.object]).map((o) => o.uid) })), size, m.NODE];
"""


def test_graph_has_each_object_once_and_no_overlapping_nodes(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    for shells, pods, width in [(1, 1, 400), (5, 3, 500), (12, 2, 1200), (200, 9, 800)]:
        objects = list(GeneratedState(shells=shells, pods=pods).objects.values())
        nodes, size, node = page.module("layout", BUILD, objects, {"width": width, "selected": "uid-5"})
        assert sorted(uid for each in nodes for uid in each["uids"]) == sorted(o["uid"] for o in objects)
        assert any(each["id"] == "uid-5" for each in nodes), "the selected object is a node of its own"
        places = sorted((each["x"], each["y"]) for each in nodes)
        for number, (x, y) in enumerate(places):
            assert 0 <= x <= size["width"] - node["width"]
            assert 0 <= y <= size["height"] - node["height"]
            overlapping = [
                other
                for other in places[number + 1 :]
                if abs(other[0] - x) < node["width"] and abs(other[1] - y) < node["height"]
            ]
            assert overlapping == []


def test_graph_of_many_objects_has_few_nodes(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    objects = list(GeneratedState(shells=1700).objects.values())
    nodes, _, _ = page.module("layout", BUILD, objects, {})
    assert len(nodes) < 12
    opened, _, _ = page.module("layout", BUILD, objects, {"opened": [">Shell.example.com"]})
    assert len(nodes) < len(opened) < 100


def test_graph_shows_owners_that_form_a_cycle(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    state = GeneratedState()
    first = state.add("Shell", "first")
    second = state.add("Shell", "second", owner=first)
    first["owners"] = [{"uid": second["uid"], "kind": "Shell", "name": "second", "controller": True}]
    state.add("Shell", "third", owner=second)
    nodes, _, _ = page.module("layout", BUILD, list(state.objects.values()), {})
    assert sorted(each["id"] for each in nodes) == ["uid-1", "uid-2", "uid-3"]


def test_scheduler_renders_once_per_animation_frame(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    renders = page.module(
        "dom",
        """
        let renders = 0;
        const schedule = m.frameScheduler(() => renders++);
        for (let i = 0; i < 100; i++) schedule();
        await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
        return renders;
        """,
    )
    assert renders == 1
