"""CPU seconds of each test and file, its ended child processes included: a plugin of pytest.

    PYTHONPATH=.ci .venv/bin/python -m pytest -p cpu_durations tests/stats

Wall time says little on a machine that others use too.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

SHOWN = 20
spent: Counter[str] = Counter()


def seconds() -> float:
    """Return the CPU time of this process and of its children that have ended."""
    return sum(os.times()[:4])


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Add up what a test and its fixtures take."""
    before = seconds()
    yield
    spent[item.nodeid] += seconds() - before


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Print the most expensive files and tests."""
    files: Counter[str] = Counter()
    for name, cpu in spent.items():
        files[name.split("::")[0]] += cpu
    terminalreporter.write_line(f"{sum(spent.values()):.0f} CPU s, {len(spent)} tests")
    for counter in (files, spent):
        for name, cpu in counter.most_common(SHOWN):
            terminalreporter.write_line(f"{cpu:8.2f} s  {name}")
