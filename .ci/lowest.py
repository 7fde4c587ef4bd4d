"""Print the lowest versions that pyproject.toml allows, as constraints for pip.

python .ci/lowest.py                   the package alone
python .ci/lowest.py models tuning     with these extras
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9_.-]+)\s*>=\s*(?P<version>[0-9][0-9a-zA-Z.]*)")


def lowest(extras: list[str]) -> list[str]:
    """Return one line for each requirement: its name and its lower bound, exactly."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = list(project["dependencies"])
    for extra in extras:
        wanted += project["optional-dependencies"][extra]
    lines = []
    for requirement in wanted:
        found = REQUIREMENT.match(requirement)
        if found is None:
            raise SystemExit(f"{requirement!r} has no lower bound")
        lines.append(f"{found['name']}=={found['version']}")
    return sorted(set(lines))


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest(sys.argv[1:])) + "\n")
