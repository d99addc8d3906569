"""Stretches: taking messages in bulk finds the same as cutting and reading them one by one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import CONSUMER, PRODUCER, STORE

from dafka.protocol.commands import Ack, Command, Head
from dafka.protocol.framing import SEQUENCE_LIMIT, Framing, encode
from dafka.protocol.runs import Inbound, Run, RunReader, encode_run
from dafka.protocol.stretches import Stretches
from dafka.zmtp.cutting import Cutter
from dafka.zmtp.encoding import encode_all
from dafka.zmtp.errors import ProtocolError

TOPIC = b"hello"


def octets_of(item: Run | Command, framing: Framing = Framing.LIBDAFKA) -> bytes:
    messages = encode_run(item, framing) if isinstance(item, Run) else [encode(item, framing)]
    return b"".join(encode_all(messages))


def published(first: int, contents: list[bytes], address: bytes = PRODUCER, topic: bytes = TOPIC) -> Run:
    return Run(None, address, topic, first, contents)


class Receiver:
    """A connection's end: octets in, what was read out."""

    def __init__(self, *known: Run) -> None:
        self.reader = RunReader()
        for run in known:
            self.reader.read(encode_run(run))
        self.stretches = Stretches(self.reader)
        self.cutter = Cutter(1 << 30, 4096, self.stretches)
        self.taken = self.cut = 0

    def receive(self, octets: bytes, most: int = 1000) -> list[Inbound]:
        self.cutter.feed(octets)
        found = []
        while self.cutter.pending:
            messages, command = self.cutter.cut(most)
            assert command is None
            assert len(messages) + self.cutter.taken <= most
            self.taken += self.cutter.taken
            self.cut += len(messages)
            found.append(self.stretches.read(messages))
        return found


def records(inbounds: list[Inbound]) -> dict[tuple[bytes | None, bytes, bytes], list[tuple[int, bytes]]]:
    """Sequences and contents by stream, in the order in which they came."""
    found: dict[tuple[bytes | None, bytes, bytes], list[tuple[int, bytes]]] = {}
    for inbound in inbounds:
        for recipient, address, topic, first, contents in inbound.runs:
            found.setdefault((recipient, address, topic), []).extend(enumerate(contents, first))
    return found


@pytest.mark.parametrize("size", [0, 1, 100, 255, 256, 300, 10_000])
@pytest.mark.parametrize("first", [0, 250, 65_500, 2**32 - 10])
def test_a_run_of_records_of_one_size_is_taken_as_a_run(size: int, first: int) -> None:
    run = published(first, [bytes([number % 256]) * size for number in range(600)])
    receiver = Receiver(run)
    assert receiver.receive(octets_of(run)) == [Inbound([run], [], {})]
    assert (receiver.taken, receiver.cut) == (600, 0)


def test_sizes_may_differ() -> None:
    dice = random.Random(1)
    run = published(7, [dice.randbytes(dice.choice([0, 1, 100, 255, 256, 1000])) for _ in range(900)])
    receiver = Receiver(run)
    assert receiver.receive(octets_of(run)) == [Inbound([run], [], {})]
    assert receiver.cut == 0


def test_the_first_record_of_a_stream_makes_it_known() -> None:
    receiver = Receiver()
    for first in (0, 300, 600):
        run = published(first, [b"x" * 100] * 300)
        assert receiver.receive(octets_of(run)) == [Inbound([run], [], {})]
    assert receiver.cut == 300


def test_fetched_records_come_before_published_ones() -> None:
    fetched = Run(CONSUMER, PRODUCER, TOPIC, 5, [b"old"] * 40)
    run = published(100, [b"new"] * 40)
    receiver = Receiver(fetched, run)
    assert receiver.receive(octets_of(run) + octets_of(fetched)) == [Inbound([fetched, run], [], {})]


def test_no_more_is_taken_at_once_than_was_asked_for() -> None:
    run = published(3, [b"x"] * 1000)
    receiver = Receiver(run)
    inbounds = receiver.receive(octets_of(run), most=70)
    assert [len(inbound.runs[0].contents) for inbound in inbounds] == [70] * 14 + [20]
    assert records(inbounds) == records([Inbound([run], [], {})])


def test_a_record_cut_one_by_one_between_others_joins_them() -> None:
    """One that is longer than what arrives at once."""
    run = published(0, [b"x" * 10] * 20 + [b"y" * 50_000] + [b"x" * 10] * 20)
    receiver = Receiver(run)
    octets = octets_of(run)
    inbounds = [
        found for at in range(0, len(octets), 20_000) for found in receiver.receive(octets[at : at + 20_000])
    ]
    assert records(inbounds) == records([Inbound([run], [], {})])
    assert [inbound.runs[0].first for inbound in inbounds if inbound.runs] == [0, 20]
    assert receiver.cut == 1


