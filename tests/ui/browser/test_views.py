"""What the page shows: objects, graph, timeline, panels, operators, time travel, filter, states."""

import time

from selenium.webdriver.common.keys import Keys

from .fake_feed import FakeFeed, GeneratedState, stamp, with_operator
from .page import Page

CONNECTION = "document.querySelector('#connection').dataset.state"


def shell(state: GeneratedState, name: str = "shell-0001") -> dict[str, object]:
    return next(o for o in state.objects.values() if o["kind"] == "Shell" and o["name"] == name)


# Objects and graph


def test_objects_are_listed_with_their_state(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    shell(state).update(state="failed", stateText="registry does not respond")
    page.open(feed.url)
    rows = page.texts("#object-list .row:not([hidden])")
    assert any("shell-0001" in row and "registry does not respond" in row for row in rows)
    assert page.texts("#states .chip") == ["1failed", "17ready"]
    assert page.js("document.querySelectorAll('#object-list [aria-label=failed]').length") == 1


def test_graph_connects_owners_and_references(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    assert len(page.texts(".node.object")) == 18
    # Shell > Deployment > ReplicaSet > 2 Pods, three times; each Pod refers to the ConfigMap of its Shell.
    assert page.js("document.querySelectorAll('.edge.owner').length") == 12
    assert page.js("document.querySelectorAll('.edge.reference').length") == 6


def test_graph_follows_changes(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    state.change({**shell(state), "state": "failed", "stateText": "no registry"})
    page.until_text(".node.state-failed", "shell-0001", "no registry")
    state.remove(str(shell(state)["uid"]))
    page.until("!document.querySelector('.node.state-failed')")
    state.add_shell("newcomer")
    state.change(*[o for o in state.objects.values() if o["name"].startswith("newcomer")])
    page.until(
        "[...document.querySelectorAll('.node.object')].some((n) => n.textContent.includes('newcomer'))"
    )


def test_group_opens_to_its_worst_members(page: Page) -> None:
    state = GeneratedState(shells=300)
    shell(state, "shell-0250").update(state="failed", stateText="broken")
    with FakeFeed(state) as feed:
        page.open(feed.url)
        page.until_text(".node.group", "Shell × 300")
        assert page.texts(".node.object") == []
        page.click(".node.group")
        page.until_text(".node.object", "shell-0250", "broken")
        page.until(
            "[...document.querySelectorAll('.node.group')].some((n) => n.textContent.includes('288 more'))"
        )


# Panels


def test_object_panel_shows_conditions_relatives_and_events(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    state.add_reconcile(shell(state), error="no registry")
    page.open(feed.url)
    page.click("#object-list .row", 1)
    page.until_text("#object-content", "Ready", "AllReady: 2 Pods are ready", "Deployment/shell-0001")
    page.press("3")
    page.until_text("#object-content", "Created", "created the Deployment", "× 2")
    page.press("4")
    page.until_text("#object-content", "Deployment/shell-0001 updated → 1 write", "no registry")
    page.click("#object-content .entry")
    page.until_text(".reconcile-panel", "Shell/shell-0001", "no registry")


def test_status_begins_with_the_error_of_a_failing_object(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    failing = {
        "operator": "shells",
        "id": state.add_reconcile(shell(state), error="ZeroDivisionError: division by zero")["id"],
        "controller": "shell",
        "outcome": "error",
        "error": "ZeroDivisionError: division by zero\nin reconcile",
        "failures": 3,
        "retryAt": stamp(time.time() + 3600),
    }
    shell(state).update(state="failed", stateText="ZeroDivisionError: division by zero", failing=failing)
    with_operator(state).operators[0]["retries"] = [
        {
            **{name: shell(state)[name] for name in ("group", "kind", "namespace", "name")},
            "failures": 16,
            "at": failing["retryAt"],
        }
    ]
    page.open(feed.url)
    page.click("#object-list .row", 1)
    text = page.until_text("#object-content", "division by zero", "controller shell")
    assert text.startswith("Reconcile failed")
    assert "16 times in a row · next try in " in text
    page.click("[data-key^=failing]")
    page.until_text(".reconcile-panel", "Shell/shell-0001", "division by zero")


def test_status_lists_scalar_fields(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click("#object-list .row", 1)
    page.until_text("#object-content .fields", "ready2")


def test_manifest_shows_the_manager_of_each_field(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click(".node.object")
    page.press("2")
    lines = page.until(
        "(() => { const lines = [...document.querySelectorAll('.manifest .line')];"
        " return lines.length && lines.map((l) => [...l.children].map((c) => c.textContent)); })()"
    )
    assert ["kubectl", "  replicas: 2"] in lines
    assert ["shells", '    image: "busybox:2"'] in lines
    assert ["", "apiVersion: example.com/v1"] in lines


def test_manifest_is_compared_with_an_older_version(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click(".node.object")
    page.click("#tab-manifest")
    page.until("document.querySelector('#compare')")
    choices = page.js("[...document.querySelector('#compare').options].map((each) => each.textContent)")
    assert choices[0] == "nothing"
    assert [each.partition("(")[2] for each in choices[1:]] == ["1)"], "without the version that is shown"
    page.set_value("#compare", page.js("document.querySelector('#compare').options[1].value"), "change")
    page.until_text("#object-content .diff", "Before", "After", "equal lines")


def test_panel_says_that_its_object_was_deleted(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    page.click("#object-list .row", 1)
    page.until_text(".panel-heading", "shell-0001")
    state.remove(str(shell(state)["uid"]))
    page.until_text(".panel-heading", "shell-0001", "has been deleted")


def test_reconcile_panel_shows_differences_side_by_side_and_the_log(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    state.add_reconcile(shell(state))
    page.open(feed.url)
    page.click("#timeline-list .row")
    page.until_text(".reconcile-panel", "status.readyReplicas", "apply shells/status.example.com/shell-0001")
    rows = page.js(
        "[...document.querySelectorAll('.write .diff tbody tr')].map((r) => [...r.children].map((c) => c.textContent))"
    )
    assert ["status.ready"] in rows
    assert ["1", "2"] in rows
    assert ['image: "busybox:1"', 'image: "busybox:2"'] in rows
    assert ["", "tty: true"] in rows
    assert page.texts(".log li")[0].endswith("infoApplied Deployment")


# Timeline and operators


def test_retry_after_an_error_is_named_as_the_cause(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    page.open(feed.url)
    state.add_reconcile(shell(state), causes=[], previousOutcome="error")
    page.until_text("#timeline-list .row", "retry after an error")
    page.click("#timeline-list .row")
    page.until_text(".reconcile-panel", "retry after an error")
    state.add_reconcile(shell(state), causes=[], previousOutcome="success")
    page.until_text("#timeline-list .row", "requeue or resync")


def test_timeline_shows_cause_reconcile_and_writes(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    assert page.texts("#timeline-empty") == ["No reconciles."]
    state.add_reconcile(shell(state))
    text = page.until_text("#timeline-list .row", "Deployment/shell-0001 updated", "status.readyReplicas")
    assert "Shell/shell-0001done" in text
    assert "apply shells/status.example.com/shell-00011 field" in text


def test_timeline_counts_down_to_the_next_try(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    state.add_reconcile(shell(state), error="no registry", retryAt=stamp(time.time() + 100), repeated=2)
    page.open(feed.url)
    row = "document.querySelector('#timeline-list .row').textContent"
    first = page.until(f"/no registry/.test({row}) && {row}.match(/× 3 · next in (\\d+)s/)[1]")
    page.until(f"Number({row}.match(/next in (\\d+)s/)[1]) < {first}")


def test_timeline_stays_where_it_is_read(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    for number in range(100):
        state.add_reconcile(shell(state), at=state.started - 200 + number)
    page.open(feed.url)
    page.js("document.querySelector('#timeline-list').scrollTop = 52 * 40")
    shown = (
        "[...document.querySelectorAll('#timeline-list .row:not([hidden])')].sort((a, b) => a.place - b.place)"
        ".find((row) => row.place * 52 >= document.querySelector('#timeline-list').scrollTop)"
    )
    page.until(f"{shown}?.item.id === 'reconcile-60'")
    for _ in range(5):
        state.add_reconcile(shell(state))
    page.until("document.querySelector('#timeline-list .row').ariaSetSize === '105'")
    assert page.js(f"{shown}.item.id") == "reconcile-60"


def test_operators_show_queue_workers_lease_retries_and_throttling(page: Page, state: GeneratedState) -> None:
    with FakeFeed(with_operator(state)) as feed:
        page.open(feed.url)
        page.until_text("#operators", "leader", "held by host-a_4711", "queue 3 + 2 delayed", "2/4")
        page.until_text("#operators", "retry Shell/shell-0001 in ", "1 request throttled")
        page.click("#operators .link")
        page.until_text(".panel-heading", "shell-0001")
        page.set_value("#time", 1000)
        page.until_text("#operators", "are shown when the page is live")


# Time travel


def test_slider_shows_the_past_and_a_key_returns_to_live(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    for number in range(10):
        state.add_reconcile(shell(state), at=state.started - 290 + number * 20)
    page.open(feed.url)
    page.set_value("#time", 55_000)
    page.until(f"{CONNECTION} === 'in-the-past'")
    page.until_text("#graph-note", "9 objects")
    assert len(page.texts("#timeline-list .row:not([hidden])")) == 3
    # What happens now is not shown, and not lost.
    state.add_shell("later")
    state.change(*[o for o in state.objects.values() if o["name"].startswith("later")])
    page.press("l")
    page.until(f"{CONNECTION} === 'live'")
    page.until_text("#graph-note", "24 objects")
    page.until("document.querySelector('#timeline-list .row').ariaSetSize === '10'")


def test_manifest_of_another_moment_is_never_shown(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    # Every second object is missing in the generated past: the Deployment is, its Shell is not.
    page.click("#object-list .row", 0)
    page.press("2")
    page.until("document.querySelector('.manifest')")
    page.set_value("#time", 55_000)
    page.until(f"{CONNECTION} === 'in-the-past'")
    page.until_text(".manifest", "kind: Shell")
    page.press("l")
    page.until("[...document.querySelectorAll('.node')].some((n) => n.textContent.includes('Deployment'))")
    page.set_value("#filter-kind", "Deployment.apps", "change")
    page.until_text("#object-list .row", "Deployment")
    page.click("#object-list .row", 0)
    page.until_text(".manifest", "kind: Deployment")
    page.set_value("#time", 60_000)
    page.until_text("#object-content", "the object is not kept")
    assert page.texts(".manifest") == []
    page.until_text(".panel-heading", "does not exist at this moment")


def test_keys_step_from_reconcile_to_reconcile(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    for number in range(3):
        state.add_reconcile(shell(state), at=state.started - 100 + number * 20)
    page.open(feed.url)
    rows = "[...document.querySelectorAll('#timeline-list .row:not([hidden])')].length"
    for expected in (3, 2, 1):
        page.press("[")
        page.until(f"{CONNECTION} === 'in-the-past' && {rows} === {expected}")
    page.press("]")
    page.until(f"{rows} === 2")


def test_moment_outside_the_history_is_reported(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    def refuse(_: float) -> list[dict[str, object]]:
        raise LookupError

    state.snapshots = refuse
    page.open(feed.url)
    page.set_value("#time", 1000)
    page.until_text("#empty", "The state at this time is not available", "older than the kept history")
    assert page.texts(".node.object") == []
    page.press("l")
    page.until_text("#graph-note", "18 objects")


def test_record_file_is_shown_from_its_end(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    state.hello.update(live=False, writable=False, source={"type": "record", "text": "incident.jsonl"})
    page.open(feed.url)
    page.until(f"{CONNECTION} === 'record'")
    page.until_text("#time-label", "end of the record")
    assert page.texts("#live") == ["End"]


# Filter


def test_filter_limits_list_graph_and_timeline(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    for name in ("shell-0000", "shell-0001", "shell-0002"):
        state.add_reconcile(shell(state, name))
    page.open(feed.url)
    page.press("/")
    page.press("shell-0002")
    page.until_text("#graph-note", "6 of 18 objects")
    page.until("document.querySelector('#timeline-list .row').ariaSetSize === '1'")
    page.set_value("#filter-kind", "Pod", "change")
    page.until_text("#graph-note", "2 of 18 objects")
    # Owners of what matches are there as context.
    assert page.js("document.querySelectorAll('.node.context').length") == 3
    assert len(page.texts("#object-list .row:not([hidden])")) == 2
    page.press(Keys.ESCAPE, "c")
    page.until_text("#graph-note", "18 objects")


def test_filter_by_state_and_namespace(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    shell(state).update(state="failed", namespace="other")
    page.open(feed.url)
    page.click("[data-state=failed]")
    page.until_text("#graph-note", "1 of 18 objects")
    page.click("[data-state=failed]")
    page.set_value("#filter-namespace", "demo", "change")
    page.until_text("#graph-note", "17 of 18 objects")
    page.set_value("#filter-text", "nothing like that")
    page.until_text("#empty-title", "No object matches the filter")
    page.click("#clear-filter")
    page.until_text("#graph-note", "18 objects")


def test_system_objects_are_shown_on_request(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    state.add("ClusterRole", "view", group="rbac.authorization.k8s.io", namespace="")
    state.add("ConfigMap", "kube-root-ca.crt")
    state.add("Pod", "dns", namespace="kube-system")
    page.open(feed.url)
    page.until_text("#graph-note", "18 objects")
    page.click("#system")
    page.until_text("#graph-note", "21 objects")
    page.press("s")
    page.until_text("#graph-note", "18 objects")
    page.set_value("#filter-kind", "ClusterRole.rbac.authorization.k8s.io", "change")
    page.until_text("#graph-note", "1 of 21 objects")


# States of the page


def test_empty_cluster_offers_a_sample(page: Page) -> None:
    with FakeFeed(GeneratedState()) as feed:
        page.open(feed.url)
        page.until_text("#empty", "No objects yet")
        page.click("#apply-sample")
        page.until("document.querySelector('#manifest-text')?.value.includes('kind: Shell')")


def test_lost_connection_is_reported_and_nothing_is_lost(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    page.open(feed.url)
    page.click("#object-list .row", 1)
    page.until_text(".panel-heading", "shell-0001")
    state.stream_status = 503
    state.interrupt()
    page.until_text("#banner", "The connection was lost")
    assert page.js(CONNECTION) == "reconnecting"
    assert page.texts(".node.object"), "what the page had is still shown"
    state.add_reconcile(shell(state))
    state.remove(str(shell(state, "shell-0000")["uid"]))
    state.stream_status = 200
    page.until(f"{CONNECTION} === 'live'")
    page.until_text("#graph-note", "17 objects")
    page.until("document.querySelector('#timeline-list .row').ariaSetSize === '1'")
    assert page.texts("#banner") == []
    page.until_text(".panel-heading", "shell-0001")


def test_link_that_is_not_valid_any_more_is_explained(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    page.open(feed.url)
    state.stream_status = 401
    state.interrupt()
    page.until_text("#banner", "This link is no longer valid")
    assert page.js(CONNECTION) == "link-expired"


def test_problems_are_listed(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    state.problems = ["secrets may not be listed: forbidden"]
    page.open(feed.url)
    page.until_text("#problems", "1 problem")
    # In the line itself, which is visible although nothing was opened.
    assert page.texts("#problems-title") == ["1 problem: secrets may not be listed: forbidden"]
    state.publish("problems", {"problems": ["one", "two"]})
    page.until_text("#problems-title", "2 problems")
    assert page.js("[...document.querySelectorAll('#problems-list li')].map((e) => e.textContent)") == [
        "one",
        "two",
    ]
    state.publish("problems", {"problems": []})
    page.until("document.querySelector('#problems').hidden")


def test_markup_in_names_is_text(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    bad = "<img src=x onerror='document.title=1'><script>document.title=2</script>"
    named = state.add("Shell", bad, stateText=bad, namespace=bad)
    named["conditions"] = [{"type": bad, "status": "True", "reason": bad, "message": bad}]
    state.add_reconcile(named, error=bad)
    state.problems = [bad]
    page.open(feed.url)
    page.until(
        "[...document.querySelectorAll('#object-list .name')].some((n) => n.textContent === arguments[0])",
        bad,
    )
    page.click("#timeline-list .row")
    page.until_text(".reconcile-panel pre", bad)
    page.click(".reconcile-panel h2 .link")
    page.until_text("#object-content", bad)
    assert page.js("document.querySelectorAll('body script, img:not([alt=\"\"])').length") == 0
    assert page.js("document.title") == "Generated · kubewright"


# Size


def test_ten_thousand_objects_and_a_hundred_changes_a_second_are_shown(page: Page) -> None:
    state = GeneratedState(shells=1667)
    with FakeFeed(state) as feed:
        page.open(feed.url)
        page.until_text("#graph-note", "10,002 objects, grouped by owner and kind")
        feed.churn(100)
        page.until("Number(document.querySelector('#timeline-list .row')?.ariaSetSize) > 50")
        assert page.js("document.querySelectorAll('#object-list .row').length") < 60
        assert page.js("document.querySelectorAll('#timeline-list .row').length") < 60
        assert page.js("document.querySelectorAll('*').length") < 2000
        page.js("document.querySelector('#object-list').scrollTop = 1e9")
        page.until(
            "[...document.querySelectorAll('#object-list .row')].some((r) => r.ariaPosInSet === '10002')"
        )
        page.set_value("#filter-text", "shell-1234")
        page.until_text("#graph-note", "6 of 10,002 objects")
