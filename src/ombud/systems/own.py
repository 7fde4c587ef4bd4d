"""Your own system: plain answers of functions and objects, checked and brought into form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from inspect import signature
from itertools import chain
from typing import Any, Literal, Self

import numpy as np
from numpy.typing import NDArray

from ombud.data.dataset import Dataset
from ombud.data.decisions import Decisions, Outcome
from ombud.data.exclusions import Exclusion
from ombud.data.ids import Ids
from ombud.data.interactions import Interactions
from ombud.data.reading import PLAIN, Reading
from ombud.data.recommendations import Recommendations
from ombud.data.texts import Texts
from ombud.errors import AuditedSystemError, DataError, OmbudError, PlanError
from ombud.systems.base import Moderator, Progress, Recommender
from ombud.systems.moderators.huggingface import HuggingFaceModerator
from ombud.systems.moderators.sklearn_pipeline import SklearnModerator
from ombud.systems.recommenders.adapters.answers import as_answer, gather
from ombud.systems.recommenders.adapters.peers import ImplicitRecommender, LensKitRecommender
from ombud.systems.recorded import RecordedDecisions
from ombud.systems.saved_outputs import flagged_labels, read_nested

_LISTS = """such as:
  def recommend(users, n):
      return {user: ["item 1", "item 2"][:n] for user in users}"""
_DECIDED = """such as:
  def moderate(texts):
      return [len(text) > 200 for text in texts]"""
_ANSWER_KEYS = {"flagged", "score", "categories"}


@dataclass
class OwnRecommender(Recommender):
    """A function, or an object of another class, as a recommender.

    Parameters
    ----------
    function
        Takes user ids and the length of a list; returns lists in the order of the users, a dict
        of lists by user, an array of users x places, such an array of ids and one of scores, or a
        frame (`user`, `item`, and `rank` or `score`). Or an object whose `recommend` does that.
    name
        The system's name in the report.
    recommends_seen
        Whether lists may hold items of the user's own history; without it they are refused.
    train_copy
        Whether the audit trains a copy of the object with its `fit(interactions)`. Without it the
        object is used as it is: what you fitted is never changed.
    """

    function: Any
    name: str = "own"
    recommends_seen: bool = False
    train_copy: bool = False

    def __post_init__(self) -> None:
        self._trained: Any = None
        self.trainable = self.train_copy
        if self.train_copy and not callable(getattr(self.function, "fit", None)):
            raise PlanError(
                f"{self.name}: train_copy = True needs an object with fit(interactions)"
            )

    def fit(self, interactions: Interactions, *, progress: Progress | None = None) -> Self:
        """Train a copy of the object on interactions, if that was asked for."""
        if self.train_copy:
            self._trained = deepcopy(self.function)
            self._trained.fit(interactions)
        return self

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the lists of some users, checked."""
        system = self.function if self._trained is None else self._trained
        recommend = getattr(system, "recommend", system)
        return read_lists(self.name, recommend(users, n), users, n)


@dataclass
class OwnModerator(Moderator):
    """A function, or an object of another class, as a moderator.

    Parameters
    ----------
    function
        Takes a list of strings; returns, in their order, booleans (flagged or not), scores from 0
        to 1, or dicts (`flagged`, `score`, `categories`); or a dict of these by text id, or a
        frame with `id`; or labels with scores, as Hugging Face pipelines return them. Or an object
        whose `moderate` does that; one with a name gets `Texts`.
    name
        The system's name in the report.
    threshold
        A score that reaches it flags.
    flagged
        Labels that mean flagged, where their names do not tell.
    """

    function: Any
    name: str = "own"
    threshold: float = 0.5
    flagged: Sequence[str] = ()

    def moderate(self, texts: Texts, *, progress: Progress | None = None) -> Decisions:
        """Return one outcome per text, checked."""
        moderate = getattr(self.function, "moderate", self.function)
        # An object with a name was written as moderators are.
        asked = texts if moderate is not self.function and _named(self.function) else list(texts)
        answer = moderate(asked)
        return read_decisions(self.name, answer, texts, self.threshold, self.flagged)


