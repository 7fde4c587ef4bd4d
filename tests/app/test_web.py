"""The app over HTTP: roles, links, forged and doubled requests, results."""

from __future__ import annotations

import asyncio
import re
import socket
from collections.abc import Callable
from pathlib import Path

import httpx
import polars as pl
import pytest
from _filling import fill, project, rate, rater
from starlette.requests import Request

from conftest import Running, Visitor, field
from ombud.app.errors import AppError
from ombud.app.judging import open_round
from ombud.app.tables import ratings_table
from ombud.app.web.security import POLICY, Guesses
from ombud.app.web.server import _unexpected, open_site, open_socket
from ombud.audits import Audit, Plan
from ombud.worlds import small_world

Serving = Callable[..., Running]


@pytest.fixture
def app(tmp_path: Path, serving: Serving) -> Running:
    project(tmp_path / "p", 12, repeat_share=0).close()
    return serving(tmp_path / "p")


def test_from_invitation_to_rating_without_scripts(app: Running) -> None:
    token = app.project.invite("Anna")
    client = app.client()
    page = client.get(f"/invite/{token}")
    assert "Welcome, Anna" in page.text and "set-cookie" not in page.headers
    page = client.post(f"/invite/{token}")
    assert "Before you begin" in page.text
    cookie = page.history[0].headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    anna = Visitor(client, field(page.text, "csrf"))
    page = anna.post("/welcome")
    assert "Is this text delicate?" in page.text
    task = field(page.text, "assignment")
    page = anna.post("/rate", assignment=task, do="answer:delicate")
    assert "How risky is it" in page.text and field(page.text, "assignment") == task
    page = anna.post("/rate", assignment=task, do="risk:4")
    assert field(page.text, "assignment") not in {"", task}
    assert app.project.store.read(ratings_table)["risk"].to_list() == [4]


def test_two_tabs_store_one_rating(app: Running) -> None:
    anna = app.enter("Anna")
    task = anna.task()
    assert anna.click("answer:not delicate", task).status_code == 200
    again = anna.click("answer:not delicate", task)
    assert again.status_code == 200 and "That was stored already" in again.text
    other = anna.click("answer:cannot be judged", task)
    assert other.status_code == 409 and "That answer was kept" in other.text
    assert field(other.text, "assignment") not in {"", task}
    rows = app.project.store.read(ratings_table)
    assert rows["answer"].to_list() == ["not delicate"]


@pytest.mark.parametrize("token", ["", "x", "forged"])
def test_a_request_without_the_token_of_its_form_is_refused(app: Running, token: str) -> None:
    anna = app.enter("Anna")
    task = anna.task()
    anna.csrf = token
    reply = anna.click("answer:delicate", task)
    assert reply.status_code == 403 and "not from here" in reply.text
    assert app.project.store.read(ratings_table).height == 0


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "null"},
    ],
)
def test_a_request_from_another_site_is_refused(app: Running, headers: dict[str, str]) -> None:
    anna = app.enter("Anna")
    reply = anna.post("/rate", headers, do="skip", assignment=anna.task())
    assert reply.status_code == 403 and "another site" in reply.text


def test_another_host_name_is_refused(app: Running) -> None:
    reply = httpx.get(app.url, headers={"Host": "evil.example"})
    assert reply.status_code == 421


def test_a_long_body_is_refused(app: Running) -> None:
    anna = app.enter("Anna")
    assert anna.post("/rate", do="x" * 2_000_000).status_code == 413

    def chunks() -> object:
        for _ in range(40):
            yield b"a" * 50_000

    with pytest.raises((httpx.HTTPError, AssertionError)):
        reply = anna.client.post("/rate", content=chunks())  # type: ignore[arg-type]
        assert reply.status_code == 200


