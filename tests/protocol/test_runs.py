"""Runs of records: written as messages, read by the round."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol.material import CONSUMER, PRODUCER, STORE, addresses, any_command, contents, topics

from dafka.protocol import runs
from dafka.protocol.commands import Ack, Command, DirectRecord, Head, Record
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import SEQUENCE_LIMIT, Framing, decode, encode
from dafka.protocol.runs import Run, RunReader, encode_run

any_run = st.builds(
    Run,
    st.none() | addresses,
    addresses,
    topics,
    st.integers(0, 2**40),
    st.lists(contents, min_size=1, max_size=5),
)


def published(first: int, *contents: bytes, address: bytes = PRODUCER, topic: bytes = b"hello") -> Run:
    return Run(None, address, topic, first, list(contents))


@given(any_run, st.sampled_from(Framing))
def test_a_run_is_written_as_its_records_one_by_one(run: Run, framing: Framing) -> None:
    recipient, address, topic, first, its_contents = run
    commands: list[Command] = [
        Record(address, topic, sequence, content)
        if recipient is None
        else DirectRecord(recipient, address, topic, sequence, content)
        for sequence, content in enumerate(its_contents, first)
    ]
    assert encode_run(run, framing) == [encode(command, framing) for command in commands]


@given(any_run, st.sampled_from(Framing))
def test_a_run_is_read_as_it_was_written(run: Run, framing: Framing) -> None:
    assert RunReader().read(encode_run(run, framing)) == ([run], [], {})


def test_the_next_sequence_is_the_one_behind_the_last() -> None:
    assert published(7, b"a", b"b").next == 9


@pytest.mark.parametrize("framing", Framing)
@pytest.mark.parametrize("first", [-1, 2**64 - 1])
def test_a_run_whose_sequences_do_not_fit_is_not_written(first: int, framing: Framing) -> None:
    with pytest.raises(ValueError, match=f"{first} to {first + 1}"):
        encode_run(published(first, b"a", b"b"), framing)


@pytest.mark.parametrize("framing", Framing)
def test_partitions_that_arrive_interleaved_are_a_run_each(framing: Framing) -> None:
    sent = [published(5, b"a", b"b", b"c", address=address) for address in (PRODUCER, STORE)]
    messages = [
        message for pair in zip(*(encode_run(run, framing) for run in sent), strict=True) for message in pair
    ]
    assert RunReader().read(messages).runs == sent


def test_topics_of_one_producer_are_a_run_each() -> None:
    sent = [published(0, b"a"), published(0, b"b", topic=b"hello2")]
    assert RunReader().read(encode_run(sent[0]) + encode_run(sent[1])).runs == sent


def test_a_run_is_cut_where_sequences_are_not_consecutive() -> None:
    sequences = [4, 5, 7, 7, 6, 7, 3]
    messages = [encode(Record(PRODUCER, b"hello", sequence, b"%d" % sequence)) for sequence in sequences]
    assert RunReader().read(messages).runs == [
        published(4, b"4", b"5"),
        published(7, b"7"),
        published(7, b"7"),
        published(6, b"6", b"7"),
        published(3, b"3"),
    ]


def test_sequences_that_only_look_consecutive_from_their_ends_are_cut() -> None:
    messages = [encode(Record(PRODUCER, b"hello", sequence, b"")) for sequence in (1, 3, 2, 4)]
    assert [run.first for run in RunReader().read(messages).runs] == [1, 3, 2, 4]


def test_fetched_runs_come_before_published_ones() -> None:
    live = published(9, b"live")
    fetched = Run(CONSUMER, PRODUCER, b"hello", 7, [b"fetched", b"too"])
    assert RunReader().read(encode_run(live) + encode_run(fetched)).runs == [fetched, live]


@given(st.lists(any_command, max_size=10), st.sampled_from(Framing))
def test_other_messages_come_as_commands_in_order(commands: list[Command], framing: Framing) -> None:
    inbound = RunReader().read([encode(command, framing) for command in commands])
    assert inbound.commands == [one for one in commands if not isinstance(one, (Record, DirectRecord))]
    assert not inbound.discarded


def test_both_framings_are_read_in_one_round() -> None:
    first, second = published(0, b"a"), published(1, b"b")
    messages = encode_run(first) + encode_run(second, Framing.RFC46)
    assert RunReader().read(messages).runs == [first, second]


def test_malformed_messages_are_counted_by_cause_and_the_rest_is_read() -> None:
    good = published(0, b"a", b"b")
    one, two = encode_run(good)
    bad = [[], [b""], [b"Mhello"], [b"X"], [b"Mhello", b"x"], [b"Mhello", b"xxx", b""], [b"M"] * 5]
    inbound = RunReader().read([one, *bad, two])
    assert inbound.runs == [good]
    assert inbound.discarded == {
        "empty": 2,
        "frame-count": 2,
        "unknown-id": 1,
        "topic": 1,
        "signature": 1,
    }


@pytest.mark.parametrize("framing", Framing)
def test_a_record_with_octets_behind_its_last_field_is_read_again_and_again(framing: Framing) -> None:
    reader = RunReader()
    place = 0 if framing is Framing.LIBDAFKA else 1
    for sequence in (1, 2, 3):
        message = encode(Record(PRODUCER, b"hello", sequence, b"content"), framing)
        message[place] += b"more to come"
        assert reader.read([message]).runs == [published(sequence, b"content")]


def test_octets_behind_the_last_field_are_not_taken_for_the_sequence() -> None:
    reader = RunReader()
    plain = encode(Record(PRODUCER, b"hello", 1, b"a"))
    longer = encode(Record(PRODUCER, b"hello", 2, b"b"))
    longer[0] += bytes(8)
    assert reader.read([plain, longer, plain]).runs == [
        published(2, b"b"),
        published(1, b"a"),
        published(1, b"a"),
    ]


@pytest.mark.parametrize("known", [False, True])
def test_sequences_beyond_the_limit_are_malformed(known: bool) -> None:
    reader = RunReader()
    if known:
        reader.read(encode_run(published(0, b"")))
    beyond = encode_run(published(SEQUENCE_LIMIT + 1, b"x"))
    assert reader.read(beyond) == ([], [], {"sequence": 1})


def test_a_run_across_the_limit_is_cut_there() -> None:
    inbound = RunReader().read(encode_run(published(SEQUENCE_LIMIT - 1, b"a", b"b", b"c", b"d")))
    assert inbound.runs == [published(SEQUENCE_LIMIT - 1, b"a", b"b")]
    assert inbound.discarded == {"sequence": 2}


def test_a_flood_of_partitions_does_not_grow_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PREFIXES_LIMIT", 10)
    reader = RunReader()
    for number in range(100):
        run = published(number, b"a", b"b", address=b"%032d" % number)
        assert reader.read(encode_run(run)).runs == [run]
        assert len(reader._streams) <= 10


def test_a_head_that_is_remembered_in_one_framing_means_nothing_in_the_other() -> None:
    # The rfc46 frames joined: the key of a table must tell them apart.
    reader = RunReader()
    messages = encode_run(published(0, b"a"), Framing.RFC46)
    reader.read(messages)
    joined = [b"".join(messages[0][:2]), b"a"]
    assert reader.read([joined]).runs == []


def test_rounds_of_anything_are_read_as_decoding_one_by_one_reads_them() -> None:
    chance = random.Random(46)
    reader = RunReader()
    for _ in range(100):
        messages = []
        for _ in range(30):
            sequence = chance.choice((0, 1, 2, 2**62, 2**62 + 1))
            topic = chance.choice((b"hello", b"hello2", b"a\0b", b""))
            command = chance.choice(
                (
                    Record(PRODUCER, topic, sequence, b"a"),
                    DirectRecord(CONSUMER, PRODUCER, topic, sequence, b"b"),
                    Head(PRODUCER, topic, sequence),
                    Ack(PRODUCER, topic, sequence, STORE),
                )
            )
            frames = encode(command, chance.choice(list(Framing)))
            if chance.random() < 0.2:
                place = chance.randrange(len(frames))
                frames[place] = frames[place][: chance.randrange(len(frames[place]) + 1)]
            messages.append(frames)
        read = sorted(map(flattened, one_by_one(messages)))
        inbound = reader.read(messages)
        found: list[Command] = list(inbound.commands)
        for recipient, address, topic, first, its_contents in inbound.runs:
            for sequence, content in enumerate(its_contents, first):
                if recipient is None:
                    found.append(Record(address, topic, sequence, content))
                else:
                    found.append(DirectRecord(recipient, address, topic, sequence, content))
        assert sorted(map(flattened, found)) == read
        assert inbound.discarded.total() == len(messages) - len(read)


def one_by_one(messages: list[list[bytes]]) -> list[Command]:
    commands = []
    for frames in messages:
        try:
            commands.append(decode(frames))
        except MalformedMessage:
            continue
    return commands


def flattened(command: Command) -> str:
    return repr(command)