class _OtherRecommender(Recommender):
    """An object of a class that is no `Recommender`, with what it has of one."""

    def __init__(self, system: Any, name: str) -> None:
        self.name, self._system = name, system
        # One with a name was written as recommenders are, and may know what it shows.
        self.recommends_seen = getattr(system, "recommends_seen", None if _named(system) else False)
        self.fitted_elsewhere = callable(getattr(system, "fit", None))
        if callable(getattr(system, "predict", None)):
            self.predicts_ratings = getattr(system, "predicts_ratings", None)

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Any:
        """Return what the object answers, as it is: the audit reads and checks it."""
        return self._system.recommend(users, n)

    def bind(self, data: Dataset) -> Self:
        """Give the object the data, if it takes it."""
        if callable(getattr(self._system, "bind", None)):
            self._system.bind(data)
        return self

    def predict(self, users: Ids, items: Ids) -> NDArray[Any]:
        """Return the object's number for each pair."""
        return np.asarray(self._system.predict(users, items))


def name_of(system: object) -> str:
    """Return the name of a system: its own, that of the function, or that of its class."""
    name = getattr(system, "name", None) or getattr(system, "__name__", None)
    return name if isinstance(name, str) else type(system).__name__


def _named(system: object) -> bool:
    return isinstance(getattr(system, "name", None), str)


def as_system(
    name: str, system: Any, of: Literal["recommender", "moderator"] | None
) -> Recommender | Moderator:
    """Return a system as it is, or a function or an object without a name made into one.

    Parameters
    ----------
    name
        The system's name in the report.
    system
        A recommender, a moderator, an object with `recommend` or `moderate`, or a function.
    of
        What a function is.
    """
    if isinstance(system, Recommender | Moderator):
        return system
    library = type(system).__module__.partition(".")[0]
    if library == "implicit" or _takes_user_items(system):
        return _LibraryModel(system, name, "implicit")
    if library == "lenskit":
        return _LibraryModel(system, name, "lenskit")
    if callable(getattr(system, "recommend", None)):
        return _OtherRecommender(system, name)
    if callable(getattr(system, "moderate", None)):
        return OwnModerator(system, name)
    if hasattr(system, "classes_") and callable(getattr(system, "predict", None)):
        return _classifier(system, name)
    if callable(system) and getattr(system, "task", "") == "text-classification":
        return _pipeline(system, name)
    if not callable(system) or isinstance(system, type):
        raise PlanError(
            f"{name} is {_kind(system)}; a system is a function, or an object with recommend(users,"
            " n) or moderate(texts)"
        )
    if of is None:
        raise PlanError(
            f"{name} is a function, and the audit measures recommenders and moderators; say which "
            f"it is: OwnRecommender({name}) or OwnModerator({name}) of ombud.systems"
        )
    return OwnRecommender(system, name) if of == "recommender" else OwnModerator(system, name)


def trained_copy(name: str, system: Any) -> Recommender:
    """Return a recommender that the audit trains: one of ombud's, or a copy of an object.

    Parameters
    ----------
    name
        The system's name in the plan, which says ``fit = true``.
    system
        What its type made.
    """
    if isinstance(system, Recommender) and system.trainable:
        return system
    if isinstance(system, Recommender | Moderator) or not callable(getattr(system, "fit", None)):
        raise PlanError(
            f"system {name!r}: fit = true trains a copy of an object that has fit(interactions), "
            "and this type has none; remove fit"
        )
    return OwnRecommender(system, name, train_copy=True)


def _takes_user_items(system: Any) -> bool:
    """Whether an object recommends as models of the package ``implicit`` do."""
    try:
        return "user_items" in signature(system.recommend).parameters
    except (AttributeError, TypeError, ValueError):
        return False


class _LibraryModel(Recommender):
    """A fitted model of ``implicit`` or LensKit, over the users and items of the audit's data."""

    fitted_elsewhere = True

    def __init__(self, model: Any, name: str, library: Literal["implicit", "lenskit"]) -> None:
        self.name, self._model, self._library = name, model, library
        self._inner: Recommender | None = None

    def bind(self, data: Dataset) -> Self:
        """Take the users and items that the model was fitted on."""
        if data.interactions is None:
            raise PlanError(f"{self.name} recommends items; the data has no interactions")
        factors = getattr(self._model, "user_factors", None)
        if factors is not None and len(factors) != data.interactions.n_users:
            raise PlanError(
                f"{self.name} was fitted on {len(factors):,} users, and the data has "
                f"{data.interactions.n_users:,}. Give what it was fitted on: "
                "ImplicitRecommender(model, interactions) of ombud.systems.recommenders.adapters"
            )
        kind = ImplicitRecommender if self._library == "implicit" else LensKitRecommender
        self._inner = kind(self._model, data.interactions, self.name)
        return self

    def recommend(self, users: Ids, n: int, exclude_seen: bool = True) -> Recommendations:
        """Return the model's n best items for each user."""
        assert self._inner is not None  # the audit binds before it asks
        return self._inner.recommend(users, n, exclude_seen)


