"""What a node tells of the peers of version 1 behind it."""

from __future__ import annotations

import pytest

from dafka.overlay.limits import LEAVES_OCTETS, MOST_BESIDE, MOST_LEAVES
from dafka.overlay.wire.leaves import EVERYTHING, Leaf, encode_leaves, fitting, read_leaves
from dafka.overlay.wire.primitives import Reader
from dafka.protocol.errors import MalformedMessage


def leaf(number: int, *prefixes: bytes, beside: int = 0) -> Leaf:
    return Leaf(number.to_bytes(16, "big"), prefixes, tuple(one.to_bytes(16, "big") for one in range(beside)))


def test_written_leaves_are_read():
    leaves = (leaf(1, b"/a", b"/b", beside=3), leaf(2), leaf(3, b""))
    reader = Reader(encode_leaves(leaves) + b"rest")
    assert read_leaves(reader) == leaves and reader.left == 4


@pytest.mark.parametrize(
    ("leaves", "text"),
    [
        (tuple(leaf(number) for number in range(MOST_LEAVES + 1)), "1001 peers behind one"),
        ((leaf(1), leaf(1, b"/a")), "twice"),
        ((leaf(1, beside=MOST_BESIDE + 1),), "101 peers beside one"),
        (tuple(leaf(number, b"x" * 20_000) for number in range(8)), "octets"),
    ],
)
def test_too_much_is_refused(leaves, text):
    with pytest.raises(MalformedMessage, match=text):
        read_leaves(Reader(encode_leaves(leaves)))


def test_octets_that_end_too_early_are_refused():
    octets = encode_leaves((leaf(1, b"/a", beside=1),))
    for end in range(len(octets)):
        with pytest.raises(MalformedMessage):
            read_leaves(Reader(octets[:end]))


def test_a_filter_that_there_is_no_room_for_lets_everything_pass():
    leaves = [leaf(number, b"%d" % number * 10_000) for number in range(20)]
    kept = fitting(reversed(leaves))
    assert [one.id for one in kept] == [one.id for one in leaves]
    assert kept[0] == leaves[0] and kept[-1].filter == EVERYTHING
    assert sum(one.octets for one in kept) <= LEAVES_OCTETS
    assert read_leaves(Reader(encode_leaves(kept))) == kept
