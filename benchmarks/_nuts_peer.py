"""The full propagation model by NUTS (PyMC and nutpie); runs in an environment of its own.

    python _nuts_peer.py COUNTS.npz SETTINGS.json

COUNTS holds `count`, `known`, `list_count`, `list_known`. Prints one JSON object: for each
parameter mean, sd, quantiles and their errors, effective sample size and R-hat; and the CPU s of
sampling (compilation apart). Only the parameters are kept: with the latents nutpie needs 9 GB.
"""

from __future__ import annotations

import json
import sys
import time
from typing import Any

import arviz as az
import numpy as np
import nutpie
import pymc as pm

SHARES = [0.05, 0.25, 0.5, 0.75, 0.95]


def model_of(data: Any, settings: dict[str, Any]) -> pm.Model:
    users, systems = data["list_known"].shape
    with pm.Model() as model:
        mu = pm.Normal("mu", 0, settings["normal_sd"])
        sigma = pm.Exponential("sigma", settings["spread_rate"])
        t = pm.Normal("t", mu, sigma, shape=users)
        pm.Binomial("y", n=data["known"], logit_p=t, observed=data["count"])
        if systems:
            b = pm.Normal("b", 0, settings["normal_sd"], shape=systems)
            s = pm.Normal("s", 0, settings["normal_sd"], shape=systems)
            v = pm.Exponential("v", settings["residual_rate"], shape=systems)
            if settings["centred"]:
                x = pm.Normal("x", b + s * t[:, None], v, shape=(users, systems))
            else:
                z = pm.Normal("z", 0, 1, shape=(users, systems))
                x = b + s * t[:, None] + v * z
            pm.Binomial("k", n=data["list_known"], logit_p=x, observed=data["list_count"])
    return model


def main() -> None:
    with np.load(sys.argv[1]) as file:
        data = dict(file)
    settings = json.loads(sys.argv[2])
    names = ["mu", "sigma"] + (["b", "s", "v"] if data["list_known"].shape[1] else [])
    started = time.process_time()
    compiled = nutpie.compile_pymc_model(model_of(data, settings), var_names=names)
    compiling = time.process_time() - started
    started = time.process_time()
    trace = nutpie.sample(
        compiled,
        draws=settings["draws"],
        tune=settings["tune"],
        chains=settings["chains"],
        cores=settings["cores"],
        seed=settings["seed"],
        progress_bar=False,
        save_warmup=False,
        **({"target_accept": settings["target_accept"]} if "target_accept" in settings else {}),
    )
    cpu = time.process_time() - started
    found: dict[str, Any] = {}
    for name in names:
        values = trace.posterior[name].values
        values = values[..., None] if values.ndim == 2 else values
        for i in range(values.shape[-1]):
            one = values[..., i]
            key = name if name in {"mu", "sigma"} else f"{name}[{i}]"
            found[key] = {
                "mean": float(one.mean()),
                "sd": float(one.std()),
                "shares": SHARES,
                "quantiles": np.quantile(one, SHARES).tolist(),
                "errors": [float(az.mcse(one, method="quantile", prob=p)) for p in SHARES],
                "ess": float(az.ess(one, method="bulk")),
                "rhat": float(az.rhat(one)),
            }
    divergences = int(trace.sample_stats["diverging"].values.sum())
    print(
        json.dumps(
            {"parameters": found, "cpu": cpu, "compile_cpu": compiling, "divergences": divergences}
        )
    )


if __name__ == "__main__":
    main()
