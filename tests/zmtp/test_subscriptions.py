"""The receivers of a published message."""

from __future__ import annotations

import random

import pytest

from dafka.zmtp import limits
from dafka.zmtp.errors import TooLargeError
from dafka.zmtp.subscriptions import Subscriptions


def test_a_subscription_matches_what_begins_with_it():
    subscriptions: Subscriptions[str] = Subscriptions()
    subscriptions.add("a", b"A")
    subscriptions.add("all", b"")
    subscriptions.add("ab", b"AB")
    assert set(subscriptions.matching(b"ABC")) == {"a", "all", "ab"}
    assert set(subscriptions.matching(b"A")) == {"a", "all"}
    assert subscriptions.matching(b"") == ["all"]
    assert subscriptions.matching(b"B") == ["all"]


def test_a_peer_gets_a_message_once():
    subscriptions: Subscriptions[str] = Subscriptions()
    for prefix in (b"", b"A", b"AB", b"A"):
        subscriptions.add("peer", prefix)
    assert subscriptions.matching(b"AB") == ["peer"]
    assert len(subscriptions) == 3


def test_the_same_prefix_twice_is_to_be_cancelled_twice():
    subscriptions: Subscriptions[str] = Subscriptions()
    subscriptions.add("peer", b"A")
    subscriptions.add("peer", b"A")
    subscriptions.cancel("peer", b"A")
    assert subscriptions.matching(b"A") == ["peer"]
    subscriptions.cancel("peer", b"A")
    assert subscriptions.matching(b"A") == []
    subscriptions.cancel("peer", b"A")  # never subscribed to
    subscriptions.cancel("stranger", b"A")
    assert subscriptions.octets == 0


def test_against_a_plain_list():
    dice = random.Random(3)
    subscriptions: Subscriptions[int] = Subscriptions()
    plain: list[tuple[int, bytes]] = []
    for _ in range(3000):
        peer, prefix = dice.randrange(5), dice.randbytes(dice.randrange(4)).replace(b"\x80", b"")[:2]
        prefix = bytes(octet % 3 for octet in prefix)
        action = dice.randrange(5)
        if action < 2:
            subscriptions.add(peer, prefix)
            plain.append((peer, prefix))
        elif action < 4:
            subscriptions.cancel(peer, prefix)
            if (peer, prefix) in plain:
                plain.remove((peer, prefix))
        elif dice.random() < 0.05:
            list(subscriptions.forget(peer))
            plain = [one for one in plain if one[0] != peer]
        frame = bytes(dice.randrange(3) for _ in range(dice.randrange(4)))
        expected = {peer for peer, prefix in plain if frame.startswith(prefix)}
        found = subscriptions.matching(frame)
        assert set(found) == expected
        assert len(found) == len(expected)
        assert len(subscriptions) == len(set(plain))
    for peer in range(5):
        list(subscriptions.forget(peer))
    assert subscriptions.octets == 0
    assert not subscriptions._lengths


def test_a_peer_that_leaves_gets_nothing_while_its_prefixes_are_dropped():
    subscriptions: Subscriptions[str] = Subscriptions()
    for peer in ("leaves", "stays"):
        for prefix in (b"", b"A", b"AB"):
            subscriptions.add(peer, prefix)
    subscriptions.add("leaves", b"ABC")
    dropped = subscriptions.forget("leaves")
    left = {b"", b"A", b"AB", b"ABC"}
    while True:
        assert subscriptions.matching(b"ABC") == ["stays"]
        assert len(subscriptions) == 3
        prefix = next(dropped, None)
        if prefix is None:
            break
        left.remove(prefix)
        size = (3 + len(left)) * limits.SUBSCRIPTION_OCTETS + 3 + sum(map(len, left))
        assert subscriptions.octets == size
    assert not left
    assert subscriptions.has(b"AB") and not subscriptions.has(b"ABC")
    assert not subscriptions._leaving
    assert not list(subscriptions.forget("stranger"))


@pytest.mark.parametrize(
    ("limit", "value"),
    [
        ("SUBSCRIPTIONS", 3),
        ("SUBSCRIPTIONS_OCTETS", 3 * (limits.SUBSCRIPTION_OCTETS + 10)),
        ("ALL_SUBSCRIPTIONS_OCTETS", 3 * (limits.SUBSCRIPTION_OCTETS + 10)),
        ("PREFIX_OCTETS", 9),
    ],
)
def test_subscriptions_are_bounded(monkeypatch: pytest.MonkeyPatch, limit: str, value: int):
    subscriptions: Subscriptions[str] = Subscriptions()
    for number in range(3):
        subscriptions.add("peer", b"prefix %03d" % number)
    monkeypatch.setattr(limits, limit, value)
    subscriptions.add("peer", b"prefix 000")  # known already
    octets = subscriptions.octets
    with pytest.raises(TooLargeError, match="subscriptions"):
        subscriptions.add("peer", b"prefix 003")
    assert subscriptions.octets == octets
    assert subscriptions.matching(b"prefix 003") == []
