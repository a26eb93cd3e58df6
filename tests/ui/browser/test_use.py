"""How the page is used: keys, actions, focus, contrast, narrow windows, and what its sources must not contain."""

import re

import pytest
from selenium.webdriver.common.keys import Keys

from .fake_feed import STATIC, FakeFeed, GeneratedState, with_operator
from .page import Page

DIALOG = "document.querySelector('#dialog')"

# Return elements whose text has too little contrast to what is behind it, with both colours.
LOW_CONTRAST = """
(() => {
    const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
    const rgba = (color) => {
        canvas.clearRect(0, 0, 1, 1);
        canvas.fillStyle = color;
        canvas.fillRect(0, 0, 1, 1);
        const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data;
        return [r, g, b, a / 255];
    };
    const over = (top, bottom) => [0, 1, 2].map((i) => top[i] * top[3] + bottom[i] * (1 - top[3])).concat(1);
    const light = ([r, g, b]) => {
        const part = (v) => ((v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
        return 0.2126 * part(r) + 0.7152 * part(g) + 0.0722 * part(b);
    };
    const behind = (element) => {
        if (!element) return rgba(getComputedStyle(document.body).backgroundColor);
        const box = element.closest('.node') === element ? element.querySelector('.box:not(.behind)') : null;
        const style = getComputedStyle(box ?? element);
        const own = rgba(box ? style.fill : style.backgroundColor);
        return own[3] === 1 ? own : over(own, behind(element.parentElement));
    };
    const found = [];
    let seen = 0;
    for (const element of document.querySelectorAll('body *')) {
        const text = [...element.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join('').trim();
        if (!text || !element.getClientRects().length || element.closest('[disabled], option, title')) continue;
        seen++;
        const style = getComputedStyle(element);
        const drawn = element.namespaceURI.endsWith('svg') ? style.fill : style.color;
        const back = behind(element);
        const front = over(rgba(drawn), back);
        const [a, b] = [light(front), light(back)].sort((x, y) => y - x);
        const ratio = (a + 0.05) / (b + 0.05);
        if (ratio < 4.5) found.push([element.tagName, element.className?.baseVal ?? element.className, text.slice(0, 30), ratio.toFixed(2)]);
    }
    return { found, seen };
})()
"""


def busy_state() -> GeneratedState:
    """Return a state with every colour of the page in it."""
    state = with_operator(GeneratedState(shells=9))
    names = ("failed", "waiting", "progressing", "deleting", "paused", "unknown", "ready")
    objects = list(state.objects.values())
    for each, name in zip(objects, names, strict=False):
        each.update(state=name, stateText=f"is {name}")
    state.problems = ["one operator does not respond"]
    for number in range(12):
        state.add_reconcile(objects[0], error="broken" if number % 3 else "", repeated=number % 2)
    state.add_reconcile(objects[0], writes=[], logs=0)
    return state


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_text_has_enough_contrast(page: Page, dark: bool) -> None:
    with FakeFeed(busy_state()) as feed:
        page.open(feed.url, width=1500, height=1000, dark=dark)
        for look in (
            "#object-list .row",
            "#tab-manifest",
            "#tab-events",
            "#tab-reconciles",
            "#timeline-list .row",
            "#help",
        ):
            page.click(look)
            page.until(
                "!document.querySelector('.content .placeholder') && document.querySelector('#panel-body').children.length"
            )
            result = page.js(LOW_CONTRAST)
            assert result["found"] == []
            assert result["seen"] > 60
        page.press(Keys.ESCAPE)
        page.set_value("#time", 1000)
        page.until("document.body.classList.contains('past')")
        assert page.js(LOW_CONTRAST)["found"] == []


