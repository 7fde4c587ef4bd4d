"""Calibration of the propagation model: posterior mass in intervals, and ranks of the truth.

    python benchmarks/propagation_calibration.py run calibration.jsonl --sets 1000 --mass 30
    python benchmarks/propagation_calibration.py run others.jsonl --sets 210 --seed 7
    python benchmarks/propagation_calibration.py show calibration.jsonl --plot ranks.html

Parameters are drawn from the priors that the fit assumes, data from its likelihood. Every line of
the output is one set. A run can be stopped and resumed: it skips sets that are in the file.
Regimes take turns, so that an unfinished run has about as many sets of each.

Every set has *ranks* (simulation-based calibration): the share of draws below the truth is
uniform. Sets may be selected or refused by their data: given the data the rank is uniform.

The first sets of each regime also have the *mass* of the posterior in each 90% interval. Its mean
over sets is the coverage of the interval, with a tenth of the noise of counting how often it holds
the truth. The posterior is sampled a second time for it: importance sampling from a wide Student t
in coordinates other than those of the fit, with every integral taken anew at every point, with more
nodes, and without polynomials.
"""

from __future__ import annotations

import argparse
import json
import time
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from scipy.special import logsumexp

from ombud.questions.authors.model._counts import Counts
from ombud.questions.authors.model._importance import smooth_weights
from ombud.questions.authors.model._kernel import Nodes, log_likelihoods
from ombud.questions.authors.model._target import log_prior
from ombud.questions.authors.model.fits import PropagationFit, fit_propagation
from ombud.questions.authors.model.posterior import Posterior
from ombud.questions.authors.model.priors import Priors
from ombud.report import charts
from ombud.report.html import to_html
from ombud.report.model import Chart, Page, Section

SEED = 20261118
LEVEL = 0.9
Floats = NDArray[np.float64]
# Nodes of the reference: about twice those of the fits.
FINE = Nodes(17, 13)
PLAIN = Priors(mean_sd=1, intercept_sd=1, slope_sd=1, spread_rate=1, residual_rate=1.5)


@dataclass(frozen=True)
class Regime:
    """How sets are drawn: sizes, priors, and which data are kept."""

    users: int = 40
    systems: int = 1
    profiles: tuple[int, int] | None = None
    length: int = 50
    priors: Priors = field(default=PLAIN)
    negative: bool = False
    at_least: float = 0.0


WIDE = Priors(mean_sd=2, intercept_sd=2, slope_sd=1, spread_rate=0.2, residual_rate=0.3)
NARROW = Priors(mean_sd=1, intercept_sd=1, slope_sd=1, spread_rate=1, residual_rate=30)
REGIMES = {
    "few users": Regime(),
    "short profiles": Regime(users=100, profiles=(1, 5)),
    "wide spread": Regime(priors=WIDE),
    "near-zero residual": Regime(priors=NARROW),
    "many systems": Regime(systems=4),
    "negative slopes": Regime(negative=True),
    "polynomials, two systems": Regime(users=220, systems=2, profiles=(10, 60), at_least=0.7),
}


def simulate(name: str, number: int, seed: int = SEED) -> tuple[dict[str, Any], Floats]:
    """Return the data of a set, and the true (mu, sigma, b..., s..., v...).

    Selection is by data alone: negative slopes by the correlation of shares in profiles and lists,
    larger sets by the spread of shares (with it, log sigma is certain and polynomials are used).
    """
    regime, p = REGIMES[name], REGIMES[name].priors
    rng = np.random.default_rng(np.random.SeedSequence([seed, zlib.crc32(name.encode()), number]))
    shape = (regime.users, regime.systems)
    while True:
        mu, sigma = rng.normal(0, p.mean_sd), rng.exponential(1 / p.spread_rate)
        b, s = (rng.normal(0, sd, regime.systems) for sd in (p.intercept_sd, p.slope_sd))
        v = rng.exponential(1 / p.residual_rate, regime.systems)
        t = rng.normal(mu, sigma, regime.users)
        if regime.profiles is None:
            known = 5 + np.floor(np.exp(rng.normal(2.3, 1, regime.users))).astype(np.int64)
        else:
            known = rng.integers(regime.profiles[0], regime.profiles[1] + 1, regime.users)
        size = rng.binomial(regime.length, 0.7, shape)
        x = b + s * t[:, None] + v * rng.standard_normal(shape)
        data = {
            "count": rng.binomial(known, _share(t)),
            "known": known,
            "list_count": rng.binomial(size, _share(x)),
            "list_known": size,
        }
        own = (data["count"] + 0.5) / (known + 1)
        theirs = (data["list_count"][:, 0] + 0.5) / (size[:, 0] + 1)
        odds = np.log(own / (1 - own))
        if regime.negative and np.corrcoef(odds, theirs)[0, 1] >= -0.1:
            continue
        if odds.std() >= regime.at_least:
            return data, np.array([mu, sigma, *b, *s, *v])


