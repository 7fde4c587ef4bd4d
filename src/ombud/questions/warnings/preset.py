"""The warnings experiment: do recommenders show more of what people may want to avoid?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar

from ombud import registry
from ombud.audits.load import load_data
from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.data.dataset import Dataset
from ombud.data.frames import has_columns, open_frame
from ombud.errors import PlanError
from ombud.questions.warnings.amplification.tally import UnknownLabels
from ombud.questions.warnings.options import WarningsOptions
from ombud.registry import preset
from ombud.systems.base import Recommender
from ombud.taxonomy import load_taxonomy
from ombud.tuning.tuning import with_tuned

_MODELS: dict[str, dict[str, Any]] = {
    "Random": {"type": "random"},
    "TopPop": {"type": "popular"},
    "TopPop damped": {"type": "popular", "by": "damped-mean"},
    "SVD": {"type": "svd"},
    # NDCG@100 is .40 and .31 on two data sets, against .31 and .26 with the 40 of Hu et al.
    "ALS": {"type": "implicit-als", "alpha": 1.0},
}
_SEEDED = frozenset({"random", "svd", "implicit-als"})
_RERANKERS = {"avoid-list": "avoid list", "calibrated": "calibrated"}


@preset("warnings")
class WarningsPreset(Preset):
    """Train Random, TopPop and SVD or ALS; test labels, accuracy and amplification.

    The experiment of Kovacs, Kazemian, Chee and Dean, *Datasets for Navigating Sensitive Topics in
    Recommendation Systems*, on any interactions with labels. It fills in what the plan leaves
    open:

    - **systems**: Random, TopPop (by mean rating, or by count where there are no ratings), and SVD
      (ratings) or implicit ALS. A plan with systems of its own trains none of them, unless
      ``trained`` names some. A system of the plan with one of these names takes its place.
    - **split**: 10% of each user's interactions are held out, unless the data comes with a `test`
      part, or no system is trained (recorded lists cannot have been made without what would be
      held out; give `test` to measure their accuracy).
    - **metrics**: RMSE (where a system predicts ratings), precision, recall and F1 at 10, 50 and
      100; relevant is the user's own top quartile of ratings, or every held-out interaction.
      Amplification@k by label and as the user's average over labels: mean, median, ratio of means,
      log ratio; and the least and the greatest ratio of means that unknown labels allow. Items
      whose label is unknown do not count, unless the plan declares ``[data] unlabeled = "no"``:
      the paper's reading, which otherwise stands beside the headline.
    - **analyses**: popularity shift of each label, users' preference, distribution; they see all
      interactions, held out or not. Which labels people dispute, where they were voted on.
    - **sample**: 1,000 users are asked for lists.

    Labels that a detector gave, with its error rates (``ombud text label``): amplification is a
    ratio of means, corrected for the errors and with their doubt in its interval; the analyses,
    which would take the labels at their word, are left out unless the plan names them.

    The amplification of trained systems compares lists with the history they were trained on, the
    90% part; ``second_training`` gives that of systems trained on everything beside it.
    ``amplification_on = "everything"`` makes these the audited systems, as the paper does.
    """

    options: ClassVar[type[Options]] = WarningsOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with systems, metrics and analyses filled in."""
        options = _options(plan)
        measured = of_measured_labels(plan, frozenset(options.model_fields_set))
        options = options.model_copy(update=measured)
        plan = _declared(plan, options)
        options = options.model_copy(update={"unknown": _reading(plan, options)})
        explicit = _is_explicit(plan, options)
        systems = _systems(plan, options, explicit)
        if options.tuned:
            systems = with_tuned(systems, options.tuned, "preset 'warnings'")
        trains = any(_is_trained(config) for config in systems.values())
        held_out = plan.data.test is not None or bool(plan.split) or trains
        filled: dict[str, Any] = {"systems": systems}
        everything = options.amplification_on == "everything"
        apart = everything or options.item_share is not None
        _refuse_apart(plan, options, trains)
        if everything:
            filled["split"] = {}
        elif trains and plan.data.test is None and not plan.split:
            filled["split"] = {"method": "per-user", "share": 0.1}
        if not plan.metrics:
            accuracy = _accuracy(options, systems, explicit) if held_out and not apart else []
            amplified = _amplification(options, beside=not has_measured_labels(plan))
            filled["metrics"] = (*amplified, *accuracy, *_leaks(options, systems))
        # The analyses take labels at their word, and a system's word is not to be taken.
        if not plan.analyses and not has_measured_labels(plan):
            filled["analyses"] = tuple(_analyses(plan, options, explicit, held_out, apart=apart))
        if plan.sample is None:
            filled["sample"] = options.users
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = "Do recommenders show more of what people may want to avoid?"
        return plan.model_copy(update=filled)

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Gather labels under their parents."""
        options = _options(plan)
        if options.roll_up and data.labels is not None:
            labels = data.labels.rolled_up(_parents(options.roll_up, data.labels.names))
            data = replace(data, labels=labels)
        return data


def _refuse_apart(plan: Plan, options: WarningsOptions, trains: bool) -> None:
    """Refuse what leaves no room for training systems again for accuracy."""
    everything = options.amplification_on == "everything"
    given = 'amplification_on = "everything"' if everything else "item_share"
    if not everything and options.item_share is None:
        return
    fault = ""
    if not trains:
        fault = "the plan trains no system"
    elif plan.data.test is not None or plan.split.get("method", "per-user") != "per-user":
        fault = "it splits each user's interactions itself; remove [data] test and other splits"
    elif everything and options.second_training:
        fault = "systems are trained on everything already; remove second_training"
    if fault:
        raise PlanError(f"preset 'warnings': {given}: {fault}")


def _analyses(
    plan: Plan, options: WarningsOptions, explicit: bool, held_out: bool, *, apart: bool
) -> list[dict[str, Any]]:
    names = ("distribution", "popularity-shift", "user-preference")
    found: list[dict[str, Any]] = [{"name": name} for name in names]
    if plan.data.source is not None or has_columns(plan.data.labels, "yes", "no"):
        found.append({"name": "label-disagreement", "k": options.k})
    if options.second_training:
        about: dict[str, Any] = {"k": options.k, "smoothing": options.smoothing}
        about["unknown"] = options.unknown or "exclude"
        forms = [form for form in ("ratio-of-means", "mean") if form in options.forms]
        found.append({"name": "second-training", **about, "forms": forms or list(options.forms)})
    if apart or (options.accuracy_users == "all" and held_out):
        relevance = "top-quartile" if explicit else "presence"
        about = {"accuracy_at": list(options.accuracy_at), "relevance": relevance}
        if apart:
            about |= {"held_out": float(plan.split.get("share", 0.1))}
            about |= {"users": options.accuracy_users}
        if options.item_share is not None:
            about["item_share"] = options.item_share
        found.append({"name": "accuracy-of-everyone", **about})
    return found


def _parents(key: str, names: Sequence[str]) -> dict[str, str]:
    """Return the parent of each label that has one in a taxonomy."""
    taxonomy = load_taxonomy(key)
    of = taxonomy.to_parents()
    found = {
        name: taxonomy[of[label]].title
        for name in names
        if (label := taxonomy.resolve(name)) in of and label is not None
    }
    if not found:
        raise PlanError(
            f"preset 'warnings': roll_up = {key!r} has no parent for any of the data's labels; "
            "name the taxonomy that they come from (ombud describe NAME shows one)"
        )
    return found


def _options(plan: Plan) -> WarningsOptions:
    return WarningsOptions(**plan.options)


def _is_explicit(plan: Plan, options: WarningsOptions) -> bool:
    """Whether there are ratings; files are asked for their columns, a source must be read."""
    if options.feedback != "auto":
        return options.feedback == "explicit"
    if plan.data.source is None and plan.data.interactions is not None:
        return has_columns(plan.data.interactions, "rating")
    data = load_data(plan.model_copy(update={"split": {}}))
    if data.interactions is None or data.labels is None:
        lacking = "interactions" if data.interactions is None else "labels"
        raise PlanError(
            f"preset 'warnings' needs interactions and labels; the data has no {lacking}"
        )
    return data.interactions.explicit


def _systems(plan: Plan, options: WarningsOptions, explicit: bool) -> dict[str, dict[str, Any]]:
    wanted: tuple[str, ...] = options.trained or ()
    if options.trained is None and not plan.systems:
        wanted = ("Random", "TopPop", "SVD" if explicit else "ALS")
    systems = {name: _model(name, explicit, plan.seed) for name in wanted}
    systems |= plan.systems
    if not systems:
        raise PlanError("preset 'warnings': no system is left; name some in trained or [systems]")
    return systems | _rerankers(options, systems)


def _model(name: str, explicit: bool, seed: int) -> dict[str, Any]:
    config = dict(_MODELS[name])
    if name == "TopPop":
        config["by"] = "mean" if explicit else "count"
    if config["type"] in _SEEDED:
        config["seed"] = seed
    return config


def _rerankers(
    options: WarningsOptions, systems: dict[str, dict[str, Any]]
) -> dict[str, dict[str, Any]]:
    made: dict[str, dict[str, Any]] = {}
    faults: list[str] = []
    for index, asked in enumerate(options.rerankers, 1):
        config = dict(asked)
        kind, of = config.get("type"), config.pop("of", None)
        name = config.pop("name", None)
        if kind not in _RERANKERS:
            faults.append(f"reranker {index} has type {kind!r}; one of {', '.join(_RERANKERS)}")
        elif of not in systems:
            faults.append(f"reranker {index} is put around {of!r}; one of {', '.join(systems)}")
        else:
            name = name or _free_name(f"{of} + {_RERANKERS[kind]}", made)
            made[name] = config | {"inner": systems[of]}
    if faults:
        raise PlanError("\n".join(["preset 'warnings':", *(f"  - {fault}" for fault in faults)]))
    return made


def _free_name(name: str, taken: dict[str, Any]) -> str:
    if name not in taken:
        return name
    return next(new for i in range(2, len(taken) + 3) if (new := f"{name} {i}") not in taken)


def _is_trained(config: dict[str, Any]) -> bool:
    """Whether a system, or the one inside a reranker, learns from the data of the audit."""
    if "inner" in config:
        return _is_trained(config["inner"])
    kind = config.get("type")
    if kind not in registry.names("recommender"):
        return False
    factory = registry.get("recommender", str(kind))
    return isinstance(factory, type) and issubclass(factory, Recommender) and factory.trainable


def _declared(plan: Plan, options: WarningsOptions) -> Plan:
    """Return the plan with what ``[options] unknown`` says about unlabeled items under [data]."""
    word = {"no": "no", "exclude": "unknown"}.get(options.unknown or "")
    if word is None or has_measured_labels(plan):
        return plan
    given = plan.data.unlabeled
    if given not in (None, word):
        raise PlanError(
            f"preset 'warnings': [data] unlabeled is {given!r}, and [options] unknown, its older "
            f"name, is {options.unknown!r}; remove [options] unknown"
        )
    return plan.model_copy(update={"data": plan.data.model_copy(update={"unlabeled": word})})


def _reading(plan: Plan, options: WarningsOptions) -> UnknownLabels:
    """Return how unknown labels count: as the plan declares, else not at all."""
    if options.unknown is not None:
        return options.unknown
    told = (plan.data.unlabeled, *(plan.data.options.get(key) for key in ("unlabeled", "absent")))
    return "no" if "no" in told else "exclude"


def _amplification(options: WarningsOptions, *, beside: bool) -> list[dict[str, Any]]:
    """Return the amplifications; `beside` adds the paper's reading where another one counts."""
    common = {"k": options.k, "smoothing": options.smoothing, "unknown": options.unknown}
    metrics = [
        {"name": name, **common, "form": form}
        for name in ("amplification-user", "amplification")
        for form in options.forms
    ]
    if beside and options.unknown == "exclude":
        form = "mean" if "mean" in options.forms else options.forms[0]
        paper = common | {"unknown": "no", "form": form}
        metrics += [{"name": name, **paper} for name in ("amplification-user", "amplification")]
    if options.bounds:
        about = {"name": "amplification-user", **common, "form": "ratio-of-means"}
        metrics += [about | {"unknown": bound} for bound in ("lowest", "highest")]
    return metrics