def test_contrast_check_finds_gray_on_white(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.js("(document.querySelector('#graph-note').style.color = '#999')")
    assert [found[1] for found in page.js(LOW_CONTRAST)["found"]] == ["muted"]


def test_theme_switch_overrides_the_system(page: Page, feed: FakeFeed) -> None:
    background = "getComputedStyle(document.body).backgroundColor"
    page.open(feed.url, dark=True)
    dark = page.js(background)
    page.press("d")
    page.until(f"{background} !== arguments[0]", dark)
    light = page.js(background)
    page.open(feed.url, dark=True)
    assert page.js(background) == light, "the choice is kept"
    page.press("d")
    page.until(f"{background} === arguments[0]", dark)
    page.press("d")
    assert page.js("document.documentElement.dataset.theme") == "system"


def test_each_control_has_a_name_and_each_region_a_label(page: Page) -> None:
    with FakeFeed(busy_state()) as feed:
        page.open(feed.url)
        page.click("#object-list .row")
        page.until_text("#object-content", "Ready")
        nameless = page.js(
            "[...document.querySelectorAll('button, input, select, [role=button], [role=img], section, aside, nav')]"
            ".filter((e) => !(e.ariaLabel || e.getAttribute('aria-label') || e.textContent.trim()"
            " || document.querySelector(`label[for='${e.id}']`))).map((e) => e.outerHTML)"
        )
        assert nameless == []
        roles = page.js("[...document.querySelectorAll('[role]')].map((e) => e.getAttribute('role'))")
        assert {"listbox", "option", "tablist", "tab", "tabpanel", "status", "search"} <= set(roles)


def test_tab_key_visits_the_parts_in_order_with_visible_focus(page: Page) -> None:
    with FakeFeed(busy_state()) as feed:
        page.open(feed.url)
        visited: list[str] = []
        for _ in range(40):
            page.press(Keys.TAB)
            if page.js("document.activeElement === document.body"):
                break
            focused, outline = page.js(
                "(() => { const e = document.activeElement; const s = getComputedStyle(e);"
                " const box = e.querySelector?.('.box'); const drawn = box && getComputedStyle(box).strokeWidth === '3px';"
                " const track = e.id === 'time' && getComputedStyle(e.parentElement).outlineStyle !== 'none';"
                " return [e.id || e.getAttribute('class'), s.outlineStyle !== 'none' || drawn || track]; })()"
            )
            assert outline, f"{focused} shows its focus"
            visited.append(focused)
        order = [
            "apply",
            "theme",
            "help",
            "operators",
            "filter-text",
            "filter-kind",
            "filter-namespace",
            "object-list",
            "zoom-out",
            "timeline-list",
            "earlier",
            "time",
            "live",
        ]
        assert [name for name in visited if name in order][: len(order)] == order
        assert any(name and name.startswith("node") for name in visited), "the graph is one tab stop"


def test_page_has_no_animations(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    assert page.js("document.getAnimations().length") == 0


@pytest.mark.parametrize("view", ["objects", "graph", "timeline", "panel"])
def test_page_fits_a_window_of_400_pixels(page: Page, view: str) -> None:
    with FakeFeed(busy_state()) as feed:
        page.open(feed.url, width=400, height=760)
        page.click("#views [data-view=objects]")
        page.click("#object-list .row")
        page.until_text(".panel-heading", "shell-0000")
        page.click("#tab-manifest")
        page.until("document.querySelector('.manifest')")
        page.click(f"#views [data-view={view}]")
        part = page.until("document.querySelector(arguments[0]).getBoundingClientRect().height", f"#{view}")
        assert part > 200
        assert page.js("document.scrollingElement.scrollWidth") <= 400
        wide = page.js(
            "[...document.querySelectorAll(arguments[0])].filter((e) => e.getClientRects().length"
            " && !e.closest('svg, #operators') && e.getBoundingClientRect().right > 401).map((e) => e.className)",
            f"#top *, #views *, #{view} *, #timebar *",
        )
        assert wide == []


def test_elements_in_use_survive_updates(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    button = page.until("document.querySelector('[data-key^=edit]')")
    page.js("arguments[0].focus()", button)
    state.change({**state.objects["uid-1"], "stateText": "1/2 ready"})
    page.until_text(".panel-heading", "1/2 ready")
    assert page.js("document.activeElement === arguments[0]", button)


# Keys


def test_help_lists_the_keys(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.press("?")
    page.until_text("#dialog", "Live again", "Filter by text")
    page.press(Keys.ESCAPE)
    page.until(f"!{DIALOG}.open")


def test_object_is_opened_with_keys_alone(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.press("o", "j", Keys.ARROW_DOWN, "k", Keys.ENTER)
    page.until_text(".panel-heading", "shell-0001")
    page.press("g", Keys.ARROW_RIGHT, Keys.ENTER)
    page.until_text(".panel-heading", "shell-0000", "Deployment")
    page.press("p", Keys.ARROW_RIGHT)
    page.until("document.activeElement.id === 'tab-manifest'")
    page.press(Keys.ESCAPE)
    page.until("document.querySelector('#panel').hidden")


def test_keys_are_text_while_typing(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.press("/", "?", "d", "l")
    assert page.js("document.querySelector('#filter-text').value") == "?dl"
    assert not page.js(f"{DIALOG}.open")


# Actions


def test_sample_is_applied(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    page.press("a")
    page.until("document.querySelector('#manifest-text')")
    page.click("#dialog [type=submit]")
    page.until_text("#notices", "apply done")
    assert state.actions == [{"action": "apply", "manifest": state.samples[0]["manifest"]}]
    assert not page.js(f"{DIALOG}.open")


def test_edited_manifest_is_sent_whole_with_its_uid(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    page.click("[data-key^=edit]")
    text = page.until("document.querySelector('#manifest-text')?.value")
    page.set_value("#manifest-text", text.replace("replicas: 2", "replicas: 5"))
    page.click("#dialog [type=submit]")
    page.until_text("#notices", "apply done")
    manifest = state.actions[0]["manifest"]
    assert "replicas: 5" in manifest
    assert "uid: uid-1" in manifest


def test_refused_action_keeps_the_dialog_with_the_servers_message(
    page: Page, feed: FakeFeed, state: GeneratedState
) -> None:
    state.refusal = 'Shell "x" is invalid: spec.size: must be at least 0'
    page.open(feed.url)
    page.press("a")
    page.until("document.querySelector('#manifest-text')")
    page.click("#dialog [type=submit]")
    page.until_text("#dialog [role=alert]", state.refusal)
    assert page.js(f"{DIALOG}.open")
    page.press(Keys.ESCAPE)


def test_deletion_is_confirmed_first(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    page.click("[data-key^=delete]")
    page.until_text("#dialog", "Delete Shell demo/shell-0000?", "that it owns will be deleted too")
    page.press(Keys.ESCAPE)
    page.until(f"!{DIALOG}.open")
    assert state.actions == []
    page.click("[data-key^=delete]")
    page.click("#dialog [type=submit]")
    page.until_text("#notices", "delete done")
    assert state.actions == [{"action": "delete", "uid": "uid-1"}]
    page.until_text(".panel-heading", "has been deleted")


def test_dialog_that_opens_while_another_closes_keeps_its_content(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    page.click("[data-key^=delete]")
    page.until("document.querySelector('#dialog [type=submit]')")
    # In one script: the browser reports that the first dialog was closed when the second one is open.
    page.js(
        "new Promise((done) => {"
        " document.querySelector('#dialog').addEventListener('close', () => done(true), { once: true });"
        " document.querySelector('#dialog [type=button]').click();"
        " document.querySelector('[data-key^=scale]').click(); })"
    )
    assert page.texts("#dialog h2") == ["Scale Shell shell-0000"]


def test_object_is_scaled_paused_and_reconciled(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    page.click("[data-key^=scale]")
    page.set_value("#replicas", 4)
    page.click("#dialog [type=submit]")
    page.until_text("#notices", "scale done")
    page.click("[data-key^=reconcile]")
    page.click("[data-key^=pause]")
    page.until_text("#notices", "pause done")
    state.change({**state.objects["uid-1"], "state": "paused"})
    page.click("[data-key^=resume]")
    page.until_text("#notices", "resume done")
    assert sorted(state.actions, key=lambda action: action["action"]) == [
        {"action": "pause", "uid": "uid-1"},
        {"action": "reconcile", "uid": "uid-1"},
        {"action": "resume", "uid": "uid-1"},
        {"action": "scale", "uid": "uid-1", "replicas": 4},
    ]


def test_read_only_page_has_no_actions(page: Page, feed: FakeFeed, state: GeneratedState) -> None:
    state.hello["writable"] = False
    page.open(feed.url)
    page.click("#object-list .row")
    page.until_text("#object-content", "Ready")
    assert page.texts("#read-only") == ["read-only"]
    assert page.texts(".actions button, #apply") == []
    page.press("a")
    page.until_text("#notices", "read-only")


def test_actions_are_disabled_in_the_past(page: Page, feed: FakeFeed) -> None:
    page.open(feed.url)
    page.click("#object-list .row")
    page.until("document.querySelector('[data-key^=delete]:enabled')")
    page.set_value("#time", 1000)
    page.until("document.querySelectorAll('.panel-heading .actions button:disabled').length === 5")


# Sources


def test_sources_never_make_markup_of_text() -> None:
    forbidden = re.compile(
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|setAttribute\(\s*[\"']style"
    )
    found = [
        f"{file.name}:{number}"
        for file in sorted(STATIC.glob("*.js"))
        for number, line in enumerate(file.read_text().splitlines(), 1)
        if forbidden.search(line)
    ]
    assert found == []


def test_page_has_no_inline_script_or_style_and_loads_only_its_own_files() -> None:
    text = (STATIC / "index.html").read_text()
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)", text)
    assert set(re.findall(r"(?:src|href)=\"([^\"]*)\"", text)) == {
        f"/static/{name}" for name in ("icon.svg", "theme.css", "page.css", "main.js")
    }
    sources = [file.read_text() for file in STATIC.iterdir() if file.suffix in (".js", ".css")]
    addresses = {address for source in sources for address in re.findall(r"https?://[^\"'\s]+", source)}
    assert addresses == {"http://www.w3.org/2000/svg"}


def test_colours_are_defined_in_the_theme_only() -> None:
    text = (STATIC / "page.css").read_text()
    assert re.findall(r":[^;{}]*(?:#[0-9a-fA-F]{3,8}\b|rgba?\()[^;{}]*;", text) == []
