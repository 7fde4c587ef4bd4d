"""Whether a Spark cluster still has executors while its jobs wait for them.

Spark waits for executors without end. A cluster whose workers are gone would leave an audit
standing still, and nobody would be told.
"""

from __future__ import annotations

import threading
import time
import uuid
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from ombud.systems.base import Progress

_EVERY = 2.0  # seconds between two looks
_SAY_AFTER = 30.0
_SAY_AGAIN = 60.0
_GIVE_UP_AFTER = 300.0
_FAULTS = 5  # looks in a row that fail, after which there is nothing to look at
_LAST_LOOK = 10.0  # seconds; one call of a JVM that hangs must not hold the audit
_OF_JOBS = ("spark.jobGroup.id", "spark.job.description", "spark.job.interruptOnCancel")


class ExecutorWatch:
    """While it is entered, cancel the jobs of this thread when their executors stay away.

    Only time in which a job waits is counted: a cluster may take idle executors away. Before the
    first executor has come, a queue may take its time: that is said and waited for.
    Only this thread's jobs are cancelled, not others of a session that was given.

    Parameters
    ----------
    session
        The session whose cluster is looked at; one that runs in the driver alone is not.
    progress
        Is told that the audit waits.
    """

    def __init__(self, session: Any, progress: Progress) -> None:
        self._context = session.sparkContext
        self._progress = progress
        self._done = threading.Event()
        self._group = f"ombud-{uuid.uuid4().hex[:12]}"
        self._before: dict[str, str | None] = {}
        self._thread = threading.Thread(target=self._look, daemon=True)
        self._seen = False
        self._since = self._said = 0.0
        self.given_up = False

    def __enter__(self) -> Self:
        """Begin to look."""
        master = str(self._context.master)
        if master != "local" and not master.startswith("local["):
            self._before = {name: self._context.getLocalProperty(name) for name in _OF_JOBS}
            self._context.setJobGroup(self._group, "ombud measures", interruptOnCancel=False)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop looking, and give this thread's jobs the names that they had."""
        self._done.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join(_LAST_LOOK)
            with suppress(Exception):  # of a context that is gone
                for name, value in self._before.items():
                    self._context.setLocalProperty(name, value)

    def has_cancelled(self, error: Exception) -> bool:
        """Return whether an error is that of a job which was cancelled here."""
        told = f"{error} {getattr(error, '_stackTrace', '')}"  # causes stand in the trace alone
        return self.given_up and self._group in told

    def _look(self) -> None:
        self._since = time.monotonic()
        faults = 0
        while not self._done.wait(_EVERY):
            try:
                self._look_once()
                faults = 0
            except Exception:  # a call that failed, or the context is gone: the job finds that out
                faults += 1
            if faults == _FAULTS:
                self._say("Spark no longer answers whether it has executors; not asking again")
                return

    def _look_once(self) -> None:
        # The driver is one of them.
        here = int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
        self._seen = self._seen or here > 0
        now = time.monotonic()
        if here > 0 or not self._is_waiting():
            self._since, self._said = now, 0.0
            return
        if now - self._since > _SAY_AFTER and (not self._said or now - self._said > _SAY_AGAIN):
            self._said = now
            self._say("the Spark cluster has no executor; waiting for one")
        if self._seen and now - self._since > _GIVE_UP_AFTER and not self._done.is_set():
            self.given_up = True
            self._context.cancelJobGroup(self._group)
            self._since = now  # another job may follow

    def _is_waiting(self) -> bool:
        """Return whether a job of the audit runs, which without executors is to wait."""
        tracker = self._context.statusTracker()
        active = set(tracker.getActiveJobsIds())
        return bool(active) and not active.isdisjoint(tracker.getJobIdsForGroup(self._group))

    def _say(self, what: str) -> None:
        with suppress(Exception):  # whoever is told must not end the watch
            self._progress(1, 3, what)

    @property
    def sentence(self) -> str:
        """Why jobs were cancelled."""
        return (
            f"the Spark cluster had no executor for {_GIVE_UP_AFTER / 60:.0f} minutes while the "
            "audit waited, and it was stopped. Nothing was stored; once the cluster is there "
            "again, run the plan again"
        )
