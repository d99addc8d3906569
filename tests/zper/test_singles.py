"""Messages of one frame that are taken out of the receive buffer many at once."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.zmtp.cutting import Cutter
from dafka.zmtp.encoding import encode_all
from dafka.zmtp.errors import TooLargeError
from dafka.zper.singles import Singles, SinglesTaker

LIMIT = 20_000
messages_ = st.lists(
    st.one_of(
        st.tuples(st.integers(1, 300), st.sampled_from([0, 1, 100, 254, 255, 256, 1000, 9000])).map(
            lambda some: [[bytes([number % 256]) * some[1]] for number in range(some[0])]
        ),
        st.lists(st.lists(st.binary(max_size=5), min_size=1, max_size=3), max_size=4),
    ),
    max_size=4,
).map(lambda parts: [message for part in parts for message in part])


@given(messages_, st.sampled_from([1, 30, 700, 60_000]), st.integers(2, 500), st.randoms())
def test_every_message_comes_once_and_in_order_however_the_octets_are_torn(
    messages: list[list[bytes]], most_octets: int, most: int, dice: random.Random
) -> None:
    octets = b"".join(encode_all(messages))
    taker = SinglesTaker(LIMIT)
    cutter = Cutter(LIMIT, 4096, taker)
    found: list[list[bytes]] = []
    at = 0
    if most_octets == 1:
        octets, messages = b"".join(encode_all(messages[:3])), messages[:3]
    while at < len(octets):
        size = dice.randint(1, most_octets)
        cutter.feed(octets[at : at + size])
        at += size
        waiting: list[tuple[bytes, ...]] = []
        while cutter.pending:
            some, _ = cutter.cut(most)
            assert len(some) + cutter.taken <= most
            waiting += some
            if dice.random() < 0.5:  # several events may come before the first is handled
                found += [list(message) for part in taker.read(waiting) for message in part]
                waiting = []
        found += [list(message) for part in taker.read(waiting) for message in part]
    assert found == messages


def test_messages_of_one_size_are_taken_without_being_cut() -> None:
    taker = SinglesTaker(LIMIT)
    cutter = Cutter(LIMIT, 4096, taker)
    cutter.feed(b"".join(encode_all([[b"%100d" % number] for number in range(500)])))
    assert cutter.cut(1000) == ([], None)
    (part,) = taker.read([])
    assert isinstance(part, Singles)
    assert part.frames == [b"%100d" % number for number in range(500)]


def test_a_message_that_is_too_large_is_left_to_be_refused() -> None:
    taker = SinglesTaker(300)
    cutter = Cutter(300, 4096, taker)
    cutter.feed(b"".join(encode_all([[bytes(300)], [bytes(301)]])))
    cutter.cut(1000)
    assert [list(part) for part in taker.read([])] == [[(bytes(300),)]]
    with pytest.raises(TooLargeError):
        cutter.cut(1000)


def test_they_are_a_sequence_of_messages() -> None:
    singles = Singles([b"a", b"b", b"c"])
    assert (len(singles), singles[1], list(singles[1:])) == (3, (b"b",), [(b"b",), (b"c",)])
    assert singles == [[b"a"], [b"b"], [b"c"]]
    assert singles != [[b"a"], [b"b"]]
