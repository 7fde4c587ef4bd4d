"""One archive of a result for an auditor."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from ombud.cli.audits import ResultArgument
from ombud.cli.console import JsonOption, print_json, reports_errors, say


class Level(StrEnum):
    """What an archive leaves out."""

    NONE = "none"
    TEXTS = "texts"
    IDS = "ids"


@reports_errors
def pack(
    result: Annotated[Path, ResultArgument],
    to: Annotated[
        Path | None, typer.Option("--to", help="The .zip file; default, beside the result.")
    ] = None,
    redact: Annotated[Level, typer.Option("--redact", help="What is left out; see above.")] = (
        Level.IDS
    ),
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Write a result as one archive for an auditor: plan, card, numbers, methods, hashes.

    It holds the plan, the data's card, every estimate, methods and limits in words, provenance,
    report and appendix, and a manifest with the SHA-256 of each file, which ombud verify checks.
    It claims no compliance with anything. The same result gives the same bytes.

    \b
    What --redact leaves out; paths and folders of this machine always are:
      ids    texts, lists of terms, and everything about single users and texts (the default)
      texts  texts and lists of terms; ids, answers and what was measured on each stay
      none   nothing else: whoever has it can compute the numbers again

    \b
    Examples:
      ombud pack plan.result
      ombud pack plan.result --to audit.zip --redact none
      ombud verify plan.result.zip
    """
    from ombud.audits import Result
    from ombud.audits.verify import read_manifest
    from ombud.report import pack as pack_result

    path = pack_result(Result.load(result), to, redact=redact.value)
    manifest = read_manifest(path)
    if as_json:
        print_json({"path": str(path), **manifest})
        return
    say(f"{path}: {len(manifest['files']):,} files")
    for one in manifest["left_out"]:
        say(f"left out: {one}")
