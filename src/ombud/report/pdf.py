"""A report as PDF, printed by a browser that is already there."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from ombud.errors import ReportError
from ombud.files import write_atomically

BROWSERS = (
    "chromium",
    "chromium-browser",
    "google-chrome",
    "google-chrome-stable",
    "chrome",
    "msedge",
    "microsoft-edge",
)
"""Commands under which a browser that prints may be found; OMBUD_BROWSER names another."""

_SECONDS = 120


def find_browser() -> str:
    """Return the path of a browser that can print without a window.

    Raises
    ------
    ReportError
        If there is none.
    """
    wanted = os.environ.get("OMBUD_BROWSER", "")
    for name in (wanted,) if wanted else BROWSERS:
        if found := shutil.which(name):
            return found
    if wanted:
        raise ReportError(f"OMBUD_BROWSER names {wanted!r}, which is not there")
    raise ReportError(
        "a PDF is printed by Chromium, Chrome or Edge, and none was found; install one, name it in "
        "OMBUD_BROWSER, or write report.html and print it from any browser"
    )


def write_pdf(html: str, path: Path) -> None:
    """Print a page that loads nothing to a PDF, whole or not at all.

    The page has no scripts.
    """
    browser = find_browser()
    with TemporaryDirectory(prefix="ombud-pdf-") as folder:
        page, made = Path(folder) / "report.html", Path(folder) / "report.pdf"
        page.write_text(html, encoding="utf-8")
        command = [
            browser,
            "--headless",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--no-first-run",
            "--no-pdf-header-footer",
            "--host-resolver-rules=MAP * ~NOTFOUND",
            f"--user-data-dir={Path(folder) / 'profile'}",
            f"--print-to-pdf={made}",
            page.as_uri(),
        ]
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            command.insert(1, "--no-sandbox")  # its sandbox refuses to run as root
        try:
            done = subprocess.run(command, capture_output=True, timeout=_SECONDS, check=False)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ReportError(f"{browser} could not print the report: {error}") from None
        if done.returncode or not made.exists():
            said = done.stderr.decode("utf-8", "replace").strip().splitlines()
            last = said[-1] if said else f"it ended with {done.returncode}"
            raise ReportError(f"{browser} could not print the report: {last[:300]}")
        content = made.read_bytes()
    write_atomically(path, lambda target: _write(target, content))


def _write(path: Path, content: bytes) -> None:
    path.write_bytes(content)
