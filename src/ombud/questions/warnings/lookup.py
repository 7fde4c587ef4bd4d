"""What a result holds of the warnings experiment."""

from __future__ import annotations

from collections.abc import Iterable

from ombud.audits.result import MetricInfo, Result
from ombud.report.findings import EstimateSet, estimates_of, infos_of, key_of_metric, reading
from ombud.stats.estimate import Estimate

FORMS = {
    "mean": "mean",
    "median": "median",
    "ratio-of-means": "ratio of means",
    "log-ratio": "mean log ratio",
}
"""The forms of an amplification, and their names in words."""

_ACCURACY = ("rmse", "mae", "precision", "recall", "f1", "ndcg", "mrr", "hit-rate")
_REMEDIES = frozenset({"avoid-list", "calibrated"})


def amplification_infos(result: Result, name: str) -> dict[str, MetricInfo]:
    """Return the amplifications of a kind by form, those that are bounds as lowest and highest.

    Parameters
    ----------
    result
        What an audit found.
    name
        ``amplification`` or ``amplification-user``.
    """
    found: dict[str, MetricInfo] = {}
    for info in infos_of(result, name):
        unknown = info.spec.get("unknown", "no")
        bound = unknown in {"lowest", "highest"}
        found.setdefault(unknown if bound else info.spec.get("form", "mean"), info)
    order = [*FORMS, "lowest", "highest"]
    return {form: found[form] for form in order if form in found}


def paper_infos(result: Result, name: str) -> list[MetricInfo]:
    """Return the paper's reading, unlabeled items as *no*, where the headline has another one."""
    chief = set(map(id, amplification_infos(result, name).values()))
    return [
        info
        for info in infos_of(result, name)
        if info.spec.get("unknown", "no") == "no" and id(info) not in chief
    ]


def chief_amplification(result: Result) -> MetricInfo | None:
    """Return the amplification that answers the question: the ratio of means, or the mean."""
    infos = amplification_infos(result, "amplification-user")
    return infos.get("ratio-of-means") or infos.get("mean")


def again_infos(result: Result, analysis: str, *, rmse: bool = False) -> list[MetricInfo]:
    """Return what was measured again by an analysis, as the metrics that it measured.

    Parameters
    ----------
    result
        What was found.
    analysis
        ``second-training`` or ``accuracy-of-everyone``.
    rmse
        Whether RMSE is wanted, or everything else.
    """
    found: dict[str, MetricInfo] = {}
    for e in result.estimates:
        told = e.details.get("again")
        if e.group or e.kind != "level" or not isinstance(told, dict):
            continue
        if told.get("by") == analysis and (told.get("name") == "rmse") is rmse:
            found.setdefault(e.key, MetricInfo({"k": told.get("k")}, e.metric, key=e.key))
    return list(found.values())


def unknown_ranges(result: Result) -> dict[str, tuple[float, float]]:
    """Return for each system between what the ratio of means lies, whatever is unknown.

    Systems whose ends are equal are left out: no unknown label bears on them.
    """
    infos = amplification_infos(result, "amplification-user")
    if not {"lowest", "highest"} <= set(infos):
        return {}
    ends: dict[str, tuple[float, float]] = {}
    for system in at_systems(result, infos["lowest"]):
        low, high = (level(result, infos[bound], system) for bound in ("lowest", "highest"))
        if low and high and low.value is not None and high.value is not None:
            ends[system] = (low.value, high.value)
    return {system: (low, high) for system, (low, high) in ends.items() if high > low}


def bounds_are_there(result: Result) -> bool:
    """Whether it was measured how far unknown labels could move the answer."""
    return {"lowest", "highest"} <= set(amplification_infos(result, "amplification-user"))


def disagreeing(result: Result, system: str) -> Estimate | None:
    """Return the paper's mean of ratios where its sign is not that of the ratio of means.

    Only where at least one of the two is clear; None otherwise, or when one was not measured.
    """
    infos = amplification_infos(result, "amplification-user")
    if not {"mean", "ratio-of-means"} <= set(infos):
        return None
    mean = next(iter(paper_infos(result, "amplification-user")), infos["mean"])
    chief, paper = (level(result, info, system) for info in (infos["ratio-of-means"], mean))
    if chief is None or paper is None or chief.value is None or paper.value is None:
        return None
    clear = {"above", "below"} & {reading(chief), reading(paper)}
    return paper if clear and chief.value * paper.value < 0 else None


