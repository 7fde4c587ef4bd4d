"""Trials of a search, in Optuna's own storage: on disk as soon as they are done."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from ombud.errors import ResultError
from ombud.files import read_json, read_plain, write_json
from ombud.tuning.spaces import Space

if TYPE_CHECKING:
    import optuna


# Optuna's journal; its own tools, such as its dashboard, read it.
_LOG = "trials.log"
_STUDY = "search"
_MARKER = "search.json"


@dataclass(frozen=True)
class Trial:
    """One set of parameters and what came of it."""

    number: int  # Counted from 0; a trial that was killed does not count
    parameters: Mapping[str, Any]  # what was tried
    value: float | None  # the metric; None when the trial failed
    seconds: float  # how long it took
    reason: str = field(default="")  # why it failed; empty otherwise


@dataclass(frozen=True)
class Proposal:
    """Parameters that are about to be tried."""

    asked: optuna.Trial
    parameters: Mapping[str, Any]


class Trials:
    """The trials of one search, in a folder or in memory.

    Optuna writes and syncs a line for each step of a trial. After a kill at any moment the folder
    holds all finished trials; one that was under way is given up, and tried again with the same
    parameters.

    `folder` is None for memory only; one that holds a search of another identity is refused.
    """

    def __init__(
        self, folder: Path | None, identity: Mapping[str, Any], *, lower_is_better: bool
    ) -> None:
        import optuna

        self._open = ExitStack()
        try:
            self._open.enter_context(_quiet())
            storage = None
            if folder is not None:
                _claim(folder, identity)
                path = folder / _LOG
                self._open.enter_context(_locked(path, folder))
                _mend(path)
                storage = _storage(path)
            self._study = optuna.create_study(
                storage=storage,
                study_name=_STUDY,
                direction="minimize" if lower_is_better else "maximize",
                load_if_exists=True,
            )
            for trial in self._study.get_trials(states=[optuna.trial.TrialState.RUNNING]):
                self._study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        except BaseException:
            self._open.close()
            raise
        self.finished = self._finished()

    def _finished(self) -> list[Trial]:
        from optuna.trial import TrialState as state

        ended = self._study.get_trials(deepcopy=False, states=[state.COMPLETE, state.FAIL])
        # A killed trial failed without a reason, and is not one of ours.
        told = [t for t in ended if t.state == state.COMPLETE or t.user_attrs.get("reason")]
        return [
            Trial(n, t.params, t.value, t.user_attrs["seconds"], t.user_attrs["reason"])
            for n, t in enumerate(told)
        ]

    def propose(self, space: Space, seed: int) -> Proposal:
        """Return what to try next, from the seed and the finished trials alone."""
        import optuna

        self._study.sampler = optuna.samplers.TPESampler(seed=seed)
        asked = self._study.ask()
        return Proposal(asked, {name: part.suggest(asked, name) for name, part in space.items()})

    def add(self, proposal: Proposal, value: float | None, seconds: float, reason: str) -> Trial:
        """Add what came of a proposal; on return it is on disk."""
        from optuna.trial import TrialState

        proposal.asked.set_user_attr("seconds", seconds)
        proposal.asked.set_user_attr("reason", reason)
        state = TrialState.FAIL if value is None else TrialState.COMPLETE
        self._study.tell(proposal.asked, value, state=state)
        trial = Trial(len(self.finished), proposal.parameters, value, seconds, reason)
        self.finished.append(trial)
        return trial

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._open.close()


def _claim(folder: Path, identity: Mapping[str, Any]) -> None:
    marker = folder / _MARKER
    if marker.exists():
        result = read_json(marker)
        differing = sorted(k for k in identity if result.get(k) != identity[k])
        if differing:
            raise ResultError(
                f"{folder} holds another search (different: {', '.join(differing)}). "
                "Choose another folder, or delete this one."
            )
    elif folder.exists() and any(folder.iterdir()):
        raise ResultError(f"{folder} is not empty and holds no search; choose another folder")
    else:
        write_json(marker, identity)


@contextmanager
def _locked(path: Path, folder: Path) -> Iterator[None]:
    with path.open("ab") as file:
        try:
            import fcntl
        except ImportError:  # Windows: two searches at once are not noticed there
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise ResultError(
                f"another search is running in {folder}; wait for it, or choose another folder"
            ) from None
        yield


def _mend(path: Path) -> None:
    """Cut off a line that a kill has torn: Optuna would append to it, and read neither."""
    text = read_plain(path)
    whole = text.rfind(b"\n") + 1
    if whole < len(text):
        with path.open("r+b") as file:
            file.truncate(whole)
    for number, line in enumerate(text[:whole].splitlines(), 1):
        try:
            fine = isinstance(json.loads(line), dict)
        except ValueError:
            fine = False
        if not fine:
            raise ResultError(f"{path}, line {number} is not a step of a trial; delete the folder")


def _storage(path: Path) -> optuna.storages.JournalStorage:
    from optuna.storages import JournalStorage
    from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock

    class Held(JournalFileOpenLock):
        """The whole search holds a lock already; Optuna's own would outlive a kill."""

        def acquire(self) -> bool:
            return True

        def release(self) -> None:
            pass

    try:
        return JournalStorage(JournalFileBackend(str(path), Held(str(path))))
    except (KeyError, TypeError, ValueError, AssertionError) as error:
        raise ResultError(
            f"{path} is not the log of a search ({error}); delete the folder"
        ) from None


@contextmanager
def _quiet() -> Iterator[None]:
    import optuna

    before = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    try:
        yield
    finally:
        optuna.logging.set_verbosity(before)
