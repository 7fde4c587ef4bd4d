"""Separate virtual environments for the packages that a benchmark compares against.

A peer never enters the environment of ombud itself: each benchmark names the packages it needs
and gets the interpreter of an environment ``.bench-NAME`` in the project folder (ignored by git).
An environment that already holds the packages asked for is used as it is.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from pathlib import Path

__all__ = ["LIGHT_PEERS", "NUTS", "PEERS", "ROOT", "ensure_env"]

ROOT = Path(__file__).resolve().parent.parent

LIGHT_PEERS = ("implicit==0.7.3", "scikit-surprise==1.1.5", "pandas>=2.2,<4", "psutil")
# LensKit brings torch, which takes minutes to install.
PEERS = (*LIGHT_PEERS, "lenskit==2025.8.1")
NUTS = ("pymc==5.28.5", "nutpie==0.16.8", "arviz==0.23.4")


def ensure_env(name: str, packages: Sequence[str]) -> Path:
    """Return the interpreter of ``.bench-NAME``, with the packages installed.

    Parameters
    ----------
    name
        The end of the folder's name.
    packages
        Requirement strings, pinned where a measured figure depends on the version.
    """
    folder = ROOT / f".bench-{name}"
    python = folder / "bin" / "python"
    stamp = folder / "packages.json"
    wanted = sorted(packages)
    if stamp.exists() and python.exists() and json.loads(stamp.read_text()) == wanted:
        return python
    print(f"creating {folder.name} with {', '.join(wanted)}", file=sys.stderr, flush=True)
    if folder.exists():
        shutil.rmtree(folder)
    # uv installs in seconds what takes pip minutes; pip does it where uv is missing or fails.
    venv.create(folder, with_pip=False)
    command = [sys.executable, "-m", "uv", "pip", "install", "--quiet", "--python", str(python)]
    if subprocess.run([*command, *wanted], capture_output=True).returncode:
        venv.create(folder, with_pip=True)
        command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*command, *wanted], check=True)
    stamp.write_text(json.dumps(wanted))
    return python
