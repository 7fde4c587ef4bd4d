"""Kinds of sites: which domains belong to which kind, and how many texts each kind should give."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from importlib.resources import files
from os import PathLike
from pathlib import Path

from ombud.errors import DataError
from ombud.files import read_utf8


@dataclass(frozen=True)
class DomainKinds:
    """Domains by kind of site, with a quota for each kind.

    Examples
    --------
    >>> kinds = DomainKinds({"news": ("example.org",), "forum": ("talk.example.org",)})
    >>> kinds.kind_of("www.example.org"), kinds.kind_of("talk.example.org"), kinds.kind_of("a.b")
    ('news', 'forum', None)
    >>> kinds.share("news")
    0.5
    """

    # Domains of each kind, such as ``{"news": ("example.org",)}``. A domain holds for all that ends
    # in it: ``example.org`` for ``www.example.org`` too.
    kinds: Mapping[str, tuple[str, ...]]
    # What share of the sample each kind should give; the shares add up to 1. Empty for equal
    # shares.
    quotas: Mapping[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        owner: dict[str, str] = {}
        faults = []
        for kind, domains in self.kinds.items():
            for domain in domains:
                name = domain.strip().lower().removeprefix("www.")
                if not name or "/" in name or " " in name or "." not in name:
                    faults.append(f"kind {kind!r}: {domain!r} is not a domain such as example.org")
                elif owner.setdefault(name, kind) != kind:
                    faults.append(f"{name!r} stands under {owner[name]!r} and under {kind!r}")
            if not domains:
                faults.append(f"kind {kind!r} has no domains")
        if not self.kinds:
            faults.append("no kinds; expected at least one with its domains")
        if self.quotas:
            if set(self.quotas) != set(self.kinds):
                faults.append("quotas must name every kind and no other")
            elif any(not 0 <= quota <= 1 for quota in self.quotas.values()):
                faults.append("a quota is a share between 0 and 1")
            elif abs(sum(self.quotas.values()) - 1) > 1e-6:
                faults.append(f"quotas add up to {sum(self.quotas.values()):g}; expected 1")
        if faults:
            raise DataError("domain kinds", faults)
        object.__setattr__(self, "_owner", owner)

    def kind_of(self, domain: str) -> str | None:
        """Return the kind of a host, by the longest domain that it ends in; None for no kind."""
        owner: dict[str, str] = self._owner  # type: ignore[attr-defined]
        parts = domain.lower().rstrip(".").split(".")
        for start in range(len(parts)):
            found = owner.get(".".join(parts[start:]))
            if found is not None:
                return found
        return None

    def share(self, kind: str) -> float:
        """Return the share of the sample that a kind should give."""
        return self.quotas[kind] if self.quotas else 1 / len(self.kinds)

    @property
    def digest(self) -> str:
        """Hash of all kinds, domains and quotas."""
        rows = sorted(
            f"{k}\x1f{','.join(sorted(d))}\x1f{self.share(k):.9f}" for k, d in self.kinds.items()
        )
        return sha256("\x1e".join(rows).encode()).hexdigest()[:16]


def read_domains(path: str | PathLike[str]) -> DomainKinds:
    """Read kinds of sites from a TOML file, with all its faults in one error.

    ``sites@1`` is the list that ombud ships: the kinds of sites that the DeTexD paper names.

    One table for each kind::

        [news]
        domains = ["example.org", "example.com"]
        quota = 0.4

        [forum]
        domains = ["talk.example.net"]
        quota = 0.6
    """
    file = Path(path)
    if str(path) == "sites@1" and not file.exists():
        file = Path(str(files("ombud.text") / "files" / "sites@1.toml"))
    try:
        content = tomllib.loads(read_utf8(file))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise DataError(str(file), [f"not TOML ({error})"]) from None
    faults = []
    kinds: dict[str, tuple[str, ...]] = {}
    quotas: dict[str, float] = {}
    for kind, table in content.items():
        domains = table.get("domains") if isinstance(table, dict) else None
        if not isinstance(domains, list) or not all(isinstance(name, str) for name in domains):
            faults.append(f"[{kind}]: domains is not a list of texts")
            continue
        faults += [f"[{kind}]: unknown key {key!r}" for key in table.keys() - {"domains", "quota"}]
        kinds[kind] = tuple(domains)
        quota = table.get("quota")
        if isinstance(quota, int | float) and not isinstance(quota, bool):
            quotas[kind] = float(quota)
        elif quota is not None:
            faults.append(f"[{kind}]: quota is not a number")
    if faults:
        raise DataError(str(file), faults)
    try:
        return DomainKinds(kinds, quotas)
    except DataError as error:
        raise DataError(str(file), error.faults) from None
