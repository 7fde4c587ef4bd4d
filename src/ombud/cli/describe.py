"""What a name of a plan stands for, what it takes, and a plan that uses it."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ombud import registry
from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.errors import OmbudError, RegistryError

__all__ = ["describe"]

_KINDS = ("recommender", "moderator", "metric", "analysis", "preset", "source", "world")
_DATA = """[data]
interactions = "interactions.parquet"
labels = "labels.parquet"
"""
_TEXTS = """[data]
texts = "texts.csv"
"""


@reports_errors
def describe(
    name: Annotated[
        str, typer.Argument(help="A system, metric, preset, source, world or taxonomy.")
    ],
    as_json: Annotated[bool, JsonOption] = False,
) -> None:
    """Show what a name in a plan stands for: every argument, and an example plan.

    \b
    Examples:
      ombud describe share-gap
      ombud describe suppression
    """
    found = [kind for kind in _KINDS if name in registry.names(kind)]
    described = [_described(kind, name) for kind in found] or [_taxonomy(name)]
    if as_json:
        print_json(described)
        return
    for number, one in enumerate(described):
        say(("\n" if number else "") + f"{one['kind']} {one['name']}\n\n{one['text']}")
        if one["arguments"]:
            say("\nArguments:")
            for argument in one["arguments"]:
                needed = "needed" if argument["needed"] else f"default {argument['default']}"
                say(f"  {argument['name']}: {argument['type']}, {needed}")
        if one["example"]:
            say(f"\nExample plan:\n\n{one['example'].rstrip()}")


def _described(kind: str, name: str) -> dict[str, Any]:
    from inspect import getdoc

    return {
        "kind": kind,
        "name": name,
        "text": getdoc(registry.get(kind, name)) or "",
        "arguments": [vars(one) for one in registry.arguments(kind, name)],
        "example": _example(kind, name),
    }


def _taxonomy(name: str) -> dict[str, Any]:
    from ombud.taxonomy import load_taxonomy, taxonomy_names, taxonomy_page

    if name not in taxonomy_names():
        known = sorted({*taxonomy_names(), *(n for k in _KINDS for n in registry.names(k))})
        raise RegistryError(f"nothing is called {name!r}; {registry.hint(name, known)}")
    page = taxonomy_page(load_taxonomy(name))
    return {"kind": "taxonomy", "name": name, "text": page, "arguments": [], "example": ""}


def _example(kind: str, name: str) -> str:
    """Return a plan in which the name stands where it belongs; needed arguments are shown."""
    needed = "".join(
        f"{one.name} = {_value(one)}\n" for one in registry.arguments(kind, name) if one.needed
    )
    system = '[systems.mine]\ntype = "recorded"\npath = "mine.parquet"\n'
    measure = '[[metrics]]\nname = "share-gap"\n'
    if kind == "recommender":
        return f'{_DATA}\n[systems.mine]\ntype = "{name}"\n{needed}\n{measure}'
    if kind == "moderator":
        rate = '[[metrics]]\nname = "false-positive-rate"\n'
        return f'{_TEXTS}\n[systems.mine]\ntype = "{name}"\n{needed}\n{rate}'
    if kind == "metric":
        about = getattr(registry.get(kind, name), "of", "recommender")
        data = _TEXTS if about == "moderator" else _DATA
        more = "" if needed else _more(kind, name)
        return f'{data}\n{system}\n[[metrics]]\nname = "{name}"\n{needed}{more}'
    if kind == "analysis":
        return f'{_DATA}\n{system}\n{measure}\n[[analyses]]\nname = "{name}"\n{needed}'
    if kind == "preset":
        data = _TEXTS if name == "suppression" else _DATA
        options = f"\n[options]\n{needed}" if needed else ""
        return f'preset = "{name}"\n\n{data}\n{system}{options}'
    options = f"\n[data.options]\n{needed}" if needed else ""
    return f'[data]\nsource = "{name}"\n{options}\n{system}\n{measure}'


def _more(kind: str, name: str) -> str:
    """Return a comment where the name alone is not enough, though no argument is needed."""
    try:
        registry.create(kind, name)
    except OmbudError as error:
        return f"# {' '.join(str(error).split())}\n"
    return ""


def _value(argument: registry.Argument) -> str:
    plain = {"int": "10", "float": "0.5", "bool": "true"}
    if argument.type in plain:
        return plain[argument.type]
    return '["..."]' if argument.type.startswith(("tuple", "list")) else '"..."'