def test_every_page_carries_the_headers(app: Running) -> None:
    lead, anna = app.enter("Lea", "lead"), app.enter("Anna")
    pages = [anna.get(p) for p in ("/rate", "/guidelines", "/feedback", "/stop", "/welcome", "/no")]
    pages += [lead.get(p) for p in ("/project", "/agreement", "/review", "/adjudicate")]
    pages += [lead.get("/static/app.js"), lead.get("/export/ratings.csv")]
    for page in pages:
        assert page.headers["content-security-policy"] == POLICY
        assert page.headers["x-content-type-options"] == "nosniff"
        assert page.headers["cache-control"] == "no-store" or "static" in str(page.url)
        assert page.status_code == (404 if page.url.path == "/no" else 200)


def test_pages_have_no_inline_scripts_or_styles(app: Running) -> None:
    lead, anna = app.enter("Lea", "lead"), app.enter("Anna")
    html = "".join(anna.get(p).text for p in ("/rate", "/stop", "/welcome", "/guidelines"))
    html += "".join(lead.get(p).text for p in ("/project", "/agreement", "/review"))
    assert not re.search(
        r"<script(?! src=\"/static)|<style|\sstyle=|\son\w+=|https?://(?!127)", html
    )


def test_roles_see_their_own_pages_only(app: Running) -> None:
    lead, rita, anna = app.enter("Lea", "lead"), app.enter("Rita", "reviewer"), app.enter("Anna")
    may = {
        "/rate": (403, 403, 200),
        "/stop": (403, 403, 200),
        "/feedback": (403, 403, 200),
        "/review": (200, 200, 403),
        "/adjudicate": (200, 200, 403),
        "/agreement": (200, 200, 403),
        "/project": (200, 403, 403),
        "/export/labels.csv": (200, 403, 403),
        "/results": (400, 403, 403),
        "/guidelines": (200, 200, 200),
    }
    for path, wanted in may.items():
        assert tuple(v.get(path).status_code for v in (lead, rita, anna)) == wanted, path
        assert httpx.get(app.url + path).status_code == 401
    assert anna.post("/project", do="invite", name="Eve", role="lead").status_code == 403
    assert rita.post("/project", do="round:closed").status_code == 403


def test_guesses_are_limited(app: Running) -> None:
    for _ in range(10):
        assert httpx.get(f"{app.url}/invite/guess").status_code == 403
    reply = httpx.get(f"{app.url}/invite/guess")
    assert reply.status_code == 429 and int(reply.headers["retry-after"]) > 0
    good = app.project.invite("Anna")
    assert httpx.post(f"{app.url}/invite/{good}").status_code == 303
    same = f"{app.url}/invite/{good[:8]}"
    assert [httpx.get(f"{same}{i}").status_code for i in range(11)] == [403] * 10 + [429]
    assert httpx.get(f"{app.url}/invite/{good}").status_code == 429, "its beginning was guessed"


def test_many_bad_links_do_not_lock_out_good_ones(app: Running) -> None:
    good = app.project.invite("Anna")
    app.site.guesses = Guesses(in_all=20)
    seen = [httpx.get(f"{app.url}/invite/{i:08}bad").status_code for i in range(25)]
    assert seen == [403] * 19 + [429] * 6
    headers = {"x-forwarded-for": "1.2.3.4", "x-forwarded-host": "evil.example"}
    assert httpx.get(f"{app.url}/invite/{good}", headers=headers).status_code == 200
    assert httpx.post(f"{app.url}/invite/{good}").status_code == 303


def test_a_new_invitation_closes_old_sessions(app: Running) -> None:
    anna, ben = app.enter("Anna"), app.enter("Ben")
    assert anna.get("/rate").status_code == ben.get("/rate").status_code == 200
    app.project.invite("Anna")
    assert anna.get("/rate").status_code == 401
    assert ben.get("/rate").status_code == 200


@pytest.mark.parametrize(
    "host", ["[", "]", "[::1", "a[b]", "[v1.x]", "127.0.0.1:x", "²", "a b", "%", "@", "127.0.0.1/"]
)
def test_an_odd_host_is_no_failure_of_ours(app: Running, host: str) -> None:
    name, _, port = app.url.removeprefix("http://").partition(":")
    for extra in (b"", b"Origin: http://[\r\n", b"Origin: ]\r\n"):
        with socket.create_connection((name, int(port))) as line:
            head = b"POST / HTTP/1.1\r\nHost: " + host.encode() + b"\r\n"
            line.sendall(head + extra + b"Content-Length: 0\r\nConnection: close\r\n\r\n")
            status = int(line.recv(100).split(b" ")[1])
        assert 400 <= status < 500, (host, extra, status)


