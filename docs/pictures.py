"""Draw the picture of the README: the card of a demo, as Chromium shows it.

ombud demo && python docs/pictures.py ombud-demo
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
PICTURES = {"card.png": ("index.html", "940,1400")}
"""By picture: the page of the demo, and the size of the window."""


def main() -> None:
    """Write each picture."""
    folder = Path(sys.argv[1]).resolve()
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    if browser is None:
        sys.exit("Chromium is needed to draw pictures")
    for name, (page, size) in PICTURES.items():
        with tempfile.TemporaryDirectory() as profile:
            options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
            options += [f"--user-data-dir={profile}", f"--window-size={size}"]
            target = f"--screenshot={HERE / 'images' / name}"
            page_url = (folder / page).as_uri()
            subprocess.run([browser, *options, target, page_url], check=True, capture_output=True)


if __name__ == "__main__":
    main()
