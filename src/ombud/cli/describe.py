"""What a name of a plan stands for, what it takes, and a plan that uses it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from inspect import cleandoc, getdoc
from typing import Annotated, Any

import typer

from ombud import registry
from ombud.cli.console import JsonOption, print_json, reports_errors, say
from ombud.errors import OmbudError, RegistryError

_PARAMETERS = re.compile(
    r"^Parameters\n-{3,}\n(.*?)(?=\n\n[A-Z][\w ]*\n-{3,}$|\Z)", re.MULTILINE | re.DOTALL
)
_KINDS = ("recommender", "moderator", "metric", "analysis", "preset", "source", "world")
_DATA = """[data]
interactions = "interactions.parquet"
labels = "labels.parquet"
"""
_TEXTS = """[data]
texts = "texts.csv"
"""
_OF_TEXTS = {
    "preset": {"delicate", "suppression"},
    "analysis": {
        "base-rates", "bias-tests", "decision-stability", "detector-comparison", "drift",
        "error-terms", "flag-regression", "identity-tag-counts", "rating-labels",
        "score-regression", "score-spread",
    },
    "source": {
        "jigsaw-bias", "jigsaw-kaggle", "openai-1680", "stormfront", "synopses", "tweeteval",
        "two-column",
    },
}  # fmt: skip
"""What is about texts and moderators; the rest is about interactions and recommenders."""
_WITH_ITEMS = {"list-balance", "balance-gap", "rank-fairness", "authors"}
_HELD_OUT = {"f1", "hit-rate", "mrr", "ndcg", "precision", "recall"}
_OF_RATINGS = {"mae", "rmse"}
"""Metrics that need held-out interactions, and of those the ones that need predicted ratings."""
_OWN = {
    ("moderator", "http"): 'url = "https://..."\nflag_path = "flagged"\n',
    ("moderator", "keyword"): 'terms = ["..."]\n',
    ("moderator", "sklearn"): 'path = "model.skops"  # ...\n',
}
"""What an example says though no argument is needed: one of several must be given."""


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
    shown = [described(kind, name) for kind in found] or [_taxonomy(name)]
    if as_json:
        print_json(shown)
        return
    for number, one in enumerate(shown):
        say(("\n" if number else "") + f"{one['kind']} {one['name']}\n\n{one['text']}")
        if one["arguments"]:
            say("\nArguments:")
            for argument in one["arguments"]:
                needed = "needed" if argument["needed"] else f"default {argument['default']}"
                say(f"  {argument['name']}: {argument['type']}, {needed}")
        if one["example"]:
            say(f"\nExample plan:\n\n{one['example'].rstrip()}")


def described(kind: str, name: str) -> dict[str, Any]:
    """Return the text, the arguments and an example plan of what is registered under a name."""
    arguments = registry.arguments(kind, name)
    return {
        "kind": kind,
        "name": name,
        "text": _with_inherited(registry.get(kind, name), {one.name for one in arguments}),
        "arguments": [vars(one) for one in arguments],
        "example": _example(kind, name),
    }


def _with_inherited(factory: Callable[..., Any], arguments: set[str]) -> str:
    """Return the documentation, with what base classes say of arguments it does not describe."""
    text = getdoc(factory) or ""
    bases = factory.__mro__[1:] if isinstance(factory, type) else ()
    unsaid = arguments - {name for names, _ in _parameters(text) for name in names}
    more = ""
    for base in bases:
        for names, entry in _parameters(cleandoc(base.__doc__ or "")):
            if unsaid.issuperset(names):
                unsaid.difference_update(names)
                more += f"\n{entry}"
    found = _PARAMETERS.search(text)
    if found is None:
        return f"{text}\n\nParameters\n----------{more}" if more else text
    return text[: found.end()] + more + text[found.end() :]


def _parameters(docstring: str) -> Iterator[tuple[list[str], str]]:
    """Yield the names and the text of each entry under *Parameters*."""
    if found := _PARAMETERS.search(docstring):
        for entry in re.findall(r"^\S.*(?:\n(?:[ \t].*)?)*$", found[1], re.MULTILINE):
            yield entry.split("\n")[0].split(", "), entry.rstrip()


def _taxonomy(name: str) -> dict[str, Any]:
    from ombud.taxonomy import load_taxonomy, taxonomy_names, taxonomy_page

    if name not in taxonomy_names():
        known = sorted({*taxonomy_names(), *(n for k in _KINDS for n in registry.names(k))})
        raise RegistryError(f"nothing is called {name!r}; {registry.hint(name, known)}")
    page = taxonomy_page(load_taxonomy(name))
    return {"kind": "taxonomy", "name": name, "text": page, "arguments": [], "example": ""}


def _example(kind: str, name: str) -> str:
    """Return a plan in which the name stands where it belongs; needed arguments are shown."""
    needed = _OWN.get((kind, name), "") + "".join(
        f"{one.name} = {_value(one)}\n" for one in registry.arguments(kind, name) if one.needed
    )
    texts = _is_about_texts(kind, name)
    data, measured = (_TEXTS, "false-positive-rate") if texts else (_DATA, "share-gap")
    if name in _WITH_ITEMS or name.startswith("creator-"):
        data += 'items = "items.parquet"\n'
    measure = f'[[metrics]]\nname = "{measured}"\n'
    system = '[systems.mine]\ntype = "recorded"\npath = "mine.parquet"\n'
    if kind in ("recommender", "moderator"):
        return f'{data}\n[systems.mine]\ntype = "{name}"\n{needed}\n{measure}'
    if kind == "metric":
        more = "" if needed else _more(kind, name)
        if name in _OF_RATINGS:
            system = '[systems.mine]\ntype = "svd"\n'
        if name in _HELD_OUT | _OF_RATINGS:
            data += '\n[split]\nmethod = "per-user"\n'
        return f'{data}\n{system}\n[[metrics]]\nname = "{name}"\n{needed}{more}'
    if kind == "analysis":
        return f'{data}\n{system}\n{measure}\n[[analyses]]\nname = "{name}"\n{needed}'
    if kind == "preset":
        options = f"\n[options]\n{needed}" if needed else ""
        return f'preset = "{name}"\n\n{data}\n{system}{options}'
    options = f"\n[data.options]\n{needed}" if needed else ""
    return f'[data]\nsource = "{name}"\n{options}\n{system}\n{measure}'


def _is_about_texts(kind: str, name: str) -> bool:
    if kind == "moderator":
        return True
    if kind == "metric":
        return getattr(registry.get(kind, name), "of", "recommender") == "moderator"
    return name in _OF_TEXTS.get(kind, ())


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