@pytest.mark.parametrize("length", ["\u00b2", "1e3", "-1", "+5", " 5", "9" * 23, "0x5", "1_0"])
def test_an_odd_length_is_no_failure_of_ours(app: Running, length: str) -> None:
    name, _, port = app.url.removeprefix("http://").partition(":")
    with socket.create_connection((name, int(port))) as line:
        head = f"POST / HTTP/1.1\r\nHost: {name}\r\nContent-Length: {length}\r\n"
        line.sendall(head.encode("latin-1") + b"Connection: close\r\n\r\nabcde")
        line.settimeout(60)
        assert 400 <= int(line.recv(100).split(b" ")[1]) < 500


@pytest.mark.parametrize(
    "number", ["²", "٣", "1" * 23, "-1", "1e3", "", "0x1", "1_0", "\x00", "nan"]
)
def test_odd_numbers_in_forms_are_no_failure_of_ours(app: Running, number: str) -> None:
    app.project.add_texts({"text": ["a", "b"]})
    anna, rita, lead = app.enter("Anna"), app.enter("Rita", "reviewer"), app.enter("Lea", "lead")
    assert anna.post("/rate", do="skip", assignment=number).status_code == 400
    assert lead.post("/project", do=f"revoke:{number}").status_code == 400
    assert rita.post("/review", do="accept", item=number).status_code == 400
    assert rita.post("/adjudicate", do="answer", item=number, risk=number).status_code == 400


def test_the_limit_ends() -> None:
    clock = [0.0]
    guesses = Guesses(limit=3, seconds=60, clock=lambda: clock[0])
    for at in (0, 10, 20):
        clock[0] = at
        assert guesses.wait("a") == 0
        guesses.failed("a")
    assert guesses.wait("a") == 40 and guesses.wait("b") == 0
    clock[0] = 60
    assert guesses.wait("a") == 0


def test_an_expired_link(app: Running) -> None:
    token = app.project.invite("Anna", hours=1)
    app.project.store.write(lambda db: db.execute("UPDATE invitations SET expires = 1"))
    reply = httpx.post(f"{app.url}/invite/{token}")
    assert reply.status_code == 403 and "not any more" in reply.text


def test_leaving_and_signing_out(app: Running) -> None:
    anna = app.enter("Anna")
    anna.task()
    page = anna.post("/stop", do="stop")
    assert "Stopped. Thank you." in page.text
    open_ = app.project.store.read(
        lambda db: db.execute("SELECT count(*) FROM assignments WHERE state = 'open'").fetchone()[0]
    )
    assert open_ == 0
    assert anna.task()
    page = anna.post("/stop", do="leave")
    assert "left the project" in page.text
    assert anna.get("/rate").status_code == 401
    ben = app.enter("Ben")
    assert "Signed out" in ben.post("/sign-out").text
    assert ben.get("/rate").status_code == 401


def test_the_lead_leads(app: Running) -> None:
    lead = app.enter("Lea", "lead")
    page = lead.post("/project", do="invite", name="Zoe", role="rater", days="3")
    link = re.search(r"http://[^\"]*/invite/[\w-]+", page.text)
    assert link and "Zoe" in page.text
    assert httpx.get(link[0]).status_code == 200
    again = lead.get("/project").text
    assert link[0] not in again
    page = lead.post(
        "/project", do="settings", ask_topics="1", raters_per_text="2", pass_mark="75",
        hours_per_day="1.5", support="Helpline | 116 123\nOffice",
    )  # fmt: skip
    settings = app.project.settings
    assert settings.ask_topics and not settings.ask_target and settings.raters_per_text == 2
    assert settings.hours_per_day == 1.5 and settings.pass_mark == 0.75
    assert [s.name for s in settings.support] == ["Helpline", "Office"]
    assert lead.post("/project", do="settings", raters_per_text="0").status_code == 400
    assert lead.post("/project", do="settings", raters_per_text="nan").status_code == 400
    lead.post("/project", do="guidelines", version="mine@2", markdown="# Mine\n\n<b>x</b>")
    page = app.enter("Anna").get("/rate")
    assert "version mine@2" in page.text and "&lt;b&gt;x" in page.text
    assert (
        "there already"
        in lead.post("/project", do="guidelines", version="mine@2", markdown="Other").text
    )
    lead.post("/project", do="round:closed")
    assert "This round is closed" in app.enter("Ben").get("/rate").text
    assert lead.post("/project", do="nonsense").status_code == 400
    zoe = app.project.store.read(
        lambda db: db.execute("SELECT id FROM people WHERE name='Zoe'").fetchone()[0]
    )
    lead.post("/project", do=f"revoke:{zoe}")
    assert httpx.get(link[0]).status_code == 403


