"""The queue for credit: turns of partitions that are known, untried, and unanswered."""

from __future__ import annotations

from dafka.roles.fetch_queue import FetchQueue
from dafka.roles.follower import Follower, State


def follower(name: str, *, untried: bool = False, failures: int = 0) -> Follower:
    one = Follower(b"topic", name.encode(), 0, 10, 1)
    one.state = State.WAITING
    one.untried, one.failures = untried, failures
    return one


def queue(*followers: Follower) -> FetchQueue[Follower]:
    one: FetchQueue[Follower] = FetchQueue()
    for each in followers:
        one.add(each)
    return one


def turns(one: FetchQueue[Follower], count: int) -> str:
    """The first letters of those that have the next turns."""
    names = ""
    while len(names) < count and (first := one.first) is not None:
        names += first.address[:1].decode()
        one.pop()
    return names


def known(count: int) -> list[Follower]:
    return [follower("known") for _ in range(count)]


def untried(count: int) -> list[Follower]:
    return [follower("untried", untried=True) for _ in range(count)]


def silent(count: int) -> list[Follower]:
    return [follower("silent", untried=True, failures=1) for _ in range(count)]


def test_fetches_of_one_kind_come_in_order():
    for letters in ("abc", "cab"):
        assert turns(queue(*map(follower, letters)), 3) == letters


def test_known_and_untried_partitions_take_turns():
    assert turns(queue(*untried(100), *known(4)), 10) == "kukukukuuu"


def test_those_that_nobody_answered_have_every_tenth_turn():
    assert turns(queue(*silent(100), *untried(100), *known(100)), 20) == "kukukukukskukukukuks"


def test_a_single_waiter_has_every_turn():
    for kind in (known, untried, silent):
        assert turns(queue(*kind(25)), 25) == kind.__name__[0] * 25


def test_a_known_partition_may_lose_one_fetch():
    lost_once, lost_twice = follower("once", failures=1), follower("twice", failures=2)
    assert turns(queue(lost_twice, lost_once, *known(3)), 5) == "okkkt"


def test_a_waiter_that_has_gone_is_forgotten():
    gone = [*known(1), *untried(1), *silent(1)]
    one = queue(*gone, follower("x"))
    for each in gone:
        each.state = State.GONE
    one.drop_gone()
    assert one.length == 1
    assert turns(one, 5) == "x"
