"""How long to look: a few seconds in the suite, always the same; longer with ``make fuzz``.

``OMBUD_FUZZ=5000`` tries so many inputs in each test, and new ones each time. What it finds becomes
a row of `tests/hostile`.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.insert(0, str(Path(__file__).parent))

EXAMPLES = int(os.environ.get("OMBUD_FUZZ", "0"))

settings.register_profile(
    "fuzz",
    max_examples=EXAMPLES or 40,
    derandomize=not EXAMPLES,
    database=None,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="package")
def tables(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Small files that a plan can name."""
    folder = tmp_path_factory.mktemp("fuzz")
    users, items = range(1, 13), range(1, 9)
    seen = [(u, i) for u in users for i in items if (u + i) % 2]
    (folder / "i.csv").write_text("user,item\n" + "".join(f"{u},{i}\n" for u, i in seen))
    (folder / "l.csv").write_text("item,label\n" + "".join(f"{i},w\n" for i in (1, 2, 5)))
    (folder / "u.csv").write_text("user,g\n" + "".join(f"{u},{'ab'[u % 2]}\n" for u in users))
    lists = [
        (u, i, r) for u in users for r, i in enumerate([i for i in items if not (u + i) % 2], 1)
    ]
    (folder / "r.csv").write_text(
        "user,item,rank\n" + "".join(f"{u},{i},{r}\n" for u, i, r in lists)
    )
    (folder / "t.csv").write_text(
        "id,text,label\n" + "".join(f"{t},x z{t},{t % 2}\n" for t in range(9))
    )
    return folder
