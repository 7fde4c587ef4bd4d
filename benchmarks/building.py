"""Building ML-DDD and AO3 from files in the published formats: time, peak memory, and pandas.

    python benchmarks/building.py            full size: 25 million ratings, 46 million kudos
    python benchmarks/building.py --quick    about a minute

The files are generated (nothing real is in them) in exactly the published formats and sizes. Every
case runs in a process of its own. The peer is the plain way: `pandas.read_csv`, `pickle.load`, a
Python loop over votes, and `value_counts` with `isin` until nothing changes; it runs at the quick
size only, since it needs many times the memory.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import _published_formats as formats
from _isolated import finish, main_of_case, measure

FULL = {
    "users": 162_541,
    "movies": 59_047,
    "ratings": 25_000_095,
    "voted": 34_000,
    "readers": 1_304_303,
    "works": 306_111,
    "kudos": 45_936_871,
}
QUICK = {
    "users": 8_000,
    "movies": 6_000,
    "ratings": 1_000_000,
    "voted": 3_500,
    "readers": 40_000,
    "works": 12_000,
    "kudos": 1_500_000,
}


def generate(options: Mapping[str, Any]) -> dict[str, Any]:
    folder = Path(options["folder"])
    ids = formats.write_movielens_zip(
        folder / "ml-25m.zip",
        users=options["users"],
        movies=options["movies"],
        ratings=options["ratings"],
    )
    formats.write_votes(folder / "ddd_dict.pkl", ids, voted=options["voted"])
    formats.write_ao3(
        folder, users=options["readers"], works=options["works"], kudos=options["kudos"]
    )
    return {"bytes": sum(p.stat().st_size for p in folder.iterdir())}


def _built(data: Any, folder: Path, name: str) -> dict[str, Any]:
    from ombud.data.sources._build import write_dataset

    write_dataset(data, folder / name)
    facts = data.card.facts
    keys = ("users", "interactions", "labels", "filter_passes", "clear_yes", "applied")
    return {key: facts[key] for key in keys if key in facts}


def ml_ddd_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.data.sources.ml_ddd import build_ml_ddd

    folder = Path(options["folder"])
    data = build_ml_ddd(folder / "ml-25m.zip", folder / "ddd_dict.pkl", scratch=folder)
    return _built(data, folder, "ml-ddd")


def ao3_ombud(options: Mapping[str, Any]) -> dict[str, Any]:
    from ombud.data.sources.ao3 import build_ao3

    folder = Path(options["folder"])
    tables = (folder / f"ao3_{name}_table.csv" for name in ("sensitivity", "interaction"))
    return _built(build_ao3(*tables, scratch=folder), folder, "ao3")


def _core_pandas(table: Any, works: set[int]) -> Any:
    """Filter with value_counts until nothing changes, as the published code does three times."""
    while True:
        before = len(table)
        users = table["user_id"].value_counts()
        table = table[table["user_id"].isin(users[users >= 3].index)]
        counts = table["work_id"].value_counts()
        kept = counts[counts >= 3].index
        table = table[table["work_id"].isin(kept) & table["work_id"].isin(works)]
        if len(table) == before:
            return table


def ml_ddd_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pickle
    import zipfile

    import pandas as pd

    folder = Path(options["folder"])
    with (
        zipfile.ZipFile(folder / "ml-25m.zip") as archive,
        archive.open("ml-25m/ratings.csv") as file,
    ):
        ratings = pd.read_csv(file)
    # The file was written by this benchmark a moment ago.
    votes = pickle.loads((folder / "ddd_dict.pkl").read_bytes())  # noqa: S301
    status: dict[int, dict[str, int]] = {}
    for warning, movies in votes.items():
        for movie, pair in movies.items():
            total = pair["yesSum"] + pair["noSum"]
            yes = total > 0 and pair["yesSum"] >= 0.75 * total
            no = total > 0 and pair["noSum"] >= 0.75 * total
            status.setdefault(movie, {})[warning] = 1 if yes else 0 if no else -1 if total else -2
    table = pd.DataFrame(status).T
    ratings = ratings.rename(columns={"userId": "user_id", "movieId": "work_id"})
    kept = _core_pandas(ratings, set(table.index))
    table = table.loc[sorted(set(kept["work_id"]))]
    kept.to_parquet(folder / "pandas-interactions.parquet")
    table.to_parquet(folder / "pandas-labels.parquet")
    return {"users": int(kept["user_id"].nunique()), "interactions": len(kept)}


def ao3_pandas(options: Mapping[str, Any]) -> dict[str, Any]:
    import pandas as pd

    folder = Path(options["folder"])
    table = pd.read_csv(folder / "ao3_sensitivity_table.csv").iloc[:, 1:]
    kudos = pd.read_csv(folder / "ao3_interaction_table.csv").iloc[:, 1:]
    kept = _core_pandas(kudos, set(table["work_id"]))
    names = {user: n for n, user in enumerate(kept["user_id"].sample(frac=1).unique())}
    kept = kept.assign(user_id=kept["user_id"].map(names))
    kept.to_parquet(folder / "pandas-kudos.parquet")
    table.drop(columns="users").to_parquet(folder / "pandas-works.parquet")
    return {"users": int(kept["user_id"].nunique()), "interactions": len(kept)}


CASES = {
    "generate": generate,
    "ml_ddd_ombud": ml_ddd_ombud,
    "ao3_ombud": ao3_ombud,
    "ml_ddd_pandas": ml_ddd_pandas,
    "ao3_pandas": ao3_pandas,
}


def run(sizes: Mapping[str, int], peers: bool) -> dict[str, float]:
    figures: dict[str, float] = {}
    folder = Path(tempfile.mkdtemp(prefix="ombud-building-"))
    try:
        options = {"folder": str(folder), **sizes}
        made = measure(__file__, "generate", options)
        print(f"  files of {made['bytes'] / 1e9:.2f} GB")
        for name in ("ml_ddd", "ao3"):
            ours = measure(__file__, f"{name}_ombud", options)
            words = {key: value for key, value in ours.items() if key not in {"cpu", "mib"}}
            print(f"    {words}")
            figures |= {f"{name}_cpu_seconds": ours["cpu"], f"{name}_peak_mib": ours["mib"]}
            if peers:
                theirs = measure(__file__, f"{name}_pandas", options)
                same = all(ours[key] == theirs[key] for key in ("users", "interactions"))
                if not same:
                    raise RuntimeError(f"{name}: pandas and ombud keep different rows")
                figures[f"{name}_vs_pandas"] = theirs["cpu"] / ours["cpu"]
                figures[f"{name}_memory_vs_pandas"] = theirs["mib"] / ours["mib"]
    finally:
        shutil.rmtree(folder)
    return figures


def main() -> None:
    if len(sys.argv) > 1 and sys.argv[1] == "--case":
        main_of_case(CASES)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="about a minute")
    quick = parser.parse_args().quick
    finish("building", run(QUICK if quick else FULL, peers=quick))


if __name__ == "__main__":
    main()
