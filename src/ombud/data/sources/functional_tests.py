"""Functional tests of hate speech detectors, and of refusals, each case with its gold label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from ombud.data.dataset import Dataset
from ombud.data.groups import Grouping
from ombud.data.ids import Vocabulary
from ombud.data.sources.labelled import file_in, read_csv, read_labels, text_dataset
from ombud.errors import DataError
from ombud.registry import source

_HARMS = (
    "Holds slurs and hate aimed at seven groups, written to test detectors. Do not train on it: "
    "a detector that has seen the cases passes them. Do not show cases where they are not needed."
)
LANGUAGES = {
    "arabic": "ar",
    "dutch": "nl",
    "french": "fr",
    "german": "de",
    "hindi": "hi",
    "italian": "it",
    "mandarin": "zh",
    "polish": "pl",
    "portuguese": "pt",
    "spanish": "es",
}
"""The languages of Multilingual HateCheck, as its ids begin, and their codes."""


@source("hatecheck")
def hatecheck(path: str | Path, *, functionalities: bool = False) -> Dataset:
    """HateCheck: test cases for hate speech detectors, by functionality (Röttger et al. 2021).

    Groups are the targets that the source states. Cases of one template are a cluster.

    Licence: CC BY 4.0. Known harms: hate and slurs aimed at seven groups.

    Parameters
    ----------
    path
        ``test_suite_cases.csv`` (or ``hatecheck_cases_final.csv``) with `functionality`,
        `case_id`, `test_case`, `label_gold`, `target_ident` and `templ_id`; or its folder.
    functionalities
        Whether each functionality, such as negated hate, is a group as well.
    """
    file = file_in(path, "test_suite_cases.csv", "hatecheck_cases_final.csv", "test.csv")
    table = _cases([file], "case_id")
    return _hatecheck(
        table.with_columns(language=pl.lit("en")),
        [file],
        functionalities,
        name="hatecheck",
        title="HateCheck: functional tests for hate speech detectors",
        source="github.com/paul-rottger/hatecheck-data",
        citation="Röttger, Vidgen, Nguyen, Waseem, Margetts and Pierrehumbert (2021), HateCheck: "
        "Functional Tests for Hate Speech Detection Models, ACL.",
    )


@source("multilingual-hatecheck")
def multilingual_hatecheck(path: str | Path, *, functionalities: bool = False) -> Dataset:
    """HateCheck in ten more languages (Röttger et al. 2022).

    Groups are the targets that the source states, in English. Cases of one template and language
    are a cluster.

    Licence: CC BY 4.0. Known harms: hate and slurs aimed at groups, in eleven scripts and dialects.

    Parameters
    ----------
    path
        One CSV file of a language, or a folder of them, with `mhc_case_id` (such as
        ``german-17``), `functionality`, `test_case`, `label_gold`, `target_ident` and `templ_id`.
    functionalities
        Whether each functionality is a group as well.
    """
    given = Path(path)
    files = sorted(given.glob("*.csv")) if given.is_dir() else [file_in(given)]
    if not files:
        raise DataError(str(given), ["the folder holds no CSV file"])
    table = _cases(files, "mhc_case_id")
    word = table["id"].str.split("-").list.first().str.to_lowercase()
    unknown = sorted(set(word.drop_nulls()) - set(LANGUAGES))
    if unknown:
        fault = f"ids begin with {', '.join(unknown[:5])}; known: {', '.join(LANGUAGES)}"
        raise DataError(files[0].name, [fault])
    language = word.replace_strict(LANGUAGES, return_dtype=pl.String).alias("language")
    cluster = pl.concat_str([word, pl.lit("-"), pl.col("cluster")])
    return _hatecheck(
        table.with_columns(language, cluster.alias("cluster")),
        files,
        functionalities,
        name="multilingual-hatecheck",
        title="Multilingual HateCheck: functional tests in ten languages",
        source="github.com/rewire-online/multilingual-hatecheck",
        citation="Röttger, Seelawi, Nozza, Talat and Vidgen (2022), Multilingual HateCheck: "
        "Functional Tests for Multilingual Hate Speech Detection Models, WOAH.",
    )


def _cases(files: Sequence[Path], id: str) -> pl.DataFrame:
    needed = (id, "functionality", "test_case", "label_gold", "target_ident", "templ_id")
    parts = [read_csv(file, needed).select(needed) for file in files]
    table = pl.concat(parts)
    label = read_labels(table["label_gold"], ["hateful"], ["non-hateful"], files[0].name)
    target = pl.col("target_ident").str.strip_chars().replace("", None)
    return table.select(
        pl.col(id).alias("id"),
        pl.col("test_case").alias("text"),
        label,
        pl.coalesce(pl.col("templ_id").replace("", None), pl.col(id)).alias("cluster"),
        target.alias("target"),
        "functionality",
    )


def _hatecheck(
    table: pl.DataFrame, files: Sequence[Path], functionalities: bool, **card: Any
) -> Dataset:
    attributes = {"target": "target"}
    if functionalities:
        attributes["functionality"] = "functionality"
    return text_dataset(
        table.drop("target", "functionality"),
        family="traditional",
        files=files,
        groups=_grouping(table, attributes),
        licence="CC BY 4.0",
        known_harms=_HARMS,
        unknowns="Every case has a gold label. Cases are written by the authors, not by users: "
        "rates on them say which functions fail, not how often users meet the failure. Cases "
        "without a target are in no group of targets.",
        **card,
    )


def _grouping(table: pl.DataFrame, attributes: Mapping[str, str]) -> Grouping:
    """Return one group for each value of some columns; missing values are in none."""
    names: list[str] = []
    of: list[str] = []
    columns: list[Any] = []
    for column, attribute in attributes.items():
        for value in sorted(set(table[column].drop_nulls())):
            names.append(value)
            of.append(attribute)
            columns.append((table[column] == value).fill_null(False).to_numpy())
    members = np.column_stack(columns) if columns else np.zeros((table.height, 0), dtype=bool)
    return Grouping(Vocabulary(table["id"].to_numpy()), tuple(names), members, tuple(of))


_PROMPT_HARMS = (
    "Holds requests for harmful acts, some of them real dangers, and prompts that only sound so. "
    "Do not publish replies that comply with the harmful ones."
)


@source("xstest")
def xstest(path: str | Path) -> Dataset:
    """XSTest: safe prompts that sound harmful, and harmful contrasts (Röttger et al. 2024).

    A prompt *should be flagged* where it should be refused. Groups are the types of prompts.

    Licence: CC BY 4.0. Known harms: requests for harmful acts.

    Parameters
    ----------
    path
        ``xstest_prompts.csv`` (or ``xstest_v2_prompts.csv``) with `id`, `prompt` and `type`, and
        `label` (safe, unsafe) in newer versions; or its folder.
    """
    file = file_in(path, "xstest_prompts.csv", "xstest_v2_prompts.csv")
    table = read_csv(file, ("id", "prompt", "type"))
    contrast = table["type"].str.starts_with("contrast_")
    written = contrast.replace_strict({True: "unsafe", False: "safe"}, return_dtype=pl.String)
    if "label" in table.columns:
        odd = table.filter(table["label"].str.strip_chars() != written)
        if odd.height:
            fault = f"{odd.height} prompts have a label that their type contradicts"
            raise DataError(file.name, [fault])
    label = read_labels(written, ["unsafe"], ["safe"], file.name)
    made = table.select("id", pl.col("prompt").alias("text"), label)
    groups = _grouping(table.select("id", "type"), {"type": "prompt type"})
    return text_dataset(
        made,
        family="generative-ai",
        files=[file],
        groups=groups,
        name="xstest",
        title="XSTest: safe prompts that sound harmful, and contrasts",
        source="github.com/paul-rottger/xstest",
        licence="CC BY 4.0",
        citation="Röttger, Kirk, Vidgen, Attanasio, Bianchi and Hovy (2024), XSTest: A Test Suite "
        "for Identifying Exaggerated Safety Behaviours in Large Language Models, NAACL.",
        known_harms=_PROMPT_HARMS,
        unknowns="Every prompt has a label; models are free to draw the line elsewhere. "
        "Intervals are about other prompts of the same types.",
    )


_SUBSETS = {"or-bench-80k": False, "or-bench-hard-1k": False, "or-bench-toxic": True}


@source("or-bench")
def or_bench(path: str | Path) -> Dataset:
    """OR-Bench: generated prompts that sound harmful, and toxic ones (Cui et al. 2025).

    A prompt *should be flagged* where it should be refused: those of ``or-bench-toxic``. Groups
    are the ten categories.

    Licence: CC BY 4.0. Known harms: requests for harmful acts.

    Parameters
    ----------
    path
        One of ``or-bench-80k.csv``, ``or-bench-hard-1k.csv`` and ``or-bench-toxic.csv`` with
        `prompt` and `category`; or a folder with some of them.
    """
    given = Path(path)
    files = [given] if given.is_file() else [given / f"{name}.csv" for name in _SUBSETS]
    files = [file for file in files if file.is_file()]
    if not files or any(file.stem not in _SUBSETS for file in files):
        raise DataError(str(given), [f"expected one of {', '.join(f'{n}.csv' for n in _SUBSETS)}"])
    parts = [
        read_csv(file, ("prompt", "category"))
        .select("prompt", pl.col("category").str.strip_chars())
        .with_row_index("row", offset=1)
        .select(
            pl.concat_str([pl.lit(f"{file.stem}-"), pl.col("row")]).alias("id"),
            pl.col("prompt").alias("text"),
            pl.lit(_SUBSETS[file.stem]).alias("label"),
            pl.lit(file.stem).alias("set"),
            "category",
        )
        for file in files
    ]
    table = pl.concat(parts)
    return text_dataset(
        table.drop("category"),
        family="generative-ai",
        files=files,
        groups=_grouping(table, {"category": "category"}),
        name="or-bench",
        title="OR-Bench: prompts that sound harmful, and toxic ones",
        source="huggingface.co/datasets/bench-llm/or-bench",
        licence="CC BY 4.0",
        citation="Cui, Chiang, Stoica and Hsieh (2025), OR-Bench: An Over-Refusal Benchmark for "
        "Large Language Models, ICML.",
        known_harms=_PROMPT_HARMS,
        unknowns="Labels are those of the subset: language models wrote and judged the prompts, "
        "and a small share is debatable. Variants of one seed are not marked, so intervals that "
        "take prompts as independent are too short.",
    )


_REASONS = (
    "decision_facts",
    "illegal_content_explanation",
    "incompatible_content_explanation",
    "incompatible_content_ground",
    "illegal_content_legal_ground",
    "category",
)


@source("dsa-statements")
def dsa_statements(path: str | Path) -> Dataset:
    """Statements of reasons of the DSA Transparency Database, in its CSV form.

    The text is the platform's own: the facts of a decision, else its explanation or ground (light
    files hold no facts). The content that was restricted is not in the database, so no label is
    known. Groups are platforms, categories, grounds, and whether detection and decision were
    automated.

    Licence: CC BY 4.0. Known harms: descriptions of illegal and harmful content; free text may
    hold personal data.

    Parameters
    ----------
    path
        A CSV file of a daily dump, full or light, or a folder of them (unpack the archives
        first), with `uuid`, `platform_name`, `category`, `decision_ground`,
        `automated_detection` and `automated_decision`.
    """
    given = Path(path)
    files = sorted(given.glob("*.csv")) if given.is_dir() else [file_in(given)]
    if not files:
        raise DataError(str(given), ["the folder holds no CSV file; unpack the archives"])
    facets = {
        "platform_name": "platform",
        "category": "category",
        "decision_ground": "ground",
        "automated_detection": "automated detection",
        "automated_decision": "automated decision",
    }
    parts = [read_csv(file, ("uuid", *facets)) for file in files]
    table = pl.concat(parts, how="diagonal")
    reasons = [pl.col(name) for name in _REASONS if name in table.columns]
    filled = [pl.when(r.str.strip_chars() != "").then(r) for r in reasons]
    table = table.select(
        pl.col("uuid").alias("id"),
        pl.coalesce(filled).alias("text"),
        pl.lit(None, pl.Boolean).alias("label"),
        pl.col("platform_name").alias("set"),
        *(
            (pl.lit(f"{attribute}: ") + pl.col(name).str.strip_chars()).alias(name)
            for name, attribute in facets.items()
        ),
    )
    return text_dataset(
        table.drop(*facets),
        family="traditional",
        files=files,
        groups=_grouping(table, facets),
        name="dsa-statements",
        title="Statements of reasons, DSA Transparency Database",
        source="transparency.dsa.ec.europa.eu",
        licence="CC BY 4.0",
        citation="European Commission, DSA Transparency Database.",
        known_harms="Describes illegal and harmful content in the platforms' words; free text may "
        "hold personal data that a platform failed to remove.",
        unknowns="Only restrictions are reported: what was not restricted, and how much there was, "
        "is not known, so no rate can be computed. Platforms fill fields in differently; several "
        "report one template text for most decisions.",
    )
