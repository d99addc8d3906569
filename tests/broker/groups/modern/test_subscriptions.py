"""Equal subscriptions are kept once, and large ones begin and end in pieces."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from dafka.broker import limits
from dafka.broker.groups.modern.subscriptions import Subscriptions

AB, BC, LARGE = frozenset("ab"), frozenset("bc"), frozenset("abcdefg")


@pytest.fixture(autouse=True)
def pieces(monkeypatch):
    monkeypatch.setattr(limits, "TOPICS_AT_ONCE", 2)


@pytest.fixture
def subscriptions() -> Subscriptions:
    return Subscriptions()


def begin(subscriptions: Subscriptions, names: frozenset[str]) -> frozenset[str]:
    return subscriptions.begin(names, subscriptions.new(names))


def test_names_are_those_of_all_members_and_equal_subscriptions_one_object(subscriptions):
    assert set(subscriptions.new(AB)) == {"a", "b"}
    one = begin(subscriptions, AB)
    assert not subscriptions.new(frozenset(["b", "a"]))
    assert begin(subscriptions, frozenset(["b", "a"])) is one
    assert set(subscriptions.new(BC)) == {"c"}
    begin(subscriptions, BC)
    assert subscriptions.names == {"a": 1, "b": 2, "c": 1}
    assert list(subscriptions.end(AB)) == []
    assert list(subscriptions.end(AB)) == ["a"]
    assert set(subscriptions.end(BC)) == {"b", "c"} and not subscriptions.names
    assert begin(subscriptions, frozenset()) == frozenset() and not subscriptions.end(frozenset())


def test_a_large_subscription_ends_in_pieces_while_there_are_others(subscriptions):
    begin(subscriptions, AB)
    begin(subscriptions, LARGE)
    assert not subscriptions.end(LARGE)
    gone: list[str] = []
    while subscriptions.is_ending:
        some = subscriptions.end_some()
        assert len(some) <= 2
        gone += some
    assert sorted(gone) == list("cdefg")
    assert subscriptions.names == {"a": 1, "b": 1}
    assert not subscriptions.end_some()


def test_a_large_subscription_that_comes_again_while_it_ends_stays(subscriptions):
    begin(subscriptions, AB)
    begin(subscriptions, LARGE)
    subscriptions.end(LARGE)
    subscriptions.end_some()
    begin(subscriptions, LARGE)
    gone = []
    while subscriptions.is_ending:
        gone += subscriptions.end_some()
    assert gone == [] and subscriptions.names.keys() == LARGE


def test_a_large_subscription_is_prepared_in_pieces_and_stays_until_it_ends(subscriptions):
    found: list[Collection[str]] = []
    begin(subscriptions, AB)
    for _ in subscriptions.prepare(LARGE, found.append):
        assert len(found[-1]) <= 2
    assert sorted(name for some in found for name in some) == list("cdefg")
    assert not subscriptions.new(LARGE)
    begin(subscriptions, LARGE)
    assert not subscriptions.end(LARGE)  # by whoever has prepared it
    assert not subscriptions.is_ending
    subscriptions.end(LARGE)
    while subscriptions.is_ending:
        subscriptions.end_some()
    assert subscriptions.names == {"a": 1, "b": 1}


def test_a_preparation_in_vain_is_undone(subscriptions):
    pieces = subscriptions.prepare(LARGE, lambda some: None)
    next(pieces), next(pieces)
    begin(subscriptions, AB)
    subscriptions.end(AB)  # the last one: names that are being prepared stay
    assert len(subscriptions.names) >= 4
    begin(subscriptions, LARGE)  # somebody else is as fast
    for _ in pieces:
        pass
    subscriptions.end(LARGE)
    assert subscriptions.names.keys() == LARGE
    given_up = subscriptions.prepare(frozenset("hijk"), lambda some: None)
    next(given_up)
    given_up.close()
    while subscriptions.is_ending:
        subscriptions.end_some()
    assert subscriptions.names == dict.fromkeys(LARGE, 1)