def _share(x: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-x)))


def fitted(
    name: str, number: int, seed: int = SEED
) -> tuple[dict[str, Any], PropagationFit, dict[str, Any], Floats]:
    """Fit a set; return its data, the fit, what to note of it, and the truth."""
    data, truth = simulate(name, number, seed)
    systems = [str(a) for a in range(data["list_known"].shape[1])]
    started = time.process_time()
    fit = fit_propagation(
        **data, systems=systems, priors=REGIMES[name].priors,
        rng=np.random.default_rng(np.random.SeedSequence([99, number])),
    )  # fmt: skip
    row = {"regime": name, "number": number, "cpu": time.process_time() - started}
    missing = "; ".join(filter(None, (fit.spread_reason, *(one.reason for one in fit.apart))))
    row |= {"reason": fit.reason or missing, "apart": len(fit.apart)}
    if not row["reason"] and fit.apart:
        row["reason"] = "fitted apart"
    if fit.diagnostics is not None:
        row |= {"degree": fit.diagnostics.degree, "khat": float(fit.diagnostics.khat)}
        row |= {"ess": fit.diagnostics.slowest[1], "error": fit.diagnostics.error}
    return data, fit, row, truth


def one_set(name: str, number: int, with_mass: bool, seed: int = SEED) -> dict[str, Any]:
    """Return the rank of each true parameter, and the mass in each interval."""
    data, fit, row, truth = fitted(name, number, seed)
    if row["reason"]:
        return row
    columns = list(fit.posterior.columns().values())
    row["rank"] = [fit.posterior.average(x < t) for x, t in zip(columns, truth, strict=True)]
    if not with_mass:
        return row
    rng = np.random.default_rng(np.random.SeedSequence([5, number]))
    priors = REGIMES[name].priors
    points, weights, khat = reference(Counts.check(**data), priors, fit.posterior, rng)
    row["mass"] = []
    for j, values in enumerate(columns):
        low, high = fit.posterior.interval(values, LEVEL)
        row["mass"].append(float(weights @ ((points[:, j] >= low) & (points[:, j] <= high))))
    return row | {"ref_khat": float(khat), "ref_ess": float(1 / (weights**2).sum())}