def _classifier(system: Any, name: str) -> Moderator:
    """Return a fitted classifier of scikit-learn as a moderator."""
    classes = [_plain(one) for one in system.classes_]
    flagged = classes[-1] if set(classes) <= {0, 1} else None
    if flagged is None:
        try:
            (flagged,) = flagged_labels([str(one) for one in classes], PLAIN, name)
        except (OmbudError, ValueError):
            raise PlanError(
                f"{name}: which of its classes ({', '.join(map(str, classes))}) means flagged? "
                "SklearnModerator.from_pipeline(pipeline, flagged=...) of ombud.systems.moderators"
            ) from None
    threshold = 0.5 if hasattr(system, "predict_proba") else 0.0
    return SklearnModerator.from_pipeline(system, flagged=flagged, threshold=threshold, name=name)


def _pipeline(system: Any, name: str) -> Moderator:
    """Return a text-classification pipeline of transformers as a moderator."""
    config = getattr(getattr(system, "model", None), "config", None)
    labels = [str(label) for label in dict(getattr(config, "id2label", {})).values()]
    try:
        flagged = flagged_labels(labels, PLAIN, name)
    except OmbudError:
        raise PlanError(
            f"{name}: which of its labels ({', '.join(labels) or 'not stated'}) mean flagged? "
            "Use ombud.systems.moderators: HuggingFaceModerator.from_pipeline(..., flagged=[...])"
        ) from None
    return HuggingFaceModerator.from_pipeline(system, flagged=flagged, name=name)


def read_lists(
    name: str, answer: Any, users: Ids, n: int, seen: Interactions | None = None
) -> Recommendations:
    """Return what a recommender answered as recommendations.

    Lists that are too long are cut, and missing places counted. An item twice in a list is
    refused.

    Parameters
    ----------
    name
        The system's name in messages.
    answer
        Recommendations, lists, a dict of lists by user, an array, or a frame.
    users, n
        What was asked.
    seen
        Histories: an item of a user's own history in a list is refused.

    Raises
    ------
    AuditedSystemError
        If the answer cannot be read; the message holds an example.
    """
    own = not isinstance(answer, Recommendations)
    lists = _as_lists(name, answer, users, n) if own else answer
    _refuse_repeats(name, lists)
    if seen is not None:
        _refuse_seen(name, lists, seen)
    return _with_short(name, lists, n) if own else lists


def _as_lists(name: str, answer: Any, users: Ids, n: int) -> Recommendations:
    asked = np.asarray(users)
    if _is_frame(answer):
        try:
            lists = Recommendations.from_frame(answer, source=f"what {name} returned")
        except OmbudError as error:
            raise AuditedSystemError(str(error)) from None
        over = int(np.maximum(lists.lengths - n, 0).sum())
        lists = replace(lists.top(n).for_users(asked), exclusions=())
        if over:
            reason = f"the list is longer than the {n} items asked for"
            gone = Exclusion(f"recommendations of {name}", "places", over, reason)
            lists = replace(lists, exclusions=(gone,))
        return lists
    rows = _rows(name, answer, asked.tolist())
    return gather(name, asked, [None if r is None else _one(r) for r in rows], n, "refuse")


