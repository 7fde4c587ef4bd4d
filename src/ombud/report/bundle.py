"""The script that draws figures on screen: Vega, Vega-Lite and Vega-Embed as one."""

from __future__ import annotations

import sys
from contextlib import suppress
from functools import lru_cache
from importlib.metadata import version
from importlib.util import cache_from_source
from pathlib import Path

from ombud.files import write_text
from ombud.report.images import VEGALITE

_SNIPPET = "window.vegaEmbed = vegaEmbed;"


@lru_cache(maxsize=1)
def drawing_script() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, from the installed vl-convert.

    Making it takes a second, so it is kept beside the bytecode of this module: who can write
    there can change what ombud does anyway. Where bytecode is not written, nor is this.

    Raises
    ------
    RuntimeError
        If the script cannot stand in a page.
    """
    kept = Path(cache_from_source(__file__)).with_name(
        f"vega-{version('vl-convert-python')}-{VEGALITE}.js"
    )
    try:
        script = kept.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError):
        script = _made()
        if not sys.dont_write_bytecode:
            with suppress(OSError):
                write_text(kept, script)
    lowered = script.lower()
    for forbidden in ("</script", "<!--", "<script", "\r", "\0"):
        if forbidden in lowered:
            raise RuntimeError(
                f"the script of the installed vl-convert holds {forbidden!r} and cannot be "
                "embedded; install another version, or write the report with interactive=False"
            )
    # Wrapped, so that its many short global names cannot meet those of another script.
    return f"(function(){{{script}}})();"


def _made() -> str:
    import vl_convert

    made = str(vl_convert.javascript_bundle(_SNIPPET, vl_version=VEGALITE))
    return made.replace("\r\n", "\n")