def test_reviewing_and_deciding(tmp_path: Path, serving: Serving) -> None:
    made = project(tmp_path / "p", 1, review_share=1.0, repeat_share=0)
    for name, risk in (("a", 3), ("b", 5), ("c", 1)):
        rater(made, name)
        rate(made, name, risk)
    made.add_texts({"id": ["x"], "text": ["A pilot text."]}, round_="pilot")
    made.store.write(lambda db: open_round(db, "pilot"))
    rate(made, "a", 3)
    made.close()
    app = serving(tmp_path / "p")
    rita = app.enter("Rita", "reviewer")
    page = rita.get("/review")
    item = field(page.text, "item")
    assert "Would you accept this label?" in page.text
    assert rita.post("/review", item=item, do="reject").status_code == 400
    assert "Nothing waits" in rita.post("/review", item=item, do="reject", reason="It is 4.").text
    assert rita.post("/review", item=item, do="accept").status_code == 409
    page = rita.get("/adjudicate")
    item = field(page.text, "item")
    assert page.text.count('class="chip') == 3
    assert "Nothing waits" in rita.post("/adjudicate", item=item, do="delicate:4").text
    assert rita.post("/adjudicate", item=item, do="delicate:2").status_code == 409
    assert rita.post("/adjudicate", item="x", do="delicate:2").status_code == 400
    lead = app.enter("Lea", "lead")
    page = lead.post("/project", do="pass")
    assert "training: a" in page.text
    assert app.client().get("/adjudicate").status_code == 401


def test_hostile_texts_and_names_are_inert(tmp_path: Path, serving: Serving) -> None:
    bad = "<script>alert(1)</script>\u202e<img src=x onerror=alert(1)>"
    made = project(tmp_path / "p", 1, title=bad)
    made.add_texts({"id": [bad], "text": [bad], "topics": [""]})
    made.close()
    app = serving(tmp_path / "p")
    anna, lead = app.enter(bad), app.enter("Lea", "lead")
    for html in (anna.get("/rate").text, lead.get("/project").text, lead.get("/agreement").text):
        assert "<script>alert" not in html and "<img" not in html and "\u202e" not in html


def test_the_dashboard_shows_the_alphas(tmp_path: Path, serving: Serving) -> None:
    made = project(tmp_path / "p", 20, repeat_share=0.3, repeat_gap=2)
    fill(made, ("Anna", "Ben", "Chidi"))
    made.close()
    app = serving(tmp_path / "p")
    page = app.enter("Lea", "lead").get("/agreement").text
    assert "60 ratings of 20 texts" in page
    for words in ("Step I, delicate or not (nominal)", "Politics", "Chidi", "0.65"):
        assert words in page
    assert page.count('class="point"') == 5