@pytest.mark.parametrize("place", range(2, 59))
def test_another_octet_in_the_header_of_one_record_is_noticed(place: int) -> None:
    """Each octet of a head, and the two in front of the content."""
    run = published(256, [b"x" * 100] * 200)
    changed = bytearray(octets_of(run))
    changed[100 * len(changed) // 200 + place] ^= 0x10
    plain = Cutter(1 << 30, 4096)
    plain.feed(bytes(changed))
    messages = []
    try:
        while plain.pending:
            messages += plain.cut(1000)[0]
    except ProtocolError:
        with pytest.raises(ProtocolError):
            Receiver(run).receive(bytes(changed))
        return
    expected, found = records([RunReader().read(messages)]), records(Receiver(run).receive(bytes(changed)))
    assert {stream: sorted(one) for stream, one in found.items()} == {
        stream: sorted(one) for stream, one in expected.items()
    }
    assert expected != records([Inbound([run], [], {})])


def test_sequences_beyond_the_limit_are_not_taken() -> None:
    run = published(SEQUENCE_LIMIT - 2, [b"x"] * 6)
    receiver = Receiver(published(0, [b"x"]))
    (inbound,) = receiver.receive(octets_of(run))
    assert [len(one.contents) for one in inbound.runs] == [3]
    assert inbound.discarded == {"sequence": 3}


def test_the_other_framing_is_left_to_be_cut() -> None:
    run = published(0, [b"x" * 100] * 100)
    receiver = Receiver()
    assert receiver.receive(octets_of(run, Framing.RFC46) * 1) == [Inbound([run], [], {})]
    assert receiver.cut == 100


any_item = st.one_of(
    st.builds(
        Run,
        st.sampled_from([None, None, CONSUMER]),
        st.sampled_from([PRODUCER, STORE]),
        st.sampled_from([b"hello", b"h", b"long" * 60]),
        st.integers(0, 600),
        st.one_of(
            st.lists(st.binary(max_size=3), min_size=1, max_size=5),
            st.builds(
                lambda count, size: [bytes(size)] * count, st.integers(1, 200), st.sampled_from([0, 5, 300])
            ),
        ),
    ),
    st.builds(Head, st.just(PRODUCER), st.just(TOPIC), st.integers(0, 600)),
    st.builds(Ack, st.just(PRODUCER), st.just(TOPIC), st.integers(0, 600), st.just(STORE)),
)


@given(st.lists(any_item, max_size=8), st.randoms(use_true_random=False))
def test_torn_anywhere_everything_comes_once_and_nothing_else(
    items: list[Run | Command], dice: random.Random
):
    octets = b"".join(map(octets_of, items))
    receiver = Receiver()
    inbounds: list[Inbound] = []
    at = 0
    while at < len(octets):
        size = dice.choice([1, 7, 100, 1000, 20_000])
        inbounds += receiver.receive(octets[at : at + size])
        at += size
    assert not receiver.cutter.in_progress
    expected = records([Inbound([item], [], {}) for item in items if isinstance(item, Run)])
    found = records(inbounds)
    assert {stream: sorted(one) for stream, one in found.items()} == {
        stream: sorted(one) for stream, one in expected.items()
    }
    commands = [command for inbound in inbounds for command in inbound.commands]
    assert commands == [item for item in items if not isinstance(item, Run)]


@pytest.mark.parametrize("size", [0, 1, 255, 256, 2000])
@pytest.mark.parametrize("recipient", [None, CONSUMER])
def test_a_record_that_comes_alone_is_read_as_it_would_be_by_cutting(size: int, recipient: bytes | None):
    run = Run(recipient, PRODUCER, TOPIC, 7, [b"x" * size])
    receiver = Receiver(run)
    assert receiver.stretches.lone(octets_of(run)) == Inbound([run], [], {})


def test_a_lone_record_of_an_unknown_stream_is_left_to_be_cut():
    run = published(0, [b"first"])
    assert Receiver().stretches.lone(octets_of(run)) is None


@given(any_item, st.randoms(use_true_random=False))
def test_octets_that_come_alone_are_the_same_record_or_are_left_to_be_cut(
    item: Run | Command, dice: random.Random
):
    """Torn, doubled, damaged: one whole record and nothing else is taken."""
    known = item if isinstance(item, Run) else published(0, [b"known"])
    octets = bytearray(octets_of(item))
    for _ in range(dice.choice([0, 0, 1, 2])):
        match dice.randrange(4):
            case 0:
                del octets[dice.randrange(len(octets) + 1) :]
            case 1:
                octets += octets[: dice.randrange(len(octets) + 1)]
            case 2 if octets:
                octets[dice.randrange(min(len(octets), 80))] = dice.choice(
                    [0, 1, 2, 4, 9, dice.randrange(256)]
                )
            case _:
                del octets[: dice.choice([0, 0, 1])]
    lone = Receiver(known).stretches.lone(bytes(octets))
    if lone is None:
        return
    one_by_one = Receiver(known)
    assert one_by_one.receive(bytes(octets)) == [lone]
    assert not one_by_one.cutter.in_progress
    assert [len(run.contents) for run in lone.runs] == [1]


@pytest.mark.parametrize(
    "octets", [b"", b"\x01", b"\x01\x00", b"\x01\x03abc", b"\x01\x03abc\x00\x00", b"\x01\xff"]
)
def test_octets_too_few_for_a_record_are_left_to_be_cut(octets: bytes):
    assert Receiver(published(0, [b"known"])).stretches.lone(octets) is None


def test_a_lone_record_beyond_the_largest_sequence_is_left_to_be_cut():
    for sequence, is_taken in ((SEQUENCE_LIMIT, True), (SEQUENCE_LIMIT + 1, False)):
        run = published(sequence, [b"x"])
        assert bool(Receiver(published(0, [b"x"])).stretches.lone(octets_of(run))) == is_taken
