"""Names that are similar but not the same, through splink: an extra, off by default.

Only creators that no id and no exact name has matched are compared. Such matches are kept apart
(``via = "similar"``), and the report counts them.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from ombud.errors import require
from ombud.link.store import LinkTables


def similar_names(left: pl.DataFrame, right: pl.DataFrame, threshold: float) -> pl.DataFrame:
    """Return pairs of similar names: `left`, `right` (their numbers) and `probability`.

    Names are compared, without accents, when they share the last word, or its first three letters
    and the first letter of all; the comparison is Jaro-Winkler on the last word and on the rest.

    Parameters
    ----------
    left, right
        `number` and `key` (a normalised name).
    threshold
        The probability from which a pair counts.
    """
    require("splink", "fuzzy")
    import splink.comparison_library as cl
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            cl.JaroWinklerAtThresholds("given", [0.95, 0.88]).configure(
                m_probabilities=[0.80, 0.12, 0.05, 0.03],
                u_probabilities=[0.02, 0.01, 0.03, 0.94],
            ),
            cl.JaroWinklerAtThresholds("family", [0.95, 0.90]).configure(
                m_probabilities=[0.90, 0.07, 0.02, 0.01],
                u_probabilities=[0.002, 0.002, 0.01, 0.986],
            ),
        ],
        blocking_rules_to_generate_predictions=[
            block_on("family"),
            block_on("substr(family, 1, 3)", "substr(given, 1, 1)"),
        ],
        probability_two_random_records_match=1e-3,
        unique_id_column_name="number",
    )
    api: Any = DuckDBAPI()
    frames = [
        api.register(_words(frame).to_arrow(), dataset_display_name=name)
        for name, frame in (("left_names", left), ("right_names", right))
    ]
    linker = Linker(frames, settings, log_level="ERROR")
    found: Any = linker.inference.predict(threshold_match_probability=threshold)
    table = pl.DataFrame(found.as_record_list(), infer_schema_length=None)
    if not table.height:
        return pl.DataFrame(
            schema={"left": pl.UInt32, "right": pl.UInt32, "probability": pl.Float64}
        )
    swapped = pl.col("source_dataset_l") == "right_names"
    return table.select(
        left=pl.when(swapped).then("number_r").otherwise("number_l"),
        right=pl.when(swapped).then("number_l").otherwise("number_r"),
        probability="match_probability",
    )


def _words(frame: pl.DataFrame) -> pl.DataFrame:
    plain = pl.col("key").str.normalize("NFKD").str.replace_all(r"\p{M}+", "")
    parts = plain.str.split(" ")
    return frame.select(
        "number",
        given=parts.list.head(parts.list.len() - 1).list.join(" "),
        family=parts.list.last(),
    )


def add_fuzzy_matches(tables: LinkTables, threshold: float) -> int:
    """Match people that nothing has matched to authority records of similar names; count them."""
    matches = tables.scan("matches").collect()
    keys = tables.scan("person_keys").filter(~pl.col("placeholder")).collect()
    open_people = keys.join(matches, on="person", how="anti").unique("person", maintain_order=True)
    authorities = tables.scan("authority_keys").collect()
    authorities = authorities.unique("authority", keep="first", maintain_order=True)
    left = open_people.select(number="person", key="key")
    right = authorities.select(number="authority", key="key")
    if not left.height or not right.height:
        return 0
    pairs = similar_names(left, right, threshold)
    found = pairs.join(right.rename({"number": "right"}), on="right").select(
        person=pl.col("left").cast(pl.UInt32),
        authority=pl.col("right").cast(pl.UInt32),
        key="key",
        via=pl.lit("similar"),
    )
    tables.write("matches", pl.concat([matches, found.select(matches.columns)]))
    return found.height
