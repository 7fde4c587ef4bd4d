"""Which labels people do not want to meet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from ombud.data.frames import Column, Frame, read_table
from ombud.data.ids import Ids, Vocabulary
from ombud.data.labels import Labels, LabelState
from ombud.data.recommendations import Recommendations
from ombud.errors import DataError

# Numbers of one array while judging (128 MiB).
_HELD = 2**25


@dataclass(frozen=True, eq=False)
class Avoided:
    """Labels to avoid: for everyone, and for each user.

    Examples
    --------
    >>> avoided = Avoided.of({"ann": ["spiders"]}, everyone=["blood"])
    >>> avoided.for_users(["ann", "bob"], ("blood", "spiders")).astype(int).tolist()
    [[1, 1], [1, 0]]
    """

    everyone: tuple[str, ...]  # Labels that nobody is to be shown
    users: Vocabulary  # The users who named labels of their own
    names: tuple[str, ...]  # The labels they named
    members: NDArray[np.bool_]  # Users x names

    @classmethod
    def of(
        cls, by_user: Mapping[object, Sequence[str]] | None = None, everyone: Sequence[str] = ()
    ) -> Self:
        """Build from plain values."""
        pairs = [(user, label) for user, labels in (by_user or {}).items() for label in labels]
        if not pairs:
            return cls(tuple(everyone), Vocabulary([]), (), np.zeros((0, 0), dtype=bool))
        users, labels = zip(*pairs, strict=True)
        return cls.from_frame({"user": users, "label": labels}, everyone=everyone)

    @classmethod
    def from_frame(cls, frame: Frame, *, everyone: Sequence[str] = (), source: str = "") -> Self:
        """Read one row for each user and label: columns `user` and `label`."""
        table = read_table(frame, [Column("user", "id"), Column("label", "text")], source)
        users, rows = Vocabulary.encode(table["user"].to_arrow())
        names, places = Vocabulary.encode(table["label"].to_arrow())
        members = np.zeros((len(users), len(names)), dtype=bool)
        members[rows, places] = True
        return cls(tuple(everyone), users, tuple(names.ids.tolist()), members)

    def for_users(self, users: Ids, labels: tuple[str, ...]) -> NDArray[np.bool_]:
        """Return users x labels: what each of some users avoids.

        Raises
        ------
        DataError
            If someone avoids a label that is not among `labels`: nothing could be removed.
        """
        missing = sorted((set(self.everyone) | set(self.names)) - set(labels))
        if missing:
            text = [
                f"the label {name!r} is avoided, but no item could carry it" for name in missing
            ]
            raise DataError("avoid list", [*text, f"the labels are: {', '.join(labels)}"])
        index = {name: w for w, name in enumerate(labels)}
        rows = self.users.codes(users)
        wanted = np.zeros((len(rows), len(labels)), dtype=bool)
        if self.names:
            own = np.where(rows[:, None] >= 0, self.members[rows], False)
            wanted[:, [index[name] for name in self.names]] = own
        wanted[:, [index[name] for name in self.everyone]] = True
        return wanted

    def judge(
        self, lists: Recommendations, labels: Labels
    ) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """Return, for each place of each list, whether it is known to carry an avoided label.

        The second array says where none is known to be there, but one is unknown or disputed;
        that includes items without any labels. Users who avoid nothing have neither.
        """
        wanted = self.for_users(lists.users, labels.names)
        codes = lists.in_catalogue(labels.items)
        listed = codes != -1
        result = np.zeros(codes.shape, dtype=bool)
        open_ = np.zeros(codes.shape, dtype=bool)
        yes = (labels.padded == LabelState.YES).astype(np.float32)
        unknown = (labels.padded < 0).astype(np.float32)
        step = max(1, _HELD // (len(labels.items) + 1))
        for start in range(0, len(codes), step):
            part = slice(start, start + step)
            # Users who avoid the same labels are judged together.
            kinds, kind = np.unique(wanted[part], axis=0, return_inverse=True)
            weights = kinds.T.astype(np.float32)
            index = np.where(codes[part] < 0, len(labels.items), codes[part])
            for states, into in ((yes, result), (unknown, open_)):
                hit = states @ weights > 0
                into[part] = hit[index, kind.ravel()[:, None]] & listed[part]
        return result, open_ & ~result