def _accuracy(
    options: WarningsOptions, systems: dict[str, dict[str, Any]], explicit: bool
) -> list[dict[str, Any]]:
    relevance = "top-quartile" if explicit else "presence"
    metrics: list[dict[str, Any]] = []
    if explicit and any(_predicts_ratings(config) for config in systems.values()):
        metrics.append({"name": "rmse"})
    for k in options.accuracy_at:
        # Who is left without a list is not served better than who got a bad one.
        about = {"k": k, "relevance": relevance, "no_list": "zero"}
        metrics += [{"name": name, **about} for name in ("precision", "recall")]
        metrics.append({"name": "f1", **about, "average": "means"})
    return metrics


def _predicts_ratings(config: dict[str, Any]) -> bool:
    """Whether a system that is trained here says what rating a user would give."""
    if "inner" in config or not _is_trained(config):
        return False
    options = dict(config)
    kind = str(options.pop("type"))
    # The system itself knows: one ranked by counts has scores that are no ratings.
    system = registry.create("recommender", kind, options)
    return isinstance(system, Recommender) and bool(system.predicts_ratings)


def _leaks(options: WarningsOptions, systems: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    """Check avoid lists that hold for everyone; several with the same labels are checked once.

    Only they and the systems inside them: nobody has asked the others to leave anything out.
    """
    avoided: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    for config in systems.values():
        if config.get("type") == "avoid-list" and config.get("labels"):
            avoided.setdefault(tuple(config["labels"]), []).extend((config, config["inner"]))
    return [
        {"name": "avoid-leak", "k": options.k, "labels": list(labels)}
        | {"systems": [name for name, config in systems.items() if config in concerned]}
        | ({"about": ", ".join(labels)} if len(avoided) > 1 else {})
        for labels, concerned in sorted(avoided.items(), key=lambda pair: pair[0])
    ]


# Labels that a system gave, with error rates: what the warnings experiment can make of them.


def has_measured_labels(plan: Plan) -> bool:
    """Return whether the plan's file of labels holds the error rates of the system behind them."""
    if plan.data.source is not None or plan.data.labels is None:
        return False
    return "transport" in open_frame(plan.data.labels)[0].collect_schema().names()


def of_measured_labels(plan: Plan, given: frozenset[str]) -> dict[str, Any]:
    """Return the options to use with labels whose errors are known, unless the plan gives them.

    Only a ratio of means can be corrected for error rates, and every item has an answer, so there
    are no bounds for unknown labels.

    `given` are options that the plan itself gives; they stand.
    """
    if not has_measured_labels(plan):
        return {}
    wanted: dict[str, Any] = {"forms": ("ratio-of-means",), "bounds": False}
    return {name: value for name, value in wanted.items() if name not in given}
