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

__all__ = ["ExecutorWatch"]

_EVERY = 2.0  # seconds between two looks
_SAY_AFTER = 30.0
_GIVE_UP_AFTER = 300.0


class ExecutorWatch:
    """While it is entered, cancel the jobs of this thread when their executors stay away.

    Before the first executor has come, a queue may take its time: that is said and waited for.
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
        self._thread = threading.Thread(target=self._look, daemon=True)
        self.given_up = False

    def __enter__(self) -> Self:
        """Begin to look."""
        master = str(self._context.master)
        if master != "local" and not master.startswith("local["):
            self._context.setJobGroup(self._group, "ombud measures", interruptOnCancel=False)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Stop looking."""
        self._done.set()
        if self._thread.ident is not None:  # it was started
            self._thread.join()
            with suppress(Exception):  # of a context that is gone
                self._context.setLocalProperty("spark.jobGroup.id", None)

    def _look(self) -> None:
        seen, since, said = False, time.monotonic(), False
        while not self._done.wait(_EVERY):
            try:
                # The driver is one of them.
                here = int(self._context._jsc.sc().getExecutorMemoryStatus().size()) - 1
            except Exception:  # the context is gone, which the waiting job finds out by itself
                return
            now = time.monotonic()
            if here > 0:
                seen, since, said = True, now, False
            elif now - since > _SAY_AFTER and not said:
                said = True
                self._progress(1, 3, "the Spark cluster has no executor; waiting for one")
            if seen and now - since > _GIVE_UP_AFTER:
                self.given_up = True
                self._context.cancelJobGroup(self._group)
                return

    @property
    def sentence(self) -> str:
        """Why jobs were cancelled."""
        return (
            f"the Spark cluster had no executor for {_GIVE_UP_AFTER / 60:.0f} minutes, and the "
            "audit was stopped. Nothing was stored; once the cluster is there again, run the plan "
            "again"
        )