def reference(
    counts: Counts, priors: Priors, start: Posterior, rng: np.random.Generator
) -> tuple[Floats, Floats, float]:
    """Sample the posterior a second time, from wide proposals in coordinates of their own."""
    systems = counts.systems
    steep, wide = slice(2 + systems, 2 + 2 * systems), slice(2 + 2 * systems, None)
    level = slice(2, 2 + systems)
    # (mu, log sigma, b + s mu, s sigma**1.5, sqrt v): the ridge of steep slopes made straight.
    x = np.stack(list(start.columns().values()), axis=1)
    x[:, level] += x[:, steep] * x[:, :1]
    x[:, steep] *= x[:, 1:2] ** 1.5
    x[:, 1], x[:, wide] = np.log(x[:, 1]), np.sqrt(x[:, wide])
    weights, d = start.weights, x.shape[1]
    df, size = (5.0, 1200) if d <= 8 else (15.0, 8000)
    kept: list[tuple[Floats, Floats]] = []
    proposals: list[tuple[Floats, Floats]] = []
    for stretch in (1.7, 1.4, 1.4):
        middle = weights @ x
        away = x - middle
        cover = stretch * (away * weights[:, None]).T @ away + 1e-10 * np.eye(d)
        proposals.append((middle, np.linalg.cholesky(cover)))
        e = rng.standard_normal((size, d)) / np.sqrt(rng.chisquare(df, size) / df)[:, None]
        more = middle + e @ proposals[-1][1].T
        roots = more[:, wide]
        inside = (roots > 1e-3).all(axis=1) & (np.abs(more[:, 1]) < 8)
        points = more.copy()
        points[:, steep] = more[:, steep] * np.exp(-1.5 * more[:, 1:2])
        points[:, level] -= points[:, steep] * more[:, :1]
        points[:, wide] = 2 * np.log(np.maximum(roots, 1e-3))
        inside &= (np.abs(points) < 300).all(axis=1)
        volume = -1.5 * systems * more[:, 1] + np.log(2 / np.maximum(roots, 1e-3)).sum(axis=1)
        logs = np.full(size, -np.inf)
        logs[inside] = log_likelihoods(counts, points[inside], FINE) + volume[inside]
        logs[inside] += log_prior(points[inside], priors)[0]
        kept.append((more, logs))
        x, logs = (np.concatenate(part) for part in zip(*kept, strict=True))
        # All draws count, as if each came from the mixture of all proposals.
        mixed = []
        for centre, root in proposals:
            z = np.linalg.solve(root, (x - centre).T)
            density = -0.5 * (df + d) * np.log1p((z**2).sum(axis=0) / df)
            mixed.append(density - np.log(np.diag(root)).sum())
        logs = np.where(np.isfinite(logs), logs, -np.inf)
        weights, khat = smooth_weights(logs - logsumexp(mixed, axis=0))
    found = x.copy()
    found[:, 1], found[:, wide] = np.exp(x[:, 1]), x[:, wide] ** 2
    found[:, steep] = x[:, steep] * np.exp(-1.5 * x[:, 1:2])
    found[:, level] -= found[:, steep] * x[:, :1]
    return found, weights, khat


