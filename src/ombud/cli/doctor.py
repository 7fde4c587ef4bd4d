"""What is installed, and whether it works."""

from __future__ import annotations

import re
from importlib import metadata
from typing import Annotated

from ombud import registry
from ombud.cli.console import JsonOption, console, print_json, reports_errors, say
from ombud.report.display import visible

_REQUIREMENT = re.compile(r"""(?P<name>[\w.-]+).*extra == ['"](?P<extra>[\w-]+)""")


def _extras() -> dict[str, bool]:
    """Return for each extra of the package whether all that it names is installed."""
    result: dict[str, bool] = {}
    for line in metadata.requires("ombud") or []:
        if match := _REQUIREMENT.match(line):
            there = any(metadata.distributions(name=match["name"]))
            result[match["extra"]] = result.get(match["extra"], True) and there
    return result


@reports_errors
def plugins(as_json: Annotated[bool, JsonOption] = False) -> None:
    """List plugins and everything that is registered.

    \b
    Example:
      ombud plugins --json
    """
    from rich.table import Table
    from rich.text import Text

    result = registry.plugins()
    things = {
        kind: {name: registry.describe(kind, name) for name in registry.names(kind)}
        for kind in registry.KINDS
    }
    if as_json:
        print_json({"plugins": [vars(p) for p in result], "registered": things})
        return
    for plugin in result:
        state = f"failed: {plugin.error}" if plugin.error else f"{len(plugin.registered)} things"
        say(f"plugin {plugin.name} ({plugin.distribution}): {state}")
    if not result:
        console.print("no plugins; everything below is built in")
    table = Table("kind", "name", "what it is", box=None)
    for kind, names in things.items():
        for name, text in names.items():
            table.add_row(*(Text(visible(cell)) for cell in (kind, name, text)))
    console.print(table)


@reports_errors
def doctor(as_json: Annotated[bool, JsonOption] = False) -> None:
    """Show versions and which extras are installed, and how to install the others.

    \b
    Example:
      ombud doctor
    """
    from rich.table import Table

    from ombud.audits.provenance import versions

    extras = _extras()
    from ombud.audits.backends.spark import spark_fault

    spark = spark_fault() if extras.get("spark") else ""
    if as_json:
        print_json({"versions": versions(), "extras": extras, "spark": spark})
        return
    table = Table("package", "version", box=None)
    for name, version in versions().items():
        table.add_row(name, version)
    console.print(table)
    for extra, there in extras.items():
        text = "installed" if there else f"absent; pip install 'ombud[{extra}]'"
        say(f"extra {extra}: {text}")
    if spark:
        say(f"Spark cannot be used here: {spark}")
