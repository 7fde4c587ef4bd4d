"""The tables of a report as LaTeX, for a paper."""

from __future__ import annotations

from collections.abc import Sequence

from ombud.report.display import visible
from ombud.report.model import Cell, Section, Table

_SIGNS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "%": r"\%",
    "#": r"\#", "_": r"\_", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}",
    "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", '"': r"\textquotedbl{}",
    "[": "{[}", "]": "{]}", "`": r"\textasciigrave{}", "-": "{-}", "\u2212": "$-$",
    "\u2013": "--", "∞": r"$\infty$", "…": r"\ldots{}", "·": r"$\cdot$", "▲": r"$\blacktriangle$",
    "▼": r"$\blacktriangledown$", "△": r"$\vartriangle$", "▽": r"$\triangledown$",
    "⟨": r"$\langle$", "⟩": r"$\rangle$", "\u201c": "``", "\u201d": "''",
}  # fmt: skip
_TABLE = str.maketrans(_SIGNS)
_LONG = 35


def escape_latex(text: str) -> str:
    r"""Return text that LaTeX prints as it is.

    Examples
    --------
    >>> escape_latex(r"50% of a_b \\input{x}")
    '50\\% of a\\_b \\textbackslash{}\\textbackslash{}input\\{x\\}'
    """
    return visible(text).translate(_TABLE)


def to_latex(sections: Sequence[Section], warning: str = "") -> str:
    r"""Return every table with rules of ``booktabs``; long ones as ``longtable``.

    The text goes into a document with ``\usepackage{booktabs,longtable,amssymb,textcomp}`` and
    ``\usepackage[T1]{fontenc}``.

    `warning` is what must be read before all else; or empty.
    """
    head = (
        "% Tables of an audit report, made by ombud.\n"
        "% Needs: \\usepackage[T1]{fontenc} \\usepackage{booktabs,longtable,amssymb,textcomp}\n"
        "% Names in other scripts than Latin need XeLaTeX or LuaLaTeX and a font that has them.\n"
    )
    if warning:
        head += f"\n\\par\\textbf{{{escape_latex(warning)}}}\\par\n"
    tables = [b for s in sections for b in s.blocks if isinstance(b, Table)]
    return head + "".join(f"\n{_table(table)}" for table in tables)


def _table(table: Table) -> str:
    columns = "".join("r" if column.numeric else "l" for column in table.columns)
    if any(len(_text(cell)) > 60 for row in table.rows for cell in row):
        width = f"p{{{0.9 / len(table.columns):.2f}\\linewidth}}"
        columns = width * len(table.columns)
    heads = _row([column.title for column in table.columns])
    if table.heading:
        spans = (f"\\multicolumn{{{n}}}{{c}}{{{escape_latex(t)}}}" for t, n in table.heading)
        heads = f"{' & '.join(spans)} \\\\\n{heads}"
    rows = "".join(_row([_text(cell) for cell in row]) for row in table.rows)
    caption = f"\\caption{{{escape_latex(table.caption)}}}\\label{{tab:{table.name}}}"
    notes = "".join(f"\\par\\footnotesize {escape_latex(note)}\n" for note in table.notes)
    if len(table.rows) > _LONG:
        return (
            f"\\begin{{longtable}}{{{columns}}}\n{caption}\\\\\n\\toprule\n{heads}\\midrule\n"
            f"\\endhead\n\\bottomrule\n\\endfoot\n{rows}\\end{{longtable}}\n{notes}"
        )
    return (
        f"\\begin{{table}}\n\\centering\n{caption}\n\\begin{{tabular}}{{{columns}}}\n\\toprule\n"
        f"{heads}\\midrule\n{rows}\\bottomrule\n\\end{{tabular}}\n{notes}\\end{{table}}\n"
    )


def _text(cell: Cell) -> str:
    mark = {"increase": "\u25b2 ", "decrease": "\u25bc "}.get(cell.status, "")
    return f"{mark}{cell.text} [{cell.small}]" if cell.small else f"{mark}{cell.text}"


def _row(texts: Sequence[str]) -> str:
    return f"{' & '.join(escape_latex(text) for text in texts)} \\\\\n"
