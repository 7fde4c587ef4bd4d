"""Write a software bill of materials (CycloneDX 1.5, JSON) of what a package needs at run time.

    python .ci/sbom.py dist/ombud.cdx.json

Versions and licenses are those installed in this environment; extras are listed as optional.
"""

from __future__ import annotations

import json
import re
import sys
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement


def license_of(found: Distribution) -> str:
    """Return the license that a package states."""
    stated = found.metadata.get("License-Expression") or ""
    kinds = [c.rpartition(" :: ")[2] for c in found.metadata.get_all("Classifier") or []
             if c.startswith("License ::")]  # fmt: skip
    short = (found.metadata.get("License") or "").strip().splitlines()
    return stated or ", ".join(kinds) or (short[0][:80] if short else "not stated")


def key_of(name: str) -> str:
    """Return a package's name as PyPI spells it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def components(root: str) -> dict[str, dict[str, Any]]:
    """Return what a package needs, and what that needs, by name."""
    result: dict[str, dict[str, Any]] = {}
    waiting = [(one, "") for one in distribution(root).requires or []]
    while waiting:
        text, _ = waiting.pop()
        need = Requirement(text)
        extra = need.marker is not None and "extra" in str(need.marker)
        if need.marker is not None and not extra and not need.marker.evaluate():
            continue
        key = key_of(need.name)
        try:
            found = distribution(need.name)
        except PackageNotFoundError:
            continue  # an extra that is not installed here
        scope = "optional" if extra else "required"
        known = result.get(key)
        if known is not None and (known["scope"] == "required" or scope == "optional"):
            continue
        result[key] = {
            "type": "library",
            "name": key,
            "version": found.version,
            "purl": f"pkg:pypi/{key}@{found.version}",
            "scope": scope,
            "licenses": [{"license": {"name": license_of(found)}}],
        }
        if scope == "required":
            waiting += [(one, key) for one in found.requires or [] if "extra ==" not in one]
    return result


def bill(root: str) -> dict[str, Any]:
    """Return the bill of materials of an installed package."""
    found = distribution(root)
    parts = components(root)
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {
            "type": "library", "name": root, "version": found.version,
            "purl": f"pkg:pypi/{root}@{found.version}",
            "licenses": [{"license": {"name": license_of(found)}}],
        }},
        "components": [parts[name] for name in sorted(parts)],
    }  # fmt: skip


if __name__ == "__main__":
    target = Path(sys.argv[1])
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(json.dumps(bill("ombud"), indent=1) + "\n", encoding="utf-8")