def leak_infos(result: Result) -> list[MetricInfo]:
    """Return the metrics of what gets through avoid lists."""
    return list(infos_of(result, "avoid-leak"))


def lists_lost(result: Result, system: str) -> tuple[int, int] | None:
    """Return how many lists an avoid list shortened and emptied; None for other systems."""
    if result.plan.systems.get(system, {}).get("type") != "avoid-list":
        return None
    lost = [e for e in result.exclusions if e.system == system]
    shortened, emptied = (
        sum(e.count for e in lost if e.key == f"avoid-list/{how}")
        for how in ("shortened", "emptied")
    )
    return shortened, emptied


def accuracy_infos(result: Result) -> list[MetricInfo]:
    """Return the metrics of accuracy, in the order of the result."""
    return [info for info in result.metrics if info.spec.get("name") in _ACCURACY]


def chief_accuracy(result: Result) -> MetricInfo | None:
    """Return the accuracy that amplification is set against: recall of the longest lists."""
    infos = accuracy_infos(result)
    for name in ("recall", "ndcg", "hit-rate", "mrr", "f1", "precision"):
        some = [info for info in infos if info.spec["name"] == name]
        if some:
            return max(some, key=lambda info: int(info.spec.get("k", 0)))
    return None


def overall(
    result: Result, about: MetricInfo | str, labels: Iterable[str] | None = None
) -> EstimateSet | None:
    """Return the levels of everyone of one metric, of some labels only if they are named.

    The numbers of an analysis, which is of no system and is named by its key, are all taken.
    """
    wanted = None if labels is None else set(labels)
    some = tuple(
        e
        for e in estimates_of(result, about)
        if (not e.system or (not e.group and e.kind == "level"))
        and (wanted is None or e.label in wanted)
    )
    if not some:
        return None
    info = about if isinstance(about, MetricInfo) else MetricInfo({}, some[0].metric, key=about)
    return EstimateSet(info, "overall", some)


def level(result: Result, info: MetricInfo, system: str, label: str = "") -> Estimate | None:
    """Return the value of one system for everyone."""
    return result.one(key_of_metric(info), system=system, label=label, group="", kind="level")


def contrast(
    result: Result, info: MetricInfo, one: str, other: str, label: str = ""
) -> Estimate | None:
    """Return the difference of two systems on the same users, the first minus the second."""
    for e in estimates_of(result, info):
        if e.group or e.label != label or e.kind == "level":
            continue
        if (e.system, e.against) == (one, other):
            return e
        if (e.system, e.against) == (other, one):
            return _turned(e)
    return None


def _turned(e: Estimate) -> Estimate:
    """Return the same difference seen from the other side."""
    if e.value is None:
        return e.replace(system=e.against, against=e.system)
    ends = None if e.interval is None else (-e.interval[1], -e.interval[0])
    return e.replace(system=e.against, against=e.system, value=-e.value, interval=ends)


def at_systems(result: Result, info: MetricInfo) -> list[str]:
    """Return the systems that a metric was measured on, in order."""
    return list(dict.fromkeys(e.system for e in estimates_of(result, info) if e.kind == "level"))


def base_of(result: Result, system: str) -> str | None:
    """Return the system that a remedy was put around, if it was measured too."""
    config = result.plan.systems.get(system, {})
    if config.get("type") not in _REMEDIES:
        return None
    for name, other in result.plan.systems.items():
        if name != system and other == config.get("inner"):
            return name
    return None


def common_labels(result: Result, most: int) -> list[str]:
    """Return the labels that the most items are known to carry, most common first."""
    table = result.tables.get("label-status")
    if table is not None and {"label", "yes"} <= set(table.columns):
        return list(table.sort("yes", descending=True, maintain_order=True)["label"][:most])
    table = result.tables.get("popularity-shift")
    if table is not None:
        return list(table.sort("with", descending=True, maintain_order=True)["label"][:most])
    return list(dict.fromkeys(e.label for e in result.estimates if e.label))[:most]
