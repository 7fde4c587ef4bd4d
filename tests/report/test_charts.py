"""Charts on two axes are well-formed SVG, and say in words what they draw."""

from __future__ import annotations

import xml.etree.ElementTree as ET

from ombud.report.charts import MOST, Dot, Line, plane, stacked, world

SHARE = ("share", 0.0, 1.0)


def _drawn(svg: str) -> ET.Element:
    return ET.fromstring(svg)


def _classes(root: ET.Element) -> list[str]:
    return [e.get("class", "") for e in root.iter()]


def test_lines_bands_and_dots_are_drawn():
    line = Line("a", [(0, 0), (1, 0.5)], band=[(0, 0, 0.1), (1, 0.4, 0.6)])
    dot = Dot("b", 0.5, 0.5, (0.4, 0.6), (0.3, 0.7), "b: 0.5")
    root = _drawn(plane("title", [line, dot], x=SHARE, y=SHARE, equal=True, nulls=(1.0, None)))
    kinds = _classes(root)
    assert {"s0", "a0 band", "a1", "s1", "null"} <= set(kinds)
    assert root.get("aria-label") == "title"
    assert "b: 0.5" in "".join(root.itertext())


def test_a_histogram_has_two_points_for_each_step():
    (path,) = (
        e for e in _drawn(plane("t", [Line("a", [(0, 1), (0.5, 2), (1, 2)], steps=True)],
                                x=SHARE, y=("n", 0, 2))).iter()
        if e.get("class") == "s0"
    )  # fmt: skip
    assert path.get("d", "").count("L") == 3


def test_what_lies_beyond_an_axis_stands_at_its_edge():
    (circle,) = (
        e for e in _drawn(plane("t", [Dot("a", 5, 0.5)], x=SHARE, y=SHARE)).iter()
        if e.tag == "circle"
    )  # fmt: skip
    assert float(circle.get("cx", "0")) == 366


def test_names_from_data_stay_text():
    hostile = '<script>alert("1")</script>'
    many = [Line(f"{hostile} {i}", [(0, 0), (1, 1)]) for i in range(MOST + 3)]
    root = _drawn(plane(hostile, many, x=SHARE, y=SHARE))
    assert not [e for e in root.iter() if e.tag == "script"]
    assert f"s{MOST}" not in _classes(root)


def test_stacked_shares_fill_each_column():
    root = _drawn(stacked("t", [(0, {"a": 0.25, "b": 0.75}), (50, {"a": 1.0})], "x", "y"))
    boxes = [e for e in root.iter() if e.tag == "rect"][2:]  # after the legend
    heights = [float(e.get("height", "0")) for e in boxes]
    assert heights[0] + heights[1] == heights[2]


def test_a_map_shades_from_lowest_to_highest():
    root = _drawn(
        world("scores", {"276": ("Germany", 0.9), "250": ("France", 0.1), "020": ("A", 0.5)})
    )
    told = {e.text: e for e in root.iter() if e.tag == "title"}
    assert set(told) == {"Germany: 0.9", "France: 0.1", "A: 0.5"}
    looks = [e.get("style", "") for e in root.iter() if e.tag in {"path", "circle"}]
    assert {"opacity:1.00", "opacity:0.12", "opacity:0.56"} <= set(looks)
    assert len(ET.tostring(root)) < 150_000