def run(out: Path, sets: int, masses: int, seconds: float, seed: int) -> None:
    """Add sets to a file until it has enough fits, the first of each regime with their mass.

    The run ends early after the given number of CPU seconds.
    """
    rows = read([out]) if out.exists() else []
    done = {(row["regime"], row["number"]) for row in rows}
    fits = {name: sum(r["regime"] == name and not r["reason"] for r in rows) for name in REGIMES}
    each = -(-sets // len(REGIMES))
    with out.open("a") as file:
        for number in range(20 * each):
            for name in REGIMES:
                if time.process_time() > seconds:
                    return
                if fits[name] < each and (name, number) not in done:
                    row = one_set(name, number, fits[name] < masses, seed)
                    fits[name] += not row["reason"]
                    file.write(json.dumps(row) + "\n")
                    file.flush()


def read(files: list[Path]) -> list[dict[str, Any]]:
    """Return the rows of files; a set that is in two counts once."""
    rows = [json.loads(line) for file in files for line in file.read_text().splitlines()]
    return list({(row["regime"], row["number"]): row for row in rows}.values())


KINDS = ("mu", "sigma", "b", "s", "v")


def by_kind(row: dict[str, Any], key: str) -> list[Floats]:
    """Return the values of mu, sigma, b, s and v, those of all systems together."""
    values = np.array(row[key])
    systems = (len(values) - 2) // 3
    return [values[:1], values[1:2], *np.split(values[2:], 3)] if systems else []


def show(files: list[Path], plot: Path | None) -> None:
    """Print both tables; draw the ranks."""
    rows = read(files)
    print("| regime | sets | " + " | ".join(KINDS) + " | lowest |\n|---" + "|---:" * 7 + "|")
    for name in REGIMES:
        good = [r for r in rows if r["regime"] == name and "mass" in r]
        trusted = [r for r in good if r["ref_khat"] < 0.7 and r["ref_ess"] >= 200]
        if len(trusted) < 2:
            continue
        cells = []
        for kind in range(len(KINDS)):
            values = np.array([by_kind(r, "mass")[kind].mean() for r in trusted])
            error = values.std(ddof=1) / len(values) ** 0.5
            cells.append(f"{values.mean():.3f}±{error:.3f}")
        lowest = min(min(r["mass"]) for r in trusted)
        print(f"| {name} | {len(trusted)} of {len(good)} | {' | '.join(cells)} | {lowest:.3f} |")
    print(
        "\n| regime | fits of sets | not converged | CPU s, mean and largest | polynomials |",
        end="",
    )
    print(" KS p: " + " | ".join(KINDS) + " |\n|---" + "|---:" * 9 + "|")
    for name in [*REGIMES, ""]:
        own = [r for r in rows if not name or r["regime"] == name]
        good = [r for r in own if "rank" in r]
        if len(good) < 5:
            continue
        failed = sum("converge" in r["reason"] or r["apart"] > 0 for r in own)
        cpu = np.array([r["cpu"] for r in own])
        ps = [
            # One rank of each set: ranks of the systems of one set are not independent.
            stats.kstest([by_kind(r, "rank")[kind][0] for r in good], "uniform").pvalue
            for kind in range(len(KINDS))
        ]
        print(
            f"| {name or 'all'} | {len(good)} of {len(own)} | {failed} "
            f"| {cpu.mean():.1f}, {cpu.max():.1f} | {sum(r['degree'] > 0 for r in good)} | "
            + " | ".join(f"{p:.2f}" for p in ps)
            + " |"
        )
    if plot is not None:
        draw_ranks(rows, plot)


def draw_ranks(rows: list[dict[str, Any]], file: Path) -> None:
    """Write a page that draws the ranks less the uniform distribution, with its 99% band."""
    panels = []
    steps = np.linspace(0, 1, 101)
    for name in REGIMES:
        good = [r for r in rows if r["regime"] == name and "rank" in r]
        if len(good) < 5:
            continue
        band = float(stats.kstwo(len(good)).ppf(0.99))
        marks = [charts.Line("99% band", [], band=[(x, -band, band) for x in (0.0, 1.0)])]
        for kind, label in enumerate(KINDS):
            ordered = np.sort([by_kind(r, "rank")[kind][0] for r in good])
            away = np.searchsorted(ordered, steps, side="right") / len(good) - steps
            marks.append(charts.Line(label, list(zip(steps.tolist(), away.tolist(), strict=True))))
        most = max(1.2 * band, *(abs(y) for line in marks for _, y in line.points))
        x, y = ("rank of the truth", 0.0, 1.0), ("ranks minus uniform", -most, most)
        panels.append(charts.plane(f"{name} ({len(good)})", marks, x=x, y=y))
    chart = Chart("ranks", "Ranks of the truth", "By regime (sets).", "Ranks", tuple(panels))
    file.write_text(to_html(Page("Calibration", (), (), (Section("ranks", "Ranks", (chart,)),))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    adding = commands.add_parser("run")
    adding.add_argument("out", type=Path)
    adding.add_argument("--sets", type=int, default=1000, help="fits, over all regimes")
    adding.add_argument("--mass", type=int, default=30, help="fits of each regime with their mass")
    adding.add_argument("--cpu", type=float, default=np.inf, help="stop after so many CPU s")
    adding.add_argument("--seed", type=int, default=SEED, help="draws other sets")
    showing = commands.add_parser("show")
    showing.add_argument("files", type=Path, nargs="+")
    showing.add_argument("--plot", type=Path)
    asked = parser.parse_args()
    if asked.command == "run":
        run(asked.out, asked.sets, asked.mass, asked.cpu, asked.seed)
    else:
        show(asked.files, asked.plot)


if __name__ == "__main__":
    main()
