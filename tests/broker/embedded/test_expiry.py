"""Searches for what has expired: when they are carried out, and that one does not end the others."""

from __future__ import annotations

import gevent
import pytest

from dafka.broker.embedded.expiry import Expiry, Search
from dafka.hub.hub import get_hub
from dafka.log import LogClosedError, LogWriteError


class Searches:
    """Three searches with a clock to set; ``done`` is which of them were carried out."""

    def __init__(self) -> None:
        self.now = 0.0
        self.crowded = False
        self.done: list[str] = []
        self.error: Exception | None = None
        searches = [
            Search("first", self.search("first"), 10.0, at_start=True),
            Search("crowd", self.search("crowd"), 10.0, lambda: self.crowded),
            Search("often", self.search("often"), 2.0),
        ]
        self.expiry = get_hub().run(Expiry, get_hub(), searches, lambda: self.now)
        get_hub().run(self.expiry._green.kill)  # looked at by hand from here on
        self.done.clear()

    def search(self, name: str):
        def forget(pause) -> int:
            pause()
            self.done.append(name)
            if self.error is not None and name == "first":
                raise self.error
            return 1

        return forget

    def at(self, now: float) -> list[str]:
        self.now = now
        get_hub().run(self.expiry.look)
        done, self.done = self.done, []
        return done


@pytest.fixture
def searches() -> Searches:
    return Searches()


def test_each_search_has_its_interval(searches):
    assert searches.at(1) in (["first"], [])  # the one at the start, unless the green thread was faster
    assert searches.at(1.9) == []
    assert searches.at(2) == ["often"]
    assert searches.at(3) == []
    assert searches.at(4) == ["often"]
    assert sorted(searches.at(11)) == ["crowd", "first", "often"]


def test_a_crowd_is_looked_at_early(searches):
    searches.at(1)
    searches.crowded = True
    assert searches.at(1.5) == ["crowd"]
    searches.crowded = False
    assert searches.at(1.6) == []


@pytest.mark.parametrize("error", [LogWriteError("x", "no space"), ValueError("a fault")])
def test_a_search_that_fails_leaves_the_others_alone_and_is_tried_again(searches, error, caplog):
    searches.error = error
    assert searches.at(20) == ["first", "crowd", "often"]
    assert "first" in caplog.text
    assert searches.at(29) == ["often"]
    assert searches.at(30) == ["first", "crowd"]


def test_a_closed_log_ends_them(searches):
    searches.error = LogClosedError("x", "closed")
    with pytest.raises(LogClosedError):
        searches.at(20)


def test_searches_that_never_ran_run_when_the_broker_stops(searches):
    searches.at(2)
    get_hub().run(searches.expiry.close)
    assert "crowd" in searches.done
    assert "often" not in searches.done


def test_the_end_does_not_wait_for_all_of_it():
    done: list[int] = []

    def endless(pause) -> int:
        while True:
            pause()

    def forget(pause) -> int:
        done.append(1)
        return 0

    hub = get_hub()
    searches = [Search("endless", endless, 60.0), Search("behind it", forget, 60.0)]
    expiry = hub.run(Expiry, hub, searches)
    hub.run(expiry.close)
    assert done == []


def test_searches_repeat_until_they_are_closed():
    found = gevent.event.Event()
    again: list[int] = []

    def forget(pause) -> int:
        again.append(1)
        if len(again) == 3:
            found.set()
        return 0

    hub = get_hub()
    expiry = hub.run(Expiry, hub, [Search("something", forget, 0.001)])
    assert hub.run(found.wait, 100)
    hub.run(expiry.close)
    hub.run(expiry._green.join)
    count = len(again)
    hub.run(gevent.sleep, 0.02)
    assert len(again) == count
