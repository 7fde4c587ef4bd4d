"""The bill of materials of a release names every package that ombud requires."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]


def test_the_bill_of_materials_names_what_is_required(tmp_path: Path) -> None:
    path = tmp_path / "dist" / "ombud.cdx.json"
    subprocess.run([sys.executable, ROOT / ".ci" / "sbom.py", path], check=True)
    content = json.loads(path.read_text(encoding="utf-8"))
    assert (content["bomFormat"], content["metadata"]["component"]["name"]) == (
        "CycloneDX",
        "ombud",
    )
    required = {c["name"] for c in content["components"] if c["scope"] == "required"}
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {Requirement(one).name.lower().replace("_", "-") for one in wanted} <= required
    assert "yarl" in required, "what the requirements require"
    for component in content["components"]:
        assert component["version"] and component["licenses"][0]["license"]["name"]
        assert component["purl"] == f"pkg:pypi/{component['name']}@{component['version']}"
