"""Invitations and sessions."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from _filling import project

from ombud.app.errors import AppError, NotAllowedError
from ombud.app.people import accept, find_invited, invitations, invite, leave, revoke, session_of


def test_an_invitation_lets_one_person_in(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1) as made:
        token, now = made.invite("Anna", "reviewer"), time.time()
        session = made.store.write(lambda db: accept(db, token, now))
        found = made.store.read(lambda db: session_of(db, session, now))
        assert found is not None and found.person.name == "Anna"
        assert found.person.role == "reviewer" and len(found.csrf) > 40
        assert made.store.read(lambda db: session_of(db, session, now + 8 * 86400)) is None
        assert made.store.read(lambda db: session_of(db, "forged", now)) is None


def test_no_token_is_stored(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1) as made:
        token = made.invite("Anna")
        session = made.store.write(lambda db: accept(db, token, time.time()))
    content = (tmp_path / "p" / "annotation.sqlite").read_bytes()
    assert token.encode() not in content and session.encode() not in content


@pytest.mark.parametrize("fault", ["forged", "expired", "revoked", "replaced", "left"])
def test_links_that_do_not_work(tmp_path: Path, fault: str) -> None:
    with project(tmp_path / "p", 1) as made:
        token, now = made.invite("Anna", hours=1), time.time()
        (one,) = made.store.read(invitations)
        if fault == "forged":
            token = token[:-1] + ("a" if token[-1] != "a" else "b")
        elif fault == "expired":
            now += 3601
        elif fault == "revoked":
            made.store.write(lambda db: revoke(db, 1, now))
        elif fault == "replaced":
            made.invite("Anna")
        else:
            made.store.write(lambda db: leave(db, 1, now))
        with pytest.raises(NotAllowedError, match="not valid, or not any more"):
            made.store.read(lambda db: find_invited(db, token, now))
        with pytest.raises(NotAllowedError):
            made.store.write(lambda db: accept(db, token, now))
        assert one.person == "Anna"


def test_a_name_has_one_role(tmp_path: Path) -> None:
    with project(tmp_path / "p", 1) as made:
        made.invite("Anna")
        with pytest.raises(AppError, match="is a rater already"):
            made.invite("Anna", "lead")
        with pytest.raises(AppError, match="is no role"):
            made.invite("Ben", "admin")  # type: ignore[arg-type]
        with pytest.raises(AppError, match="1 to 80 characters"):
            made.invite("  ")
        with pytest.raises(AppError, match="366 days"):
            made.store.write(lambda db: invite(db, "Ben", "rater", now=0, hours=-1))
