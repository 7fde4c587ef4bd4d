"""Hostile plans: a plan that works, with one thing changed -> what is said, and the exit code."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

PLAN = """
title = "Small"
seed = 1
by = ["gender"]
[data]
interactions = "interactions.csv"
labels = "labels.csv"
users = "users.csv"
texts = "texts.csv"
absent = "no"
[statistics]
replicates = 100
[systems.shop]
type = "recorded"
path = "shop.csv"
moderates = false
[[metrics]]
name = "share-gap"
k = 3
"""
SERVICE = (
    '[systems.words]\ntype = "http"\nmoderates = true\nscore_path = "score"\nthreshold = 0.5\n'
)


@pytest.fixture(scope="session")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the plan names."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(5)
    users, items = range(1, 31), range(1, 21)
    seen = {u: rng.choice(20, 8, replace=False) + 1 for u in users}
    rows = [f"{u},{i}\n" for u in users for i in seen[u]]
    (folder / "interactions.csv").write_text("user,item\n" + "".join(rows))
    tagged = [f"{i},{'violence' if i % 2 else 'spiders'}\n" for i in items if i % 3]
    (folder / "labels.csv").write_text("item,label\n" + "".join(tagged))
    (folder / "votes.csv").write_text("item,label,yes,no\n1,violence,3,1\n2,violence,0,4\n")
    groups = [f"{u},{'w' if u % 2 else 'm'}\n" for u in users]
    (folder / "users.csv").write_text("user,gender\n" + "".join(groups))
    lists = [
        f"{u},{i},{rank}\n"
        for u in users
        for rank, i in enumerate([i for i in items if i not in seen[u]][:3], 1)
    ]
    (folder / "shop.csv").write_text("user,item,rank\n" + "".join(lists))
    texts = [f"{t},{'zzz' if t % 3 else 'calm'} {t},{t % 2}\n" for t in range(30)]
    (folder / "texts.csv").write_text("id,text,label\n" + "".join(texts))
    (folder / "cut.skops").write_bytes(b"PK\x03\x04 cut short")
    (folder / "model.pkl").write_bytes(b"cos\nsystem\n(S'true'\ntR.")
    (folder / "terms.txt").write_bytes(b"\xff\xfe")
    return folder


# what is changed, into what, what is said, exit code
ROWS: list[tuple[str, str, str, int]] = [
    ("", "", "nothing is sent", 0),
    # no TOML, or too much of it
    (PLAN, "", "the plan names no data", 2),
    (PLAN, "title = ", "is not TOML", 2),
    (PLAN, "\0", "is not TOML", 2),
    (PLAN, "a = " + "[" * 5000, "is not TOML: maximum recursion", 2),
    (PLAN, "a." * 3000 + "b = 1", "the plan has no key 'a'", 2),
    ("seed = 1", "seed = " + "9" * 6000, "is not TOML", 2),
    ("seed = 1", "seed = 1\nseed = 2", "is not TOML", 2),
    ("[data]", "[data]\n[data]", "is not TOML", 2),
    # the plan's own keys
    ("seed = 1", "seed = -1", "seed: Input should be greater than or equal to 0", 2),
    ("seed = 1", "seed = 1.5", "seed: ", 2),
    ("seed = 1", 'seed = "one"', "seed: ", 2),
    ("seed = 1", "seed = true", "seed: Input should be a valid integer", 2),
    ("seed = 1", "seed = inf", "seed: ", 2),
    ("seed = 1", "seed = nan", "seed: ", 2),
    ("seed = 1", f"seed = {2**70}", "nothing is sent", 0),
    ("seed = 1", "sed = 1", "did you mean 'seed'?", 2),
    ("seed = 1", "schema_version = 99", "schema version 99", 2),
    ("seed = 1", "schema_version = 0", "schema_version: ", 2),
    ("seed = 1", "sample = 0", "sample: ", 2),
    ("seed = 1", "sample = inf", "sample: ", 2),
    ("seed = 1", "title2 = 1979-05-27", "did you mean 'title'?", 2),
    ('title = "Small"', "title = 5", "title: ", 2),
    ('title = "Small"', 'title = "\\u0000\\u001b[31m\\u202e"', "nothing is sent", 0),
    ('title = "Small"', 'title = "' + "x" * 100_000 + '"', "title: String should have at most 1000", 2),
    ('title = "Small"', 'preset = "warning"', "did you mean 'warnings'?", 2),
    ('title = "Small"', 'preset = "../../etc/passwd"', "no preset is called", 2),
    ('by = ["gender"]', 'by = ["gendre"]', "gendre", 2),
    ('by = ["gender"]', 'by = "gender"', "by: ", 2),
    ('by = ["gender"]', 'by_item = ["genre"]', "has no table of items", 2),
    ('by = ["gender"]', "by = []", "by = [] compares no groups", 2),
    ('by = ["gender"]', 'by = ["gender", "gender"]', "by: gender is named twice", 2),
    # [statistics]
    ("replicates = 100", "replicates = 0", "statistics.replicates: ", 2),
    ("replicates = 100", "replicates = 1000000000", "statistics.replicates: ", 2),
    ("replicates = 100", "level = nan", "statistics.level: ", 2),
    ("replicates = 100", "level = inf", "statistics.level: ", 2),
    ("replicates = 100", "level = 95", "statistics.level: ", 2),
    ("replicates = 100", "leval = 0.9", "did you mean 'level'?", 2),
    ("replicates = 100", 'interval = "exact"', "statistics.interval: ", 2),
    ("replicates = 100", "minimum = 1", "statistics.minimum: ", 2),
    ("replicates = 100", 'correction = "bonferoni"', "statistics.correction: ", 2),
    # [data]
    ('absent = "no"', 'absent = "no"\nthreshold = 0.2', "data.threshold: ", 2),
    ('absent = "no"', "threshold = nan", "data.threshold: ", 2),
    ('absent = "no"', "threshold = inf", "data.threshold: ", 2),
    ('absent = "no"', 'absent = "no"\nthreshold = 0.9', "threshold are about votes", 2),
    ('absent = "no"', 'threshold = "much"', "data.threshold: ", 2),
    ('labels = "labels.csv"', 'labels = "votes.csv"\nthreshold = 0.2', "data.threshold: ", 2),
    ('absent = "no"', 'absent = "maybe"', "data.absent: ", 2),
    ('absent = "no"', "", "the plan must state what a missing row means", 2),
    ('absent = "no"', 'absent = "no"\nrating_scale = [5, 1]', "data.rating_scale: the lowest rating", 2),
    ('absent = "no"', "rating_scale = [nan, 5]", "data.rating_scale", 2),
    ('absent = "no"', "rating_scale = [0, inf]", "data.rating_scale", 2),
    ('absent = "no"', "rating_scale = [1]", "data.rating_scale", 2),
    ('absent = "no"', 'absent = "no"\nrating_scale = [1, 5]', "there is no column 'rating'", 2),
    ('labels = "labels.csv"', 'label = "labels.csv"', "did you mean 'labels'?", 2),
    ('labels = "labels.csv"', 'labels = "gone.csv"', "there is no file", 2),
    ('labels = "labels.csv"', 'labels = "."', "are not read", 2),
    ('labels = "labels.csv"', 'labels = "/dev/zero"', "are not read", 2),
    ('labels = "labels.csv"', 'labels = "shop.csv"', "column 'label' is missing", 2),
    ('labels = "labels.csv"', 'labels = "a\\u0000b.csv"', "cannot be a path", 2),
    ('labels = "labels.csv"', 'labels = "' + "x" * 5000 + '.csv"', "there is no file", 2),
    ('labels = "labels.csv"', 'labels = "~nobody9/x.csv"', "cannot be a path", 2),
    ('labels = "labels.csv"', 'labels = ["labels.csv"]', "data.labels: ", 2),
    ('users = "users.csv"', 'users = "labels.csv"', "column 'user' is missing", 2),
    ("[data]", '[data]\nsource = "smal"', "did you mean 'small'?", 2),
    ("[data]", '[data]\nsource = "small"', "which a source does not use", 2),
    ("[data]", '[split]\nmethod = "nothing"\n[data]', "no split is called 'nothing'", 2),
    ("[data]", "[split]\nmetod = 5\n[data]", "does not take metod", 2),
    ("[data]", '[split]\nmethod = "per-user"\nshare = 7\n[data]', "share is 7", 2),
    # systems
    ("[systems.shop]", '[systems."../shop"]', "system names are letters", 2),
    ("[systems.shop]", '[systems."a\\u202eb"]', "system names are letters", 2),
    ("[systems.shop]", '[systems.""]', "system names are letters", 2),
    ("[systems.shop]", '[systems."CON.."]', "nothing is sent", 0),
    ('type = "recorded"', 'type = "recorder"', "did you mean 'recorded'", 2),
    ('type = "recorded"', "type = 5", "5", 2),
    ('type = "recorded"', 'type = ["recorded"]', "is called ['recorded']", 2),
    ('type = "recorded"', "", "has no type", 2),
    ('path = "shop.csv"', "", "it needs path", 2),
    ('path = "shop.csv"', "path = 5", "path: ", 2),
    ('path = "shop.csv"', 'path = "gone.csv"', "there is no file", 2),
    ('path = "shop.csv"', 'pth = "shop.csv"', "did you mean 'path'?", 2),
    ('path = "shop.csv"', 'path = "labels.csv"', "column 'user' is missing", 2),
    ("moderates = false", 'moderates = "no"', "moderates is 'no'; expected true or false", 2),
    ("moderates = false", "moderates = true", "the audit has none", 2),
    # metrics
    ("k = 3", "k = 0", "a list has at least 1 place", 2),
    ("k = 3", "k = -5", "a list has at least 1 place", 2),
    ("k = 3", "k = inf", "metrics.0.k: inf", 2),
    ("k = 3", "k = nan", "metrics.0.k: nan", 2),
    ("k = 3", f"k = {2**40}\n[systems.p]\ntype = \"popular\"", "nothing is sent", 0),
    ("k = 3", 'k = "three"', "share-gap", 2),
    ("k = 3", "kk = 3", "did you mean 'k'?", 2),
    ('name = "share-gap"', 'name = "share-gape"', "did you mean 'share-gap'", 2),
    ('name = "share-gap"', "nam = 5", "has no name", 2),
    ('name = "share-gap"', "name = 5", "the name of a metric is a word; found 5", 2),
    ('name = "share-gap"', 'name = ["share-gap"]', "the name of a metric is a word", 2),
    ("k = 3", 'k = 3\n[[metrics]]\nname = "share-gap"\nk = 3', "two metrics are called", 2),
    ("k = 3", 'k = 3\n[[analyses]]\nname = "nothing"', "no analysis is called", 2),
    ("k = 3", 'k = 3\n[options]\nx = 1', "[options] (x) are those of a preset", 2),
    ("[[metrics]]", "[metrics]", "metrics: ", 2),
    # moderators on this machine
    ("[[metrics]]", '[systems.words]\ntype = "keyword"\n[[metrics]]', "give terms, path or builtin", 2),
    ("[[metrics]]", '[systems.words]\ntype = "keyword"\npath = "terms.txt"\n[[metrics]]', "not UTF-8", 2),
    ("[[metrics]]", '[systems.words]\ntype = "keyword"\nbuiltin = "terms-nothing@1"\n[[metrics]]', "no term list is named", 2),
    ("[[metrics]]", '[systems.words]\ntype = "keyword"\nterms = "z"\n[[metrics]]', "terms: ", 2),
    ("[[metrics]]", '[systems.m]\ntype = "sklearn"\npath = "cut.skops"\n[[metrics]]', "cut.skops is damaged", 2),
    ("[[metrics]]", '[systems.m]\ntype = "sklearn"\npath = "gone.skops"\n[[metrics]]', "there is no file", 2),
    ("[[metrics]]", '[systems.m]\ntype = "sklearn"\npath = "model.pkl"\n[[metrics]]', "can run code", 2),
    # services: nothing of these may leave the machine
    ("[[metrics]]", SERVICE + 'base_url = "HTTP://example.org"\nkey_env = "HOME"\n[[metrics]]', "belongs to no known host", 2),
    ("[[metrics]]", SERVICE + 'base_url = "ftp://example.org"\n[[metrics]]', "must begin with https://", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://user:pw@example.org"\n[[metrics]]', "must not hold a user name or password", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org/?api_key=abc"\n[[metrics]]', "may hold a key, in api_key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://exam ple.org"\n[[metrics]]', "holds spaces", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://[::1"\n[[metrics]]', "Invalid IPv6", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org:99999"\n[[metrics]]', "Port out of range", 2),
    ("[[metrics]]", SERVICE + 'base_url = "http://169.254.169.254"\nkey_env = "HOME"\n[[metrics]]', "belongs to no known host", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {api-key = "abc"}\n[[metrics]]', "may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-Goog-Api-Key = "abc"}\n[[metrics]]', "may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org/bot1234567890:AAF-abcdefghijklmnopqrstuvwxyz0123/"\n[[metrics]]', "the path of the address of example.org may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org/v1/0a1b2c3d4e5f60718293a4b5c6d7e8f9"\n[[metrics]]', "the path of the address of example.org may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org/%74oken/abcdefgh1"\n[[metrics]]', "the path of the address of example.org may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-Accesstoken = "abc"}\n[[metrics]]', "may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-Team = "0a1b2c3d4e5f60718293a4b5"}\n[[metrics]]', "may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-Team = "dXNlcjpwYXNzd29yZA=="}\n[[metrics]]', "may hold a key", 2),
    ("[[metrics]]", '[systems.far]\ntype = "http"\nmoderates = false\nurl = "https://example.org/sk-0123456789abcdef/lists"\n[[metrics]]', "the path of the address of example.org may hold a key", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-A = "caf\u00e9"}\n[[metrics]]', "X-A", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {X-A = "a\\r\\nB: c"}\n[[metrics]]', "X-A", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nheaders_sent = {"X A" = "a"}\n[[metrics]]', "X A", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\ntemplate = {text = "x"}\n[[metrics]]', "does not hold {text}", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nrun = {concurrency = 0}\n[[metrics]]', "concurrency", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nrun = {timeout = inf}\n[[metrics]]', "systems.words.run.timeout: inf", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nrun = {retrys = 1}\n[[metrics]]', "run.retrys: Unexpected keyword argument (found 1); did you mean 'retries'?", 2),
    ("[[metrics]]", SERVICE.replace("0.5", "nan") + 'base_url = "https://example.org"\n[[metrics]]', "threshold", 2),
    ("[[metrics]]", SERVICE + 'base_url = "https://example.org"\nkey_env = "NOT_THERE_9"\n[[metrics]]', "NOT_THERE_9", 2),
    ("[[metrics]]", '[systems.far]\ntype = "http"\nmoderates = false\nurl = "https://example.org"\nbatch = 0\n[[metrics]]', "batch is 0", 2),
    ("[[metrics]]", '[systems.far]\ntype = "http"\nmoderates = false\nurl = "https://example.org"\nwait = nan\n[[metrics]]', "wait", 2),
    ("[[metrics]]", '[systems.far]\ntype = "http"\nmoderates = false\nurl = "https://example.org"\ntimeout = -1\n[[metrics]]', "timeout", 2),
    ("[[metrics]]", '[systems.far]\ntype = "http"\nmoderates = false\nurl = "javascript:alert(1)"\n[[metrics]]', "must begin with https://", 2),
    # models
    ("[[metrics]]", '[systems.m]\ntype = "implicit-als"\nfactors = 0\n[[metrics]]', "factors is 0", 2),
    ("[[metrics]]", '[systems.m]\ntype = "implicit-als"\nregularization = nan\n[[metrics]]', "systems.m.regularization: nan", 2),
    ("[[metrics]]", '[systems.m]\ntype = "item-knn"\nneighbours = 0\n[[metrics]]', "neighbours is 0", 2),
    ("[[metrics]]", '[systems.m]\ntype = "item-knn"\nneighbors = 5\n[[metrics]]', "did you mean 'neighbours'", 2),
    ("[[metrics]]", '[systems.m]\ntype = "popular"\nsed = 1\n[[metrics]]', "it does not take sed", 2),
]  # fmt: skip


@pytest.mark.parametrize(
    ("old", "new", "said", "code"),
    ROWS,
    ids=[f"{i:03d} {new[:30]!r}" for i, (_, new, _, _) in enumerate(ROWS)],
)
def test_a_hostile_plan(
    old: str, new: str, said: str, code: int, told: Any, tables: Path, tmp_path: Path
) -> None:
    assert old in PLAN
    for file in tables.iterdir():
        (tmp_path / file.name).symlink_to(file)
    (tmp_path / "plan.toml").write_text(PLAN.replace(old, new, 1) if old else PLAN)
    words = ("run", "plan.toml", "--folder", "result")
    # A plan without fault need not be run, and its report need not be written.
    assert said in told(*words, *(["--dry-run"] if code == 0 else []), code=code)
