"""Runs without a service that are killed at random moments: what they give is what it would be.

`tests/http/test_kills.py` does the same for systems behind HTTP. Each run is a process of its own,
forked from one that has the imports behind it. The suite kills each kind a few times;
``OMBUD_SLOW=1`` (``make test-all``) thirty times.
"""

from __future__ import annotations

import importlib.util
import json
import multiprocessing
import os
import runpy
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from http.server import ThreadingHTTPServer
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import polars as pl
import pytest

from ombud.files import hash_file

THIRTY = pytest.param(30, marks=pytest.mark.slow)
KILLS = [2, THIRTY]
SERVER = multiprocessing.get_context("forkserver")


def log(folder: Path, word: object) -> None:
    """Note a piece of work where a kill does not lose it."""
    handle = os.open(folder / "work.txt", os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(handle, f"{word}\n".encode())
    os.close(handle)


def work(folder: Path) -> Counter[str]:
    path = folder / "work.txt"
    return Counter(path.read_text().split()) if path.exists() else Counter()


def files_of(folder: Path) -> dict[str, str]:
    return {str(p.relative_to(folder)): hash_file(p) for p in folder.rglob("*") if p.is_file()}


# What is run, each in a folder that holds its output as "out" and "work.txt".


def audit(folder: Path) -> None:
    """Users in parts, in the order of the data."""
    from ombud.audits import Audit, collect
    from ombud.audits.plan import StatisticsPlan
    from ombud.data import Recommendations
    from ombud.metrics import LabelShare, ShareGap
    from ombud.worlds import small_world

    collect.CHUNK = 5
    world = small_world(seed=3)
    inner = world.recommenders()[0]

    class Slow:
        name = "slow"

        def recommend(self, users: Any, n: int, exclude_seen: bool = True) -> Recommendations:
            for user in users:
                log(folder, user)
            time.sleep(0.01)
            return inner.recommend(users, n)

    metrics = [ShareGap(k=5), LabelShare(k=5)]
    Audit(world.dataset, [Slow()], metrics, statistics=StatisticsPlan(replicates=100)).run(
        folder / "out"
    )  # type: ignore[list-item]


def audited(folder: Path) -> Any:
    from ombud.audits import Result

    result = Result.load(folder / "out")
    outputs = files_of(folder / "out" / "outputs")
    return result.estimates, result.exclusions, outputs


def watching(folder: Path) -> None:
    """Three audits one after the other, and the control charts of their series."""
    from ombud.audits import Audit, collect
    from ombud.audits.monitor import watch
    from ombud.audits.plan import StatisticsPlan
    from ombud.data import Recommendations
    from ombud.files import write_json
    from ombud.metrics import LabelShare
    from ombud.worlds import small_world

    collect.CHUNK = 5
    world = small_world(seed=3)

    class Logged:
        name = "slow"

        def __init__(self, day: int) -> None:
            self.day, self.inner = day, world.recommenders()[day % 2]

        def recommend(self, users: Any, n: int, exclude_seen: bool = True) -> Recommendations:
            for user in users:
                log(folder, f"{self.day}-{user}")
            return self.inner.recommend(users, n)

    for day in range(3):
        systems: Any = [Logged(day)]
        quick = StatisticsPlan(replicates=100)
        Audit(world.dataset, systems, [LabelShare(k=5)], statistics=quick).run(
            folder / "out" / f"day{day}"
        )
    found = watch(folder / "out")
    write_json(folder / "out" / "watch.json", {"charts": list(map(repr, found.charts))})


def watched(folder: Path) -> Any:
    return json.loads((folder / "out" / "watch.json").read_text())


def training(folder: Path) -> None:
    """Detectors, each trained and saved once."""
    from ombud.systems.detectors import Head, NgramDetector

    texts = [f"{'bad' if n % 2 else 'good'} words in number {n}" for n in range(200)]
    for number in range(40):
        place = folder / "out" / f"d{number}"
        if not place.exists():
            log(folder, f"d{number}")
            detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
            detector.fit(texts[: 100 + number], np.arange(100 + number) % 2)
            detector.save(place)


def trained(folder: Path) -> Any:
    return {k: v for k, v in files_of(folder / "out").items() if k.endswith("weights.npz")}


def tuning(folder: Path) -> None:
    """Trials, each named by its parameters."""
    from ombud import registry
    from ombud.data import Interactions
    from ombud.systems.recommenders import Popular
    from ombud.tuning.tuning import tune

    class Logged(Popular):
        def fit(self, data: Interactions) -> Any:
            log(folder, f"{self.damping:.12g}")
            time.sleep(0.01)
            return super().fit(data)

    registry._things["recommender"]["popular"] = Logged
    rng = np.random.default_rng(0)
    users, items = np.nonzero(rng.random((40, 25)) < 0.5)
    data = Interactions.from_arrays(users, items, rng.integers(1, 6, len(users)))
    space = {"damping": {"low": 0.0, "high": 50.0}}
    tune("popular", data, metric="recall@5", space=space, trials=60, window=1000,
         folder=folder / "out")  # fmt: skip


def tuned(folder: Path) -> Any:
    found = json.loads((folder / "out" / "tuned.json").read_text())
    return {name: found[name] for name in ("best", "value")}


def questions(folder: Path, in_flight: str = "leave") -> list[Any]:
    """Histories that a black box is asked about, two at a time."""
    from ombud.data.ids import Vocabulary
    from ombud.probes import FunctionSystem, History
    from ombud.probes.blackbox.questions import Questions

    def answer(history: Any, n: int) -> list[int]:
        log(folder, "-".join(map(str, sorted(history))))
        time.sleep(0.004)
        return sorted(set(range(100, 130)) - set(history))[:n]

    catalogue = Vocabulary(np.arange(100, 130))
    asked = Questions(
        FunctionSystem(answer), catalogue, 5, cache=folder / "out", parallel=2,
        in_flight=in_flight,  # type: ignore[arg-type]
    )  # fmt: skip
    histories = [History.of([i, j]) for i in range(25) for j in range(i)]
    answers = asked.ask(histories)
    asked.close()
    return [None if a is None else a.tolist() for a in answers]


def link(folder: Path) -> None:
    from ombud.link import build_links

    editions, authors = [], []
    for n in range(300):
        edition = {
            "key": f"/b/{n}",
            "isbn_13": [f"97800000{n:05d}"],
            "authors": [{"key": f"/a/{n % 50}"}],
        }
        editions.append(f"/type/edition\t/b/{n}\t1\tx\t{json.dumps(edition)}")
    for n in range(50):
        name = {"key": f"/a/{n}", "name": f"Name{n} Surname"}
        authors.append(f"/type/author\t/a/{n}\t1\tx\t{json.dumps(name)}")
    (folder / "dump.txt").write_text("\n".join([*editions, *authors]))
    rows = [f"Name{n} Surname,{'female' if n % 2 else 'male'},,,{n},p{n}" for n in range(50)]
    (folder / "people.csv").write_text("\n".join(["name,gender,start,end,viaf,id", *rows]))
    inputs = [("openlibrary", folder / "dump.txt"), ("people", folder / "people.csv")]
    build_links(inputs, folder / "out", overwrite=True)


def source(folder: Path) -> None:
    from ombud.text.sourcing import Sourcing, source_texts, write_sourced

    with (folder / "corpus.txt").open("w") as out:
        for n in range(3000):
            out.write(f"Sentence number {n} about an old man and the war of {n % 90}.\n\n")
    found = source_texts([folder / "corpus.txt"], settings=Sourcing(size=50))
    write_sourced(folder / "out", found)


def score(folder: Path) -> None:
    from ombud.systems.detectors import Head, NgramDetector
    from ombud.systems.detectors.scoring import score_files

    texts = [f"{'bad' if n % 2 else 'good'} words in number {n}" for n in range(200)]
    detector = NgramDetector(head=Head(kind="binary", classes=2, cut=1))
    detector.fit(texts, np.arange(200) % 2)
    pl.DataFrame({"text": texts * 20}).write_ndjson(folder / "texts.jsonl")
    (folder / "out").mkdir(exist_ok=True)
    score_files(detector, [folder / "texts.jsonl"], folder / "out" / "scores.parquet")


def data_set(folder: Path) -> None:
    from ombud.data.sources._build import write_dataset
    from ombud.worlds import small_world

    write_dataset(small_world(seed=3).dataset, folder / "out", replace=True)


def plan(folder: Path) -> None:
    """The command itself: train, ask, measure, report."""
    from ombud.audits import Audit, Plan
    from ombud.report import Report
    from ombud.worlds import small_world

    if not (folder / "plan.toml").exists():
        files = small_world(seed=3).write(folder, 10)
        names = {n: files[n].name for n in ("interactions", "labels", "users")}
        systems = {
            "mine": {"type": "recorded", "path": "recommendations/neutral.parquet"},
            "popular": {"type": "popular"},
        }
        metrics = [{"name": "share-gap", "k": 10}]
        content = {"title": "T", "data": names, "systems": systems, "metrics": metrics}
        made = Plan.from_dict(content | {"statistics": {"replicates": 100}})
        (folder / "part").write_text(made.to_toml())
        (folder / "part").replace(folder / "plan.toml")
    result = Audit.from_plan(Plan.load(folder / "plan.toml")).run(folder / "out")
    Report(result).save(folder / "out" / "report.html")


def planned(folder: Path) -> Any:
    assert (folder / "out" / "report.html").read_text().rstrip().endswith("</html>")
    return audited(folder)


def download(folder: Path, url: str) -> None:
    from ombud.http.download import RemoteFile, fetch

    fetch(RemoteFile(url, "file.zip"), folder / "out")


def titles(folder: Path, url: str) -> None:
    from ombud.data.sources.ddd_api import KEY_VARIABLE, collect

    os.environ[KEY_VARIABLE] = "not-a-real-key"
    (folder / "out").mkdir(exist_ok=True)
    numbers = list(range(1, 61))
    links = pl.DataFrame({"item": numbers, "imdb": numbers, "tmdb": numbers})
    collect(links, folder / "out" / "ddd.sqlite", address=url, per_second=100_000)


RUNS: dict[str, Callable[..., Any]] = {
    run.__name__: run
    for run in (
        audit,
        watching,
        training,
        tuning,
        questions,
        link,
        source,
        score,
        data_set,
        plan,
        download,
        titles,
    )
}


def start(kind: str, folder: Path, *args: str) -> Any:
    given = {"KIND": kind, "FOLDER": folder, "ARGS": args}
    folder.mkdir(exist_ok=True)
    child = SERVER.Process(target=runpy.run_path, args=(__file__, given, "killed"))
    child.start()
    return child


def run(kind: str, folder: Path, *args: str) -> float:
    """Run to the end; return how long that takes."""
    before = time.monotonic()
    child = start(kind, folder, *args)
    child.join()
    assert child.exitcode == 0
    return time.monotonic() - before


def kill_at(child: Any, reached: Callable[[], bool], pause: float) -> bool:
    """Kill a run a moment after it got so far; tell whether it was still running."""
    deadline = time.monotonic() + 600
    while not reached() and child.is_alive():
        assert time.monotonic() < deadline
        time.sleep(0.0005)
    time.sleep(pause)
    child.kill()
    child.join()
    assert child.exitcode in {0, -9}
    return bool(child.exitcode == -9)


def told(kind: str, kills: int, again: int = 0, of: int = 0, more: str = "") -> None:
    """Print the count (pytest -s)."""
    print(f"{kind}: {kills} kills, {again} of {of} pieces of work done again {more}")  # noqa: T201


def every(kinds: dict[str, Any]) -> list[Any]:
    return [pytest.param(kind, 30, marks=pytest.mark.slow) for kind in sorted(kinds)]


@dataclass(frozen=True)
class Resumed:
    """What a run gives, and how many pieces of work a kill may cost."""

    found: Callable[[Path], Any]
    again: int


RESUMED = {
    "audit": Resumed(audited, 5),
    "tuning": Resumed(tuned, 1),
    "training": Resumed(trained, 1),
    "watching": Resumed(watched, 5),
}
FEW = [("audit", 2), ("training", 3), ("watching", 3)]


@pytest.mark.parametrize(("kind", "kills"), [*FEW, *every(RESUMED)])
def test_what_was_done_is_not_done_again(kind: str, kills: int, tmp_path: Path) -> None:
    run(kind, tmp_path / "whole")
    whole = work(tmp_path / "whole")
    folder, rng = tmp_path / "killed", np.random.default_rng(kills)
    share = whole.total() // (kills + 1)
    for _ in range(kills):
        more = work(folder).total() + int(rng.integers(1, max(2, share)))
        child = start(kind, folder)
        reached = partial(lambda wanted: work(folder).total() >= wanted, more)
        assert kill_at(child, reached, float(rng.uniform(0, 0.02))), "the kills came too late"
    run(kind, folder)
    assert RESUMED[kind].found(folder) == RESUMED[kind].found(tmp_path / "whole")
    again = work(folder) - whole
    told(kind, kills, again.total(), whole.total())
    assert not whole - work(folder) and again.total() <= kills * RESUMED[kind].again
    assert not list(folder.rglob("*.part"))


@pytest.mark.parametrize("kills", KILLS)
def test_a_black_box_is_asked_nothing_twice(kills: int, tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    expected = questions(tmp_path / "whole")
    folder, rng = tmp_path / "killed", np.random.default_rng(kills)
    for _ in range(kills):
        more = work(folder).total() + int(rng.integers(1, len(expected) // (kills + 1)))
        child = start("questions", folder)
        reached = partial(lambda wanted: work(folder).total() >= wanted, more)
        assert kill_at(child, reached, float(rng.uniform(0, 0.01)))
    found = questions(folder)
    assert max(work(folder).values()) == 1, "a question was asked twice"
    lost = [n for n, answer in enumerate(found) if answer is None]
    told("questions", kills, 0, len(expected), f"{len(lost)} in flight")
    assert len(lost) <= 2 * kills
    assert [e for e, a in zip(expected, found, strict=True) if a is not None] == [
        a for a in found if a is not None
    ]
    before = work(folder)
    assert questions(folder, "ask") == expected
    assert (work(folder) - before).total() == len(lost)


WHOLE = {
    "link": lambda folder: files_of(folder / "out"),
    "source": lambda folder: files_of(folder / "out"),
    "score": lambda folder: files_of(folder / "out"),
    "data_set": lambda folder: files_of(folder / "out"),
    "plan": planned,
}


@pytest.mark.parametrize(("kind", "kills"), [("data_set", 2), *every(WHOLE)])
def test_the_output_is_whole_or_not_there(kind: str, kills: int, tmp_path: Path) -> None:
    run(kind, tmp_path / "first")  # compiles and caches what the next is not to wait for
    lasts = run(kind, tmp_path / "whole")
    expected = WHOLE[kind](tmp_path / "whole")
    folder, rng = tmp_path / "killed", np.random.default_rng(kills)
    killed = 0
    for _ in range(20 * kills):
        child = start(kind, folder)
        killed += kill_at(child, lambda: True, float(rng.uniform(0, lasts)))
        if kind != "plan":
            there = {
                k: v for k, v in WHOLE[kind](folder).items() if not Path(k).name.startswith(".")
            }
            assert all(expected[name] == content for name, content in there.items())
        if killed == kills:
            break
    assert killed == kills
    told(kind, kills)
    run(kind, folder)
    assert WHOLE[kind](folder) == expected
    left = [p for p in folder.rglob(".*") if p.suffix in {".part", ".old"}]
    assert not left


def neighbour(path: str) -> ModuleType:
    file = Path(__file__).parent / path
    spec = importlib.util.spec_from_file_location(file.stem, file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def serve() -> Iterator[Callable[[Any], str]]:
    running: list[tuple[ThreadingHTTPServer, threading.Thread]] = []

    def make(handler: Any) -> str:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        server.daemon_threads = True
        server.handle_error = lambda *_: None  # type: ignore[method-assign, assignment]
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        running.append((server, thread))
        return f"http://127.0.0.1:{server.server_port}"

    yield make
    for server, thread in running:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("kills", KILLS)
def test_a_download_goes_on_where_it_was(
    kills: int, serve: Callable[[Any], str], tmp_path: Path
) -> None:
    module = neighbour("http/test_download.py")
    state = module.Server()
    state.content = np.random.default_rng(1).bytes(60_000_000 if kills > 3 else 6_000_000)
    state.slow = 0.005
    url = serve(module.handler(state)) + "/file.zip"
    folder, rng = tmp_path / "killed", np.random.default_rng(kills)
    part = folder / "out" / "file.zip.part"
    share = len(state.content) // (kills + 1)

    def size() -> int:
        return part.stat().st_size if part.exists() else 0

    for _ in range(kills):
        more = size() + int(rng.integers(1, share))
        child = start("download", folder, url)
        reached = partial(lambda wanted: size() >= wanted, more)
        assert kill_at(child, reached, float(rng.uniform(0, 0.01)))
        assert not (folder / "out" / "file.zip").exists()
        asked = state.asked[-1].get("range", "")
        kept = size()
    run("download", folder, url)
    assert (folder / "out" / "file.zip").read_bytes() == state.content
    starts = [int(a.get("range", "bytes=0-")[6:-1]) for a in state.asked]
    assert starts == sorted(starts) and starts[-1] == kept and len(starts) == kills + 1
    assert asked != state.asked[-1]["range"]
    told("download", kills, 0, len(state.content))


@pytest.mark.parametrize("kills", [THIRTY])
def test_titles_are_asked_for_once(kills: int, serve: Callable[[Any], str], tmp_path: Path) -> None:
    module = neighbour("data/sources/test_ddd_api.py")
    stub = module.Stub(60)
    stub.latency = 0.002
    url = serve(module.handler(stub))
    run("titles", tmp_path / "whole", url)
    expected = list(module.cached_answers(tmp_path / "whole" / "out" / "ddd.sqlite"))
    whole = Counter(stub.asked)
    stub.asked.clear()
    folder, rng = tmp_path / "killed", np.random.default_rng(kills)
    for _ in range(kills):
        more = stub.asked.total() + int(rng.integers(1, whole.total() // (kills + 1)))
        child = start("titles", folder, url)
        reached = partial(lambda wanted: stub.asked.total() >= wanted, more)
        assert kill_at(child, reached, float(rng.uniform(0, 0.005)))
    run("titles", folder, url)
    assert list(module.cached_answers(folder / "out" / "ddd.sqlite")) == expected
    again = stub.asked - whole
    told("titles", kills, again.total(), whole.total())
    assert not whole - stub.asked and again.total() <= kills


if __name__ == "killed":
    RUNS[globals()["KIND"]](globals()["FOLDER"], *globals()["ARGS"])