def test_exports_arrive_as_files(tmp_path: Path, serving: Serving) -> None:
    made = project(tmp_path / "p", 6, repeat_share=0)
    fill(made, ("Anna", "Ben", "Chidi"))
    made.close()
    app = serving(tmp_path / "p")
    lead = app.enter("Lea", "lead")
    reply = lead.get("/export/ratings.parquet")
    assert reply.headers["content-disposition"] == 'attachment; filename="ratings.parquet"'
    assert pl.read_parquet(reply.content).height == 18
    assert lead.get("/export/..%2fannotation.sqlite").status_code in {400, 404}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("results")
    small_world(seed=2).write(folder / "data", 10)
    system = next((folder / "data" / "recommendations").iterdir())
    plan = Plan.from_dict(
        {
            "title": "Who is shown <b>what</b>?",
            "data": {
                name: str(folder / "data" / f"{name}.parquet")
                for name in ("interactions", "labels")
            },
            "systems": {"one": {"type": "recorded", "path": str(system)}},
            "metrics": [{"name": "label-share", "k": 10}],
        }
    )
    Audit.from_plan(plan).run(folder / "deep" / "monday")
    broken = folder / "broken"
    broken.mkdir()
    (broken / "provenance.json").write_text("{}")
    (folder / "deep" / "monday" / "report.html").write_text("<script>alert('planted')</script>")
    return folder


def test_results_are_listed_and_opened(results: Path, serving: Serving) -> None:
    app = serving(results)
    lead = app.enter("Lea", "lead")
    page = lead.get("/")
    assert page.url.path == "/results" and "Who is shown &lt;b&gt;what" in page.text
    assert "deep/monday" in page.text and "verdict.json is missing" in page.text
    key, broken = re.findall(r'href="/results/(\w+)"', page.text)
    refused = lead.get(f"/results/{broken}")
    assert refused.status_code == 400 and "estimates.json is missing" in refused.text
    report = lead.get(f"/results/{key}")
    assert report.status_code == 200 and "planted" not in report.text
    assert report.headers["content-security-policy"].startswith("sandbox allow-scripts")
    assert "sha256-" in report.text
    assert lead.get("/results/0123").status_code == 400
    assert lead.get("/rate").status_code == 403
    assert lead.get("/project").status_code == 400
    assert httpx.get(f"{app.url}/results/{key}").status_code == 401


def test_results_beside_a_project(results: Path, tmp_path: Path, serving: Serving) -> None:
    project(tmp_path / "p", 1).close()
    app = serving(tmp_path / "p", results=results)
    lead = app.enter("Lea", "lead")
    assert 'href="/results"' in lead.get("/project").text
    assert lead.get("/results").status_code == 200
    assert app.enter("Anna").get("/results").status_code == 403


def test_folders_with_nothing_to_show(tmp_path: Path) -> None:
    with pytest.raises(AppError, match="neither an annotation project nor results"):
        open_site(tmp_path)
    with pytest.raises(AppError, match="there is no folder"):
        open_site(tmp_path / "nowhere")


def test_a_port_that_is_taken(app: Running) -> None:
    port = int(app.url.rpartition(":")[2])
    with pytest.raises(AppError, match="Choose another with --port"):
        open_socket("127.0.0.1", port)


def test_a_full_disk_over_http(app: Running) -> None:
    anna = app.enter("Anna")
    task = anna.task()

    def limit(db: object) -> None:
        pages = db.execute("PRAGMA page_count").fetchone()[0]  # type: ignore[attr-defined]
        db.execute(f"PRAGMA max_page_count = {pages}")  # type: ignore[attr-defined]
        db.execute("CREATE TRIGGER big AFTER UPDATE ON assignments BEGIN "  # type: ignore[attr-defined]
                   "INSERT INTO meta VALUES ('big', zeroblob(100000) || ''); END")  # fmt: skip

    app.project.store.write(limit)
    reply = anna.click("answer:not delicate", task)
    assert reply.status_code == 507 and "What was confirmed before is kept" in reply.text
    app.project.store.write(lambda db: db.execute("DROP TRIGGER big"))
    assert app.project.store.read(ratings_table).height == 0
    assert anna.click("answer:not delicate", task).status_code == 200
    assert app.project.store.read(ratings_table).height == 1


def test_what_breaks_is_said_without_details() -> None:
    reply = asyncio.run(_unexpected(Request({"type": "http"}), ValueError("a secret path")))
    assert reply.status_code == 500 and reply.headers["content-security-policy"] == POLICY
    assert b"Something went wrong" in reply.body and b"secret" not in reply.body