def _rows(name: str, answer: Any, users: list[Any]) -> Sequence[Any]:
    """Return one list per user, None where the system gave none."""
    if isinstance(answer, Mapping):
        if not answer.keys() & set(users):
            raise AuditedSystemError(
                f"{name} returned a dict whose {len(answer):,} keys are none of the users that it "
                f"was asked for; lists by user id were expected, {_LISTS}"
            )
        return [answer.get(user) for user in users]
    if _is_ids_and_scores(answer):
        # Ids and scores, as models of the package implicit return them; -1 fills up.
        ids, scores = (np.asarray(part) for part in answer)
        if ids.shape != scores.shape:
            raise AuditedSystemError(
                f"{name} returned ids of shape {ids.shape} and scores of shape {scores.shape}"
            )
        answer = [
            [(i, s) for i, s in zip(*pair, strict=True) if i != -1]
            for pair in zip(ids.tolist(), scores.tolist(), strict=True)
        ]
    if isinstance(answer, np.ndarray):
        answer = answer.tolist()
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        raise AuditedSystemError(
            f"{name} returned {_kind(answer)}; one list of item ids for each user was expected "
            f"(lists, a dict by user, an array or a frame), {_LISTS}"
        )
    if len(answer) != len(users):
        raise AuditedSystemError(
            f"{name} returned {len(answer):,} lists for {len(users):,} users; one for each was "
            f"expected, in their order or in a dict by user, {_LISTS}"
        )
    if answer and not any(isinstance(r, Sequence | Mapping | np.ndarray) for r in answer):
        raise AuditedSystemError(
            f"{name} returned {_kind(answer[0])} for a user; a list of item ids was expected, "
            f"{_LISTS}"
        )
    return answer


def _is_ids_and_scores(answer: Any) -> bool:
    pair = isinstance(answer, tuple) and len(answer) == 2
    return pair and all(isinstance(part, np.ndarray) and part.ndim == 2 for part in answer)


def _one(row: Any) -> Any:
    """Return the answer for one user: ids, or (id, score) pairs, or a dict of scores by id."""
    if isinstance(row, np.ndarray):
        row = row.tolist()
    if isinstance(row, Mapping):
        row = sorted(row.items(), key=lambda pair: -pair[1])
    if isinstance(row, Sequence) and not isinstance(row, str | bytes):
        row = [item.item() if isinstance(item, np.generic) else item for item in row]
        if row and all(isinstance(item, tuple) and len(item) == 2 for item in row):
            return as_answer([_plain(i) for i, _ in row], [float(s) for _, s in row])
    return as_answer(row)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _refuse_repeats(name: str, lists: Recommendations) -> None:
    ordered = np.sort(lists.items, axis=1)
    again = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
    if again.any():
        raise AuditedSystemError(
            f"{name} recommends an item more than once to {int(again.sum()):,} of {len(lists):,} "
            f"users, first to user {_first(lists, again)!r}; each item may stand in a list once"
        )


def _refuse_seen(name: str, lists: Recommendations, seen: Interactions) -> None:
    again: NDArray[np.bool_] = np.asarray(lists.seen_in(seen).any(axis=1))
    if again.any():
        raise AuditedSystemError(
            f"{name} recommends items of the user's own history to {int(again.sum()):,} of "
            f"{len(lists):,} users, first to user {_first(lists, again)!r}; leave them out, or say "
            "that it is meant: recommends_seen = True in the class, or "
            "OwnRecommender(function, name, recommends_seen=True)"
        )


def _first(lists: Recommendations, rows: NDArray[np.bool_]) -> Any:
    return _plain(np.asarray(lists.users)[int(np.argmax(rows))])


def _with_short(name: str, lists: Recommendations, n: int) -> Recommendations:
    missing = int(np.maximum(n - lists.lengths[lists.lengths > 0], 0).sum())
    if not missing:
        return lists
    reason = f"the list is shorter than the {n} items asked for"
    short = Exclusion(f"recommendations of {name}", "places", missing, reason, n * len(lists))
    return replace(lists, exclusions=(*lists.exclusions, short))


