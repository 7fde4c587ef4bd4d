"""A page of documentation for each taxonomy, written from its file."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.taxonomy.model import Taxonomy, TaxonomyLabel


def taxonomy_page(taxonomy: Taxonomy) -> str:
    """Return a Markdown page: source, licence, counts, and every label by parent.

    Refused labels are counted and not named.

    Parameters
    ----------
    taxonomy
        The taxonomy.

    Examples
    --------
    >>> from ombud.taxonomy import load_taxonomy
    >>> print(taxonomy_page(load_taxonomy("delicate@1")).splitlines()[2][:18])
    Key: `delicate@1`.
    """
    count = f"{len(taxonomy.labels)} labels"
    if taxonomy.parents:
        count += f" under {len(taxonomy.parents)} parents"
    if taxonomy.published is not None:
        hidden = taxonomy.published - len(taxonomy.labels)
        count += f", of {taxonomy.published} published"
        if hidden:
            count += f" ({hidden} refused: rows that carry it are dropped and counted)"
    lines = [
        f"# {taxonomy.title}",
        "",
        f"Key: `{taxonomy.key}`. {count}.",
        "",
        f"Source: {taxonomy.source}",
        "",
        f"Licence: {taxonomy.licence}",
    ]
    for parent in taxonomy.parents:
        lines += ["", f"## {parent.title} (`{parent.id}`)"]
        if parent.description:
            lines += ["", parent.description]
        lines += _table(taxonomy.children(parent.id))
    top = [label for label in taxonomy.labels if not label.parent]
    if top:
        lines += _table(top)
    return "\n".join(lines) + "\n"


def _table(labels: Sequence[TaxonomyLabel]) -> list[str]:
    rows = [
        "| "
        + " | ".join(_cell(text) for text in (f"`{label.id}`", label.title, label.description))
        + " |"
        for label in labels
    ]
    return ["", "| id | title | description |", "|---|---|---|", *rows]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
