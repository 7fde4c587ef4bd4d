"""Comparisons that are true by definition: group and decision come from the same list of terms.

A detector that flags the terms of a dictionary finds every text of a topic that the same dictionary
tells, and no text without a term. Such a pair says nothing about the detector, so it is in no
family of comparisons.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ombud.audits.result import Result
from ombud.stats.estimate import Estimate
from ombud.taxonomy.dictionary import dictionary_names, load_dictionary
from ombud.taxonomy.terms import load_terms, term_list_names
from ombud.text.tagging import STATED

BY_TERMS = frozenset({"topic", "coarse-topic", "severity", "explicit"})
"""The kinds of groups of texts that a dictionary tells, in preset *delicate*."""


_OPTIONS = frozenset({"builtin", "dictionary", "terms"})


def lists_named(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the term lists and dictionaries that a part of a plan names, and files of terms.

    A dictionary that takes terms from other lists names those as well. Lists go by their name
    without a version, and files by their path.

    Examples
    --------
    >>> sorted(lists_named({"type": "keyword", "builtin": "terms-identity@1"}))
    ['terms-identity']
    >>> sorted(lists_named({"type": "wrapped", "inner": {"type": "keyword", "path": "own.txt"}}))
    ['own.txt']
    """
    found: set[str] = set()
    lists = {name.partition("@")[0] for name in term_list_names()}
    dictionaries = {name.partition("@")[0] for name in dictionary_names()}
    for option, value in config.items():
        if isinstance(value, Mapping):
            found |= lists_named(value)
            continue
        if option == "path" and value:
            found.add(Path(str(value)).as_posix())
        if not isinstance(value, str) or not (option in _OPTIONS or "@" in value):
            continue
        if (name := value.partition("@")[0]) in lists | dictionaries:
            found.add(name)
            if name in dictionaries:
                origins = {term.origin.partition("@")[0] for term in load_dictionary(value).terms}
                found |= origins & lists
    return frozenset(found)


def _terms_of(names: frozenset[str]) -> frozenset[str]:
    """Return the terms of some shipped lists and dictionaries."""
    dictionaries = [name for name in dictionary_names() if name.partition("@")[0] in names]
    lists = [name for name in term_list_names() if name.partition("@")[0] in names]
    found = [term.text for name in dictionaries for term in load_dictionary(name).terms]
    found += [term.text for name in lists for term in load_terms(name).terms]
    return frozenset(term.casefold() for term in found)


def _written(config: Mapping[str, Any]) -> frozenset[str]:
    """Return the terms that a system's own configuration writes out."""
    found: set[str] = set()
    for option, value in config.items():
        if isinstance(value, Mapping):
            found |= _written(value)
        elif option == "terms" and not isinstance(value, str):
            found |= {str(term).casefold() for term in value or ()}
    return frozenset(found)


def tautologies(result: Result) -> Callable[[Estimate], bool]:
    """Return what tells whether a comparison of a result is true by definition.

    The lists that tell groups are those of the plan's options; where the data states its groups
    itself, no list does. A system decides by the same list when it names it, or writes out some
    of its terms.
    """
    plan = result.plan
    groups: frozenset[str] = frozenset()
    if plan.preset == "delicate":
        groups = lists_named({"dictionary": "delicate@1"} | dict(plan.options))
    elif plan.preset == "suppression" and tagged(result):
        own, shipped = plan.options.get("path"), plan.options.get("terms") or "terms-identity@2"
        groups = lists_named({"path": own} if own else {"terms": shipped})
    terms = _terms_of(groups)
    systems = {
        name
        for name, config in plan.systems.items()
        if lists_named(config) & groups or not terms.isdisjoint(_written(config))
    }

    def holds(e: Estimate) -> bool:
        told = e.group.partition("=")[0] in BY_TERMS or plan.preset != "delicate"
        return bool(e.group) and told and e.system in systems

    return holds


def tagged(result: Result) -> bool:
    """Return whether any group of an audit of texts was told by terms, not stated by the data."""
    stated = set(filter(None, str(result.card.facts.get(STATED, "")).split("\n")))
    sizes = result.tables.get("set-sizes")
    if sizes is None or not stated:
        return not stated
    return bool(set(sizes.filter(sizes["kind"] == "set")["name"].to_list()) - stated)
