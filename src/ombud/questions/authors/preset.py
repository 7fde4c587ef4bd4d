"""The authors study: whose work is catalogued, read and recommended?"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from ombud.audits.load import load_data
from ombud.audits.plan import Plan
from ombud.audits.presets import Options, Preset
from ombud.data.dataset import Dataset
from ombud.data.exclusions import Exclusion
from ombud.data.frames import open_frame
from ombud.data.items import LABEL
from ombud.errors import PlanError
from ombud.questions.authors.creators import by_genre, creators_of
from ombud.questions.authors.options import AuthorsOptions
from ombud.questions.authors.reranking import CreatorReranking, hold_one_out
from ombud.registry import preset
from ombud.rng import generator
from ombud.tuning.tuning import tuned_values, with_tuned

_NAME = "preset 'authors'"
_INFERRED = "inferred_identities"


def _options(plan: Plan) -> AuthorsOptions:
    options = AuthorsOptions(**plan.options)
    compared = [name for name in plan.by_item if name != LABEL]
    if not options.attribute and len(compared) == 1:
        return options.model_copy(update={"attribute": compared[0]})
    return options


@preset("authors")
class AuthorsPreset(Preset):
    """Catalogue, profiles, lists, propagation and reranking, by an identity of the creators.

    The study of Ekstrand and Kluver, *Exploring author gender in book rating and recommendation*,
    on any interactions with a table of items, any attribute of their creators and any number of
    identities. It fills in what the plan leaves open:

    - **users**: 5,000 with at least 5 items of known identity, whose whole histories are trained
      on; and 5,000 others with at least 5 interactions of any kind, one of each held out, for
      accuracy. Where there are too few for both, half of those with enough known items are taken.
    - **systems**: user-kNN, item-kNN and ALS; with implicit feedback BPR too; seven with both.
      Parameters come from folders of ``ombud tune``, where there are some.
    - **metrics**: list balance and its gap to the profile, plain and by exposure; coverage and
      distinct share; MRR, hit rate and NDCG at 100.
    - **analyses**: the catalogue (RQ1), profiles and lists with the two lists for everyone (RQ2,
      RQ3), propagation (RQ4), reranking (RQ5).
    """

    options: ClassVar[type[Options]] = AuthorsOptions

    def complete(self, plan: Plan) -> Plan:
        """Return the plan with systems, metrics and analyses filled in."""
        options = _options(plan)
        given = plan.data.test is not None or bool(plan.split)
        held_out = not options.train_apart and (given or options.accuracy_users > 0)
        if options.train_apart and (given or not options.accuracy_users):
            raise PlanError(
                f"{_NAME}: train_apart holds out interactions itself; give accuracy_users, and "
                "remove [data] test and [split]"
            )
        filled: dict[str, Any] = {"systems": _systems(plan, options)}
        if not plan.metrics:
            filled["metrics"] = tuple(_metrics(options, held_out))
        if not plan.analyses:
            filled["analyses"] = (*_analyses(options), *_tuning(filled["systems"], options))
        if plan.title == type(plan).model_fields["title"].default:
            filled["title"] = "Whose work is catalogued, read and recommended?"
        return plan.model_copy(update=filled)

    def prepare(self, plan: Plan, data: Dataset) -> Dataset:
        """Return the data with both samples drawn, and one interaction of the second held out."""
        options = _options(plan)
        creators = creators_of(data, options.attribute, _NAME)
        assert data.interactions is not None  # creators_of has checked
        if data.card.facts.get(_INFERRED) == "yes" and not options.inferred:
            raise PlanError(
                f"{_NAME}: identities of this data were inferred, such as from first names; say "
                "inferred = true under [options] to use them, and every figure will say so"
            )
        # What would fail after training is said before it.
        for asked in _analyses(options):
            if asked["name"] == "creator-reranking":
                about = {name: value for name, value in asked.items() if name != "name"}
                CreatorReranking(**about).check(creators, data)
        by_genre(creators, data, options.genres)
        if options.feedback == "both" and not data.interactions.explicit:
            raise PlanError(f"{_NAME}: feedback = 'both' needs ratings, and this data has none")
        if options.feedback == "implicit" and data.interactions.explicit:
            title = f"{data.card.title or data.card.name}; ratings are ignored here"
            card = data.card.model_copy(update={"title": title})
            data = replace(data, interactions=data.interactions.without_ratings(), card=card)
            if data.test is not None:
                data = replace(data, test=data.test.without_ratings())
        assert data.interactions is not None
        known = creators.in_profiles(data.interactions, data.interactions.users.arrow).sum(axis=1)
        return _sampled(plan, options, data, np.flatnonzero(known >= options.least))


def _sampled(plan: Plan, options: AuthorsOptions, data: Dataset, viable: Any) -> Dataset:
    interactions = data.interactions
    assert interactions is not None
    if not len(viable):
        raise PlanError(
            f"{_NAME}: no user has {options.least} items of known identity; lower `least`, or link "
            "more items"
        )
    order = generator(plan.seed, "authors", "users").permutation(viable)
    given = data.test is not None or bool(plan.split)
    draws = not given and options.accuracy_users > 0
    room = max(1, len(viable) // 2) if draws and len(viable) < 2 * options.users else len(viable)
    first = order[: min(options.users, room)]
    chosen = np.zeros(interactions.n_users, dtype=bool)
    chosen[first] = True
    few = Exclusion(
        "sample", "users", interactions.n_users - len(viable),
        f"fewer than {options.least} items of known identity; systems are trained on them all "
        "the same", interactions.n_users,
    )  # fmt: skip
    rest = Exclusion(
        "sample", "users", len(viable) - len(first),
        "enough items of known identity, but not drawn into the sample of profiles", len(viable),
    )  # fmt: skip
    kept = tuple(e for e in (few, rest) if e.count)
    interactions = replace(interactions, exclusions=(*interactions.exclusions, *kept))
    if not draws or options.train_apart:
        users = interactions.users.take(np.flatnonzero(chosen))
        return replace(data, interactions=interactions, audited=users)
    second, held = hold_one_out(interactions, chosen, options.accuracy_users, plan.seed)
    chosen[second] = True
    return replace(
        data,
        interactions=interactions.select(~held),
        test=replace(interactions.select(held), exclusions=()) if len(second) else None,
        audited=interactions.users.take(np.flatnonzero(chosen)),
    )


def _explicit(plan: Plan, options: AuthorsOptions) -> bool:
    """Whether systems are trained on ratings; files are asked for their columns."""
    if options.feedback != "auto":
        return options.feedback == "explicit"
    if "feedback" in plan.data.options:
        return bool(plan.data.options["feedback"] == "explicit")
    if plan.data.source is None and plan.data.interactions is not None:
        return "rating" in open_frame(plan.data.interactions)[0].collect_schema().names()
    data = load_data(plan.model_copy(update={"preset": None, "split": {}}))
    return data.interactions is not None and data.interactions.explicit


def _systems(plan: Plan, options: AuthorsOptions) -> dict[str, dict[str, Any]]:
    wanted: tuple[str, ...] | None = options.trained
    systems: dict[str, dict[str, Any]] = {}
    if wanted is None and plan.systems:
        wanted = ()
    if wanted is None or wanted:
        if options.feedback == "both":
            systems = _in_both_forms(plan, wanted)
        else:
            explicit = _explicit(plan, options)
            models = _models(plan, explicit)
            if wanted is None:
                wanted = tuple(models) if not explicit else tuple(models)[:3]
            systems = {name: models[name] for name in wanted}
    systems |= plan.systems
    if not systems:
        raise PlanError(f"{_NAME}: no system is left; name some in trained or under [systems]")
    return with_tuned(systems, options.tuned, _NAME) if options.tuned else systems


def _models(plan: Plan, explicit: bool) -> dict[str, dict[str, Any]]:
    return {
        "user-kNN": {"type": "user-knn"},
        "item-kNN": {"type": "item-knn"},
        "ALS": {"type": "explicit-als" if explicit else "implicit-als", "seed": plan.seed},
        "BPR": {"type": "bpr", "seed": plan.seed},
    }


def _in_both_forms(plan: Plan, wanted: tuple[str, ...] | None) -> dict[str, dict[str, Any]]:
    """Return each model with ratings and without; BPR knows only the latter."""
    systems: dict[str, dict[str, Any]] = {}
    for explicit in (True, False):
        for name, config in _models(plan, explicit).items():
            if wanted is not None and name not in wanted:
                continue
            if name == "BPR":
                systems |= {} if explicit else {name: config}
            elif explicit:
                systems[f"{name} explicit"] = config
            else:
                systems[f"{name} implicit"] = config | {"ignore_ratings": True}
    return systems


def _metrics(options: AuthorsOptions, held_out: bool) -> list[dict[str, Any]]:
    about: dict[str, Any] = {"k": options.k, "least": options.least}
    if options.attribute:
        about["attribute"] = options.attribute
    found = [
        {"name": name, **about, **({"exposure": True} if exposure else {})}
        for name in ("balance-gap", "list-balance")
        for exposure in (False, True)
    ]
    found += [{"name": name, "k": options.k} for name in ("coverage", "distinct-share")]
    if held_out:
        found += [
            {"name": name, "k": options.accuracy_at, "no_list": "zero"}
            for name in ("mrr", "hit-rate", "ndcg")
        ]
    return found


def _tuning(systems: dict[str, dict[str, Any]], options: AuthorsOptions) -> list[dict[str, Any]]:
    """Return what shows the values of the search, for each metric that was searched for."""
    if not options.tuned:
        return []
    found: dict[str, dict[str, float]] = {}
    for name, (metric, value) in tuned_values(systems, options.tuned, _NAME).items():
        found.setdefault(metric, {})[name] = value
    return [{"name": "creator-tuning", "metric": m, "values": v} for m, v in found.items()]


def _analyses(options: AuthorsOptions) -> list[dict[str, Any]]:
    about: dict[str, Any] = {"attribute": options.attribute} if options.attribute else {}
    size = {"k": options.k, "least": options.least}
    catalogue = {"catalogue": str(options.catalogue)} if options.catalogue else {}
    everyone = {"creators": str(options.creators)} if options.creators else {}
    propagation: dict[str, Any] = {
        "splits": options.splits,
        "residual_rate": options.residual_rate,
        "placebo": options.placebo,
        **({"points": True} if options.points else {}),
        "genres": list(options.genres),
    }
    reranking: dict[str, Any] = {
        "accuracy_at": options.accuracy_at,
        "candidates": "all"
        if options.candidates == "all"
        else max(options.candidates, options.k, options.accuracy_at),
        "strategies": list(options.strategies),
        **({"exposure": True} if options.exposure else {}),
        **({"fewest_items": options.fewest_items} if options.fewest_items != 50 else {}),
    }
    if options.target is not None:
        reranking["target"] = options.target
    if options.minimum_for:
        reranking["minimum_for"] = options.minimum_for
    measured = {"name": "creator-accuracy", **about, **size, **reranking}
    measured["accuracy_users"] = options.accuracy_users
    if options.train_apart:
        reranking["apart"] = True
    return [
        {"name": "creator-catalogue", **about, **catalogue, **everyone},
        {"name": "creator-lists", **about, **size, **everyone},
        {"name": "creator-propagation", **about, **size, **propagation},
        *(
            [{"name": "creator-reranking", **about, **size, **reranking}]
            if options.strategies
            else []
        ),
        *([measured] if options.train_apart else []),
    ]