def read_decisions(
    name: str, answer: Any, texts: Texts, threshold: float = 0.5, flagged: Sequence[str] = ()
) -> Decisions:
    """Return what a moderator answered as decisions.

    Parameters
    ----------
    name
        The system's name in messages.
    answer
        Decisions, or booleans, scores or dicts in the order of the texts, a dict of these by text
        id, or a frame with `id`.
    texts
        What was asked.
    threshold
        A score that reaches it flags.
    flagged
        Labels that mean flagged, where their names do not tell.

    Raises
    ------
    AuditedSystemError
        If the answer cannot be read; the message holds an example.
    """
    if isinstance(answer, Decisions):
        if answer.lacks_decisions and answer.decided.any():
            raise AuditedSystemError(
                f"{name} decided some texts and only scored others; return one or the other"
            )
        return answer
    if _is_frame(answer):
        try:
            past = RecordedDecisions.from_frame(answer, name, threshold)
        except OmbudError as error:
            raise AuditedSystemError(f"what {name} returned: {error}") from None
        return past.moderate(texts)
    values = _values(name, answer, texts)
    pairs = [one if isinstance(one, list) else [one] for one in values]
    if pairs and all(isinstance(p, Mapping) and {"label", "score"} <= {*p} for p in chain(*pairs)):
        reading = Reading(yes=tuple(flagged))
        try:  # labels with scores, as pipelines return them
            return read_nested(pairs, list(texts.ids), "id", reading, threshold, name).decisions
        except DataError as error:
            fix = "with OwnModerator(function, flagged=[...]), or yes_values=[...] of ombud.audit"
            raise AuditedSystemError(f"what {name} returned: {error}; name them {fix}") from None
    rows = [_decision(name, value, threshold) for value in values]
    names = tuple(sorted({c for _, _, categories in rows for c in categories}))
    matrix = None
    if names:
        matrix = np.array([[r[2].get(c, np.nan) for c in names] for r in rows], dtype=np.float32)
    return Decisions(
        texts.ids,
        np.array([outcome for outcome, _, _ in rows], dtype=np.int8),
        np.array([score for _, score, _ in rows], dtype=np.float32),
        names,
        matrix,
    )


def _values(name: str, answer: Any, texts: Texts) -> Sequence[Any]:
    if isinstance(answer, Mapping):
        ids = texts.ids.tolist()
        missing = [one for one in ids if one not in answer]
        if missing:
            raise AuditedSystemError(
                f"{name} returned a dict without {len(missing):,} of {len(ids):,} text ids, the "
                f"first {missing[0]!r}; one answer for each text was expected, {_DECIDED}"
            )
        return [answer[one] for one in ids]
    if isinstance(answer, np.ndarray):
        if answer.ndim != 1:
            raise AuditedSystemError(
                f"{name} returned an array of shape {answer.shape}; one number for each text was "
                "expected, such as:\n  def moderate(texts):\n"
                "      return pipeline.predict_proba(texts)[:, 1]"
            )
        answer = answer.tolist()
    if not isinstance(answer, Sequence) or isinstance(answer, str | bytes):
        raise AuditedSystemError(
            f"{name} returned {_kind(answer)}; one boolean, score or dict for each text was "
            f"expected, {_DECIDED}"
        )
    if len(answer) != len(texts):
        raise AuditedSystemError(
            f"{name} returned {len(answer):,} answers for {len(texts):,} texts; one for each was "
            f"expected, {_DECIDED}"
        )
    return answer


def _decision(name: str, value: Any, threshold: float) -> tuple[int, float, dict[str, float]]:
    """Return the outcome, the score and the categories of one answer."""
    value = _plain(value)
    if value is None:
        return Outcome.ERROR, np.nan, {}
    if isinstance(value, bool | Outcome):
        return int(value), np.nan, {}
    if isinstance(value, int | float) and np.isnan(value):
        return Outcome.ERROR, np.nan, {}
    if isinstance(value, float) or (isinstance(value, int) and value in {0, 1}):
        return int(value >= threshold), float(value), {}
    if isinstance(value, Mapping) and value and set(value) <= _ANSWER_KEYS:
        if "flagged" not in value and "score" not in value:
            raise AuditedSystemError(
                f"{name} returned a dict with categories alone; give 'flagged' or 'score' too"
            )
        score = float(value.get("score", np.nan))
        flagged = value.get("flagged", None if np.isnan(score) else score >= threshold)
        outcome = Outcome.ERROR if flagged is None else Outcome(int(bool(flagged)))
        return outcome, score, {str(k): float(v) for k, v in value.get("categories", {}).items()}
    raise AuditedSystemError(
        f"{name} returned {_kind(value)} for a text; a boolean, a score from 0 to 1, or a dict "
        f"with 'flagged' or 'score' was expected, {_DECIDED}"
    )


def _is_frame(value: Any) -> bool:
    return hasattr(value, "columns") and not isinstance(value, Mapping)


def _kind(value: Any) -> str:
    text = repr(value)
    shown = text if len(text) <= 60 else f"{text[:57]}..."
    return f"{type(value).__name__} ({shown})"
