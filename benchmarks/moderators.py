"""How fast the runner asks a service that answers in 20 ms.

Everything counts: questions written to disk before they are sent, replies written before they
count, decisions built. The stub service runs in a process of its own on the same machine, so a
connection costs both sides.

`echoed`: the service repeats the name of the text, each reply is checked, and connections are
kept. `texts_per_second`: it does not, so every question has a connection of its own: a surplus
reply could otherwise be taken for the answer to another text.

    python benchmarks/moderators.py [--quick]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path

import numpy as np

from ombud.data.texts import Texts
from ombud.http.client import Client
from ombud.systems.moderators import HttpModerator, OpenAIModeration, PolicyModerator, RunSettings
from ombud.systems.moderators.service import Service

STUB = Path(__file__).parent.parent / "tests" / "systems" / "moderators" / "stub_service.py"
LATENCY = 0.02


def texts_of(n: int) -> Texts:
    rng = np.random.default_rng(5)
    words = np.array(["one", "of", "these", "words", "that", "nobody", "wrote", "before", "zz"])
    rows = [" ".join(words[rng.integers(len(words), size=12)]) + f" {i}" for i in range(n)]
    return Texts(np.arange(n), np.array(rows, dtype=object), np.full(n, -1, dtype=np.int8))


def measure(service: Service, texts: Texts) -> tuple[float, float]:
    """Texts a second of the wall clock, and CPU seconds of the asking process."""
    wall, cpu = time.perf_counter(), time.process_time()
    decisions = service.moderate(texts)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert decisions.decided.all(), decisions
    return len(texts) / wall, cpu


async def carry(url: str, n: int, at_once: int, kept: bool) -> float:
    """Requests a second of the client alone."""
    numbers = iter(range(n))
    client = Client(url, {"Content-Type": "application/json"}, 30, kept=kept)

    async def work() -> None:
        for i in numbers:
            await client.post(b'{"text": "a text %d"}' % i)

    start = time.perf_counter()
    await asyncio.gather(*[work() for _ in range(at_once)])
    await client.close()
    return n / (time.perf_counter() - start)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the texts")
    parser.add_argument("--at-once", type=int, default=128, help="requests under way at a time")
    options = parser.parse_args()
    n = 2_000 if options.quick else 20_000
    command = [sys.executable, str(STUB), "0", str(LATENCY)]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    address = f"http://127.0.0.1:{server.stdout.readline().strip()}"
    figures: dict[str, float] = {}
    try:
        with tempfile.TemporaryDirectory() as folder:
            run = RunSettings(concurrency=options.at_once)
            plain = HttpModerator(
                base_url=f"{address}/plain",
                score_path="score",
                threshold=0.5,
                cache=Path(folder) / "plain.sqlite",
                run=run,
            )
            texts = texts_of(n)
            rate, cpu = measure(plain, texts)
            figures["texts_per_second"] = rate
            figures["cpu_seconds_per_1000"] = 1000 * cpu / n
            figures["texts_per_cpu_second"] = n / cpu
            rate, _ = measure(plain, texts)
            figures["texts_per_second_from_cache"] = rate
            echoed = replace(
                plain,
                template={"text": "{text}", "id": "{id}"},
                echo_path="id",
                cache=Path(folder) / "echoed.sqlite",
            )
            rate, cpu = measure(echoed, texts)
            figures["texts_per_second_echoed"] = rate
            figures["texts_per_cpu_second_echoed"] = n / cpu
            batched = OpenAIModeration(
                model="omni-moderation-2024-09-26",
                base_url=f"{address}/v1",
                key_env="",
                cache=Path(folder) / "openai.sqlite",
                run=RunSettings(concurrency=16, batch=16),
            )
            figures["texts_per_second_openai_batch_16"], _ = measure(batched, texts)
            policy = PolicyModerator(
                form="llama-guard",
                model="stub",
                base_url=f"{address}/v1",
                cache=Path(folder) / "policy.sqlite",
                run=run,
            )
            rate, cpu = measure(policy, texts)
            figures["texts_per_second_policy"] = rate
            figures["texts_per_cpu_second_policy"] = n / cpu
        url, few = f"{address}/plain", n // 4
        for name, kept in (("client_kept", True), ("client_own_connection", False)):
            rate = asyncio.run(carry(url, few, options.at_once, kept))
            figures[f"{name}_per_second"] = rate
    finally:
        server.terminate()
        server.wait()
    for name, value in figures.items():
        print(f"{name:40s} {value:12,.2f}")
    rounded = {name: round(value, 3) for name, value in figures.items()}
    print(json.dumps({"benchmark": "moderators", "figures": rounded}))


if __name__ == "__main__":
    main()
