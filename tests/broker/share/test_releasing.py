"""Records acquired by members that have left are given back."""

from __future__ import annotations

from typing import Any

import gevent
import pytest

from dafka.broker.share.releasing import Releasing
from dafka.hub.turns import next_turn

KEY = ("group", "member")
PLACES: Any = ("a", "b")


class Spawning:
    """A hub of this thread."""

    def spawn(self, function: Any, *args: Any) -> gevent.Greenlet:
        return gevent.spawn(function, *args)


class Slow:
    """A share partition that takes long to be released."""

    def __init__(self, said: list[str], name: str) -> None:
        self.said = said
        self.name = self.place = name

    def release(self, member: str) -> bool:
        next_turn()
        self.said.append(f"{self.name} of {member}")
        return False


class Known:
    """The share partitions that are read at the moment."""

    def __init__(self) -> None:
        self.deliveries: list[Any] = []

    def of_group(self, group: str) -> list[Any]:
        assert group == "group"
        return list(self.deliveries)


def test_a_session_begins_when_all_was_given_back_that_the_one_before_it_had() -> None:
    said: list[str] = []
    known = Known()
    releasing = Releasing(Spawning(), known)  # type: ignore[arg-type]
    releasing.wait(KEY)  # there is nothing to wait for
    known.deliveries = [Slow(said, "a"), Slow(said, "b"), Slow(said, "of no session")]
    releasing.begin(KEY, PLACES)
    releasing.begin(
        KEY, PLACES
    )  # of another session, which may have acquired something the first has gone past
    releasing.wait(KEY)
    assert said == ["a of member", "b of member"] * 2
    releasing.release(KEY, PLACES)
    assert len(said) == 6


def test_an_error_holds_up_nobody(capsys: pytest.CaptureFixture[str]) -> None:
    class Failing:
        place = "a"

        def release(self, member: str) -> bool:
            raise ValueError("broken")

    known = Known()
    known.deliveries = [Failing()]
    releasing = Releasing(Spawning(), known)  # type: ignore[arg-type]
    releasing.release(KEY, PLACES)
    known.deliveries = []
    releasing.release(KEY, PLACES)
    assert "broken" in capsys.readouterr().err
