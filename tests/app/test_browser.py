"""The app in headless Chromium: keys, masks, two tabs, restarts, and axe-core on every page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from _filling import fill, project, rate, rater
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, Route, expect

from conftest import Running
from ombud.app.judging import open_round
from ombud.app.project import Project
from ombud.app.settings import ProjectSettings, Support
from ombud.app.tables import ratings_table
from ombud.taxonomy import load_terms

pytestmark = pytest.mark.browser
Serving = Callable[..., Running]


@pytest.fixture
def visit(browser: Browser) -> Iterator[Callable[..., Page]]:
    """Open the app as somebody; every message on the console or to elsewhere fails the test."""
    said: list[str] = []
    contexts = []

    def start(app: Running, name: str, role: str = "rater", **options: Any) -> Page:
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: said.append(m.text))
        page.on("pageerror", lambda e: said.append(str(e)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(app.url) else said.append(f"asked {r.url}"),
        )
        page.goto(f"{app.url}/invite/{app.site.people.invite(name, role)}")  # type: ignore[arg-type]
        page.get_by_role("button", name="Come in").click()
        if role == "rater":
            page.get_by_role("button", name="I have read this").click()
            expect(page.locator("#task")).to_be_visible()
            page.wait_for_load_state("load")  # the script is there by then
        return page

    yield start
    for context in contexts:
        context.close()
    foreseen = ("409", "404", "ERR_CONNECTION", "ERR_INTERNET_DISCONNECTED")
    unexpected = [text for text in said if not any(word in text for word in foreseen)]
    assert unexpected == []


def ratings(app: Running) -> list[dict[str, Any]]:
    return app.project.store.read(ratings_table).rows(named=True)


def done(page: Page, n: int) -> None:
    expect(page.get_by_text(f"{n} by you")).to_be_visible()


def test_rating_by_keys_alone(tmp_path: Path, serving: Serving, visit: Callable[..., Page]) -> None:
    project(tmp_path / "p", 12, repeat_share=0).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    page.keyboard.press("n")
    done(page, 1)
    page.keyboard.press("d")
    expect(page.get_by_text("How risky is it, as a whole?")).to_be_visible()
    assert page.evaluate("document.activeElement.id") == "text-title"
    page.keyboard.press("b")
    expect(page.get_by_text("Is this text delicate?")).to_be_visible()
    page.keyboard.press("d")
    expect(page.get_by_text("How risky is it, as a whole?")).to_be_visible()
    page.keyboard.press("4")
    done(page, 2)
    page.keyboard.press("c")
    done(page, 3)
    page.keyboard.press("s")
    expect(page.get_by_text("Skipped. Somebody else will see it.")).to_be_visible()
    page.keyboard.press("z")
    expect(page.get_by_text("Your last text is open again.")).to_be_visible()
    page.keyboard.press("n")
    done(page, 3)
    page.keyboard.press("g")
    assert page.evaluate("document.activeElement.id") == "guide"
    found = [(r["answer"], r["risk"], r["skipped"]) for r in ratings(app)]
    assert found.count(("not delicate", 0, False)) == 2
    assert ("delicate", 4, False) in found and (None, None, True) in found and len(found) == 4
    assert all(r["active_seconds"] <= r["seconds"] + 0.1 for r in ratings(app))


@pytest.mark.slow
def test_keys_can_be_turned_off(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    project(tmp_path / "p", 3).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    page.get_by_text("Keys", exact=True).click()
    page.get_by_label("Use single keys").uncheck()
    page.keyboard.press("n")
    page.reload()
    page.keyboard.press("n")
    page.wait_for_timeout(300)
    assert ratings(app) == []
    page.get_by_role("button", name="Not delicate").click()
    done(page, 1)


@pytest.mark.slow
def test_topics_and_target_are_stored_click_by_click(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    project(tmp_path / "p", 3, ask_topics=True, ask_target=True).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    page.keyboard.press("d")
    expect(page.get_by_text("How risky is it, as a whole?")).to_be_visible()
    page.keyboard.press("5")
    page.get_by_label("Religion").check()
    page.get_by_label("Self").check()
    expect(page.get_by_text("Stored.")).to_be_attached()
    page.reload()
    expect(page.get_by_label("Religion")).to_be_checked()
    expect(page.get_by_label("Self")).to_be_checked()
    page.locator("#text-title").focus()
    page.keyboard.press("Enter")
    done(page, 1)
    (row,) = ratings(app)
    assert (row["risk"], row["topics"], row["target"]) == (5, ["religion"], "self")


@pytest.mark.slow
def test_ticks_on_a_slow_line_are_all_stored(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    project(tmp_path / "p", 3, ask_topics=True, ask_target=True).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    page.keyboard.press("d")
    expect(page.get_by_text("How risky is it, as a whole?")).to_be_visible()
    page.keyboard.press("5")
    sent: list[str] = []

    def hold(route: Route) -> None:
        sent.append(route.request.post_data or "")
        if len(sent) == 1:
            held.append(route)
        else:
            route.continue_()

    held: list[Route] = []
    expect(page.get_by_label("Religion")).to_be_enabled()
    page.route("**/rate", hold)
    page.get_by_label("Religion").check()
    page.get_by_label("Self").check()
    page.get_by_label("Religion").uncheck()
    (first,) = held
    first.continue_()
    expect(page.get_by_text("Stored.")).to_be_attached()
    assert len(sent) == 2
    page.unroute("**/rate")
    page.reload()
    expect(page.get_by_label("Self")).to_be_checked()
    expect(page.get_by_label("Religion")).not_to_be_checked()


def test_covered_words_are_not_in_the_page(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    slur = next(t.text for t in load_terms("terms-identity@1").terms if t.kind == "slur")
    made = Project.create(tmp_path / "p", ProjectSettings())
    made.add_texts({"text": [f"He shouted {slur} at them.\nThen he left."]})
    made.close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    assert slur not in page.content()
    expect(page.get_by_text("1 word is covered.")).to_be_visible()
    page.keyboard.press("m")
    expect(page.get_by_text("1 word is covered.")).to_be_hidden()
    assert slur in page.content()
    page.keyboard.press("n")
    expect(page.get_by_text("That was all. Thank you.")).to_be_visible()
    assert ratings(app)[0]["shown"] is True


@pytest.mark.slow
def test_two_tabs(tmp_path: Path, serving: Serving, visit: Callable[..., Page]) -> None:
    project(tmp_path / "p", 6, repeat_share=0).close()
    app = serving(tmp_path / "p")
    one = visit(app, "Anna")
    two = one.context.new_page()
    two.goto(f"{app.url}/rate")
    same = "document.getElementById('task').dataset.assignment"
    first = one.evaluate(same)
    assert first == two.evaluate(same)
    two.evaluate("BroadcastChannel.prototype.postMessage = function () {}")
    one.evaluate("BroadcastChannel.prototype.postMessage = function () {}")
    one.keyboard.press("n")
    done(one, 1)
    # The second tab still shows the answered text, and says otherwise of it.
    two.keyboard.press("c")
    expect(two.get_by_text("That answer was kept")).to_be_visible()
    done(two, 1)
    assert [r["answer"] for r in ratings(app)] == ["not delicate"]
    assert two.evaluate(same) != first


def test_another_tab_follows(tmp_path: Path, serving: Serving, visit: Callable[..., Page]) -> None:
    project(tmp_path / "p", 6, repeat_share=0).close()
    app = serving(tmp_path / "p")
    one = visit(app, "Anna")
    two = one.context.new_page()
    two.goto(f"{app.url}/rate")
    one.keyboard.press("n")
    done(one, 1)
    done(two, 1)


@pytest.mark.slow
def test_a_click_while_the_server_is_away_is_sent_again(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    project(tmp_path / "p", 3, repeat_share=0).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    page.context.set_offline(True)
    page.keyboard.press("n")
    expect(page.get_by_text("Your last click is not stored yet.")).to_be_visible()
    assert ratings(app) == []
    page.context.set_offline(False)
    done(page, 1)
    expect(page.get_by_text("Your last click is not stored yet.")).to_be_hidden()
    assert len(ratings(app)) == 1


# It hung once in six runs of the suite, for a reason not found yet. What the server
# does with the same click twice is tested in test_rating.py.
@pytest.mark.slow
def test_a_reply_that_got_lost_is_not_a_second_rating(
    tmp_path: Path, serving: Serving, visit: Callable[..., Page]
) -> None:
    project(tmp_path / "p", 3, repeat_share=0).close()
    app = serving(tmp_path / "p")
    page = visit(app, "Anna")
    dropped = []

    def drop(route: Any) -> None:
        if route.request.method == "POST" and not dropped:
            dropped.append(route.fetch().status)  # stored there, never heard of here
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/rate", drop)
    with page.expect_event("requestfailed"):
        page.keyboard.press("n")
    done(page, 1)
    assert dropped == [200] and len(ratings(app)) == 1


@pytest.fixture
def lively(tmp_path: Path, serving: Serving) -> Running:
    """A project in which every page has something to show."""
    settings = ProjectSettings(
        title="Forum posts",
        ask_topics=True,
        ask_target=True,
        review_share=1.0,
        repeat_share=0.3,
        repeat_gap=2,
        support=(Support(name="Helpline", address="116 123"),),
    )
    made = Project.create(tmp_path / "lively", settings)
    from _filling import texts

    made.add_texts(texts(20))
    fill(made, ("Anna", "Ben", "Chidi"))
    made.add_texts(
        {"id": [f"p{i}" for i in range(9)], "text": ["A pilot text."] * 9}, round_="pilot"
    )
    made.store.write(lambda db: open_round(db, "pilot"))
    rater(made, "Dora")
    for risk in (1, 3, 5):
        rate(made, "Dora", risk)
    made.close()
    return serving(tmp_path / "lively")


LEAD = ("project", "agreement", "review", "adjudicate", "guidelines", "no-such-page")
RATER = ("stop", "welcome", "feedback")


@pytest.mark.parametrize(
    ("role", "scheme", "width"),
    [
        ("rater", "dark", 390),
        pytest.param("lead", "light", 1280, marks=pytest.mark.slow),
        pytest.param("lead", "dark", 390, marks=pytest.mark.slow),
        pytest.param("rater", "light", 1280, marks=pytest.mark.slow),
    ],
)
def test_pages_are_accessible(
    lively: Running, visit: Callable[..., Page], role: str, scheme: str, width: int
) -> None:
    options = {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
    axe = Axe()
    faults: list[str] = []
    page = visit(lively, "Lea", role, **options)

    def look(name: str) -> None:
        found = axe.run(page)
        for violation in found.response["violations"]:
            nodes = "; ".join(" ".join(map(str, n["target"])) for n in violation["nodes"][:3])
            faults.append(f"{name}: {violation['id']} ({nodes})")
        wide = page.evaluate("document.documentElement.scrollWidth")
        if wide > width:
            faults.append(f"{name}: {wide} pixels wide")

    if role == "rater":
        look("step I")
        page.get_by_role("button", name="Delicate D", exact=True).click()
        expect(page.get_by_text("How risky is it, as a whole?")).to_be_visible()
        look("step II")
        page.locator("button[value='risk:4']").click()
        expect(page.get_by_text("Which topics?")).to_be_visible()
        look("details")
    for path in LEAD if role == "lead" else RATER:
        page.goto(f"{lively.url}/{path}")
        look(path)
    if role == "lead":
        page.goto(f"{lively.url}/project")
        page.get_by_role("textbox", name="Name", exact=True).fill("Zoe")
        page.get_by_role("button", name="Make a link").click()
        look("link")
    page.goto(f"{lively.url}/invite/{lively.project.invite('Zoe')}")
    look("invite")
    assert faults == []


@pytest.mark.slow
def test_axe_would_see_it(lively: Running, visit: Callable[..., Page]) -> None:
    page = visit(lively, "Ann")
    picture = "<img src=/static/icon.svg>"
    page.evaluate(f"document.querySelector('.text').insertAdjacentHTML('afterend', '{picture}')")
    found = Axe().run(page).response["violations"]
    assert "image-alt" in {violation["id"] for violation in found}


def test_the_policy_stops_what_escaping_would_miss(lively: Running, browser: Browser) -> None:
    page = browser.new_context().new_page()
    page.goto(f"{lively.url}/invite/{lively.project.invite('Zed')}")
    with page.expect_console_message(lambda m: "Content Security Policy" in m.text):
        page.evaluate(
            "var s = document.createElement('script'); s.textContent = \"document.title='ran'\"; "
            "document.body.appendChild(s)"
        )
    assert page.title() != "ran"
    page.context.close()
