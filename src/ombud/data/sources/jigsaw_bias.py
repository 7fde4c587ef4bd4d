"""Sentence templates filled with identity terms, toxic or not."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.sources.labelled import file_in, read_csv, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source
from ombud.taxonomy.terms import ATTRIBUTES, load_terms


def template_of(phrase: str, kind: str, terms: re.Pattern[str]) -> str:
    r"""Return a phrase without its identity term, and without the name or occupation in it.

    `kind` is that of the template, such as ``name_adj``; `terms` finds the identity terms.

    Examples
    --------
    >>> terms = re.compile(r"\b(deaf|old)\b")
    >>> template_of("Alex is a kind deaf friend", "name_adj", terms)
    'name_adj: is a kind _ friend'
    """
    if kind == "name_adj":
        phrase = phrase.partition(" ")[2]
    elif kind == "you_occupation":
        phrase = " ".join(phrase.split(" ")[:4])
    return f"{kind}: {terms.sub('_', phrase)}"


@source("jigsaw-bias")
def jigsaw_bias(path: str | Path, *, named_only: bool = False) -> Dataset:
    """Templates such as "I am _" filled with fifty identity terms (Dixon et al. 2018).

    The label is that of the template: the identity term must not change it. Phrases of one template
    are a cluster, because a moderator that errs on one mostly errs on all. Its groups are those of
    its own identity terms (``terms-jigsaw-bias@1``), each of which stands in known places: they
    are what the phrases state, not tags. Ten of the fifty terms name none of the nine groups.

    Licence: Apache-2.0. Known harms: insults that name identities.

    Parameters
    ----------
    path
        ``en_sentence_templates.csv`` with `template`, `toxicity` and `phrase`, or its folder.
    named_only
        Whether phrases that name none of the nine groups are left out, as in the
        speech-suppression paper.
    """
    file = file_in(path, "en_sentence_templates.csv")
    table = read_csv(file, ("template", "toxicity", "phrase"))
    # Each phrase of this kind is a verb and an identity term, which gives the list of terms.
    pairs = table.filter(pl.col("template") == "verb_adj")["phrase"].to_list()
    terms = sorted({pair.partition(" ")[2] for pair in pairs} - {""}, key=len, reverse=True)
    if not terms:
        raise DataError(file.name, ["no phrase of the template 'verb_adj' names a term"])
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, terms))})\b", re.IGNORECASE)
    rows = zip(table["phrase"].to_list(), table["template"].to_list(), strict=True)
    cluster = [template_of(phrase or "", kind or "", pattern) for phrase, kind in rows]
    label = read_labels(table["toxicity"], ["toxic"], ["nontoxic"], file.name)
    made = table.select(pl.col("phrase").alias("text"), label, pl.Series("cluster", cluster))
    made = made.with_row_index("id", offset=1).with_columns(pl.col("id").cast(pl.Int64))
    groups = _groups(made["text"].to_list(), made["id"].to_numpy())
    dropped = []
    if named_only:
        named = np.asarray(groups.members.any(axis=1))
        reason = "they name none of the nine groups"
        count = int(np.count_nonzero(~named))
        dropped.append(Exclusion("texts", "phrases", count, reason, len(named)))
        made = made.filter(named)
        ids = Vocabulary(groups.units.ids[named])
        groups = Grouping(ids, groups.names, groups.members[named], groups.attributes)
    return text_dataset(
        made,
        family="traditional",
        files=[file],
        exclusions=dropped,
        groups=groups,
        name="jigsaw-bias",
        title="Jigsaw's sentence templates with identity terms",
        source="github.com/conversationai/unintended-ml-bias-analysis",
        licence="Apache-2.0",
        citation="Dixon, Li, Sorensen, Thain and Vasserman (2018), Measuring and Mitigating "
        "Unintended Bias in Text Classification, AIES.",
        known_harms="Insults and threats that name identities, made by filling templates.",
        unknowns="Every phrase has a label. Phrases are made, not said by anyone; intervals are "
        "about other templates of the same kind.",
    )


def _groups(phrases: list[str], ids: NDArray[np.int64]) -> Grouping:
    """Return the groups that phrases name by the words of the templates."""
    listed = load_terms("terms-jigsaw-bias@1")
    of = {term.text.lower(): listed.groups.index(term.group) for term in listed.terms}
    longest = sorted(of, key=len, reverse=True)
    pattern = re.compile(rf"\b(?:{'|'.join(map(re.escape, longest))})\b", re.IGNORECASE)
    members = np.zeros((len(phrases), len(listed.groups)), dtype=bool)
    for row, phrase in enumerate(phrases):
        for word in pattern.findall(phrase or ""):
            members[row, of[word.lower()]] = True
    attributes = tuple(ATTRIBUTES.get(group, group) for group in listed.groups)
    return Grouping(Vocabulary(ids), listed.groups, members, attributes)
