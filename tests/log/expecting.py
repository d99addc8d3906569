"""What the checks of the crash harness have in common."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from log.messages import database

from dafka.log.verify import verify


class Loss(AssertionError):
    """Something that was promised is not there."""


class Survived(NamedTuple):
    rounds: int
    messages: int


def expect(holds: object, what: str) -> None:
    if not holds:
        raise Loss(what)


def expect_undamaged(folder: Path) -> None:
    damages = [damage for seen in verify(folder) for damage in seen.damages]
    expect(not damages, f"verify: {damages}")
    found = {str(path.relative_to(folder)) for path in folder.glob("values/*")}
    with database(folder) as rows:
        named = {name for (name,) in rows.execute("SELECT filename FROM Cache WHERE filename IS NOT NULL")}
    expect(found == named, f"files that no row names, or the other way round: {found ^ named}")
