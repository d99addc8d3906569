"""Commands on the wire: the C library's own frames, both framings, and what is discarded."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from protocol.material import CONSUMER, PRODUCER, STORE, any_command

from dafka.protocol.commands import (
    Ack,
    Command,
    ConsumerHello,
    DirectHead,
    DirectRecord,
    Fetch,
    GetHeads,
    Head,
    Record,
    StoreHello,
    Trimmed,
)
from dafka.protocol.errors import DafkaError, MalformedMessage
from dafka.protocol.framing import (
    SEQUENCE_LIMIT,
    SIGNATURE,
    STRINGS_LIMIT,
    Framing,
    decode,
    encode,
    string,
    zmq_topic,
)

CONTENTS = {0: b"", 1: b"HELLO MATE"}
CAUSES = {
    "empty",
    "frame-count",
    "id-mismatch",
    "sequence",
    "short-fields",
    "signature",
    "too-many-strings",
    "topic",
    "topic-mismatch",
    "unknown-id",
    "version",
}


def vectors() -> list[tuple[str, str, list[bytes]]]:
    """(command, case, frames) of each line of the file."""
    lines = (Path(__file__).parent / "libdafka-vectors.tsv").read_text().splitlines()
    found = []
    for line in lines[1:]:
        command, case, head, *content = line.split("\t")
        frames = [bytes.fromhex(head)]
        if command in ("RECORD", "DIRECT-RECORD"):
            frames.append(bytes.fromhex(content[0] if content else ""))
        found.append((command, case, frames))
    return found


def meant_by(command: str, case: str) -> Command:
    """The command that a line of the vectors describes."""
    sequence = int(match[1]) if (match := re.fullmatch(r"seq=(\d+)", case)) else -1
    content = CONTENTS.get(sequence, b"\x00\xff binary")
    listed = re.fullmatch(r"topics=\[(.*)\]", case)
    topics = tuple(topic.encode() for topic in listed[1].split(", ") if topic) if listed else ()
    return {
        "RECORD": Record(PRODUCER, b"hello", sequence, content),
        "DIRECT-RECORD": DirectRecord(CONSUMER, PRODUCER, b"hello", sequence, content),
        "FETCH": Fetch(PRODUCER, CONSUMER, b"hello", sequence, 100000),
        "ACK": Ack(PRODUCER, b"hello", sequence),
        "HEAD": Head(PRODUCER, b"hello", sequence),
        "DIRECT-HEAD": DirectHead(CONSUMER, PRODUCER, b"hello", sequence),
        "GET-HEADS": GetHeads(b"hello", CONSUMER),
        "CONSUMER-HELLO": ConsumerHello(STORE, CONSUMER, topics),
        "STORE-HELLO": StoreHello(CONSUMER, STORE),
    }[command]


def described(vector: tuple[str, str, list[bytes]]) -> str:
    return f"{vector[0]} {vector[1]}"


def cause(frames: list[bytes]) -> str:
    with pytest.raises(MalformedMessage) as caught:
        decode(frames)
    assert isinstance(caught.value, DafkaError)
    return caught.value.cause


def test_the_vectors_cover_the_nine_commands() -> None:
    assert len({command for command, _, _ in vectors()}) == 9
    assert len(vectors()) == 29


@pytest.mark.parametrize("vector", vectors(), ids=described)
def test_the_c_librarys_frames_are_read(vector: tuple[str, str, list[bytes]]) -> None:
    command, case, frames = vector
    assert decode(frames) == meant_by(command, case)


@pytest.mark.parametrize("vector", vectors(), ids=described)
def test_the_c_librarys_frames_are_written(vector: tuple[str, str, list[bytes]]) -> None:
    command, case, frames = vector
    assert encode(meant_by(command, case)) == frames


@given(any_command, st.sampled_from(Framing))
@example(Record(PRODUCER, b"hello", SEQUENCE_LIMIT, b""), Framing.LIBDAFKA)
@example(Head(PRODUCER, b"a\0b", 1), Framing.LIBDAFKA)
@example(Head(PRODUCER, b"\0\0\0", 1), Framing.LIBDAFKA)
@example(GetHeads(b"a\0\x01b", CONSUMER), Framing.LIBDAFKA)
@example(GetHeads(b"\0", CONSUMER), Framing.LIBDAFKA)
@example(ConsumerHello(STORE, CONSUMER, ()), Framing.RFC46)
def test_written_commands_are_read_in_either_framing(command: Command, framing: Framing) -> None:
    assert decode(encode(command, framing)) == command


@given(any_command, st.sampled_from(Framing))
def test_the_first_frame_begins_with_the_zeromq_topic(command: Command, framing: Framing) -> None:
    assert encode(command, framing)[0].startswith(zmq_topic(command))


@pytest.mark.parametrize(
    ("command", "topic"),
    [
        (Record(PRODUCER, b"hello", 0, b""), b"Mhello"),
        (DirectRecord(CONSUMER, PRODUCER, b"hello", 0, b""), b"D" + CONSUMER),
        (Fetch(PRODUCER, CONSUMER, b"hello", 0, 1), b"F" + PRODUCER),
        (Ack(PRODUCER, b"hello", 0, STORE), b"K" + PRODUCER),
        (Head(PRODUCER, b"hello", 0), b"Hhello"),
        (DirectHead(CONSUMER, PRODUCER, b"hello", 0), b"E" + CONSUMER),
        (GetHeads(b"hello", CONSUMER), b"Ghello"),
        (ConsumerHello(STORE, CONSUMER, ()), b"W" + STORE),
        (StoreHello(CONSUMER, STORE), b"L" + CONSUMER),
        (Trimmed(CONSUMER, PRODUCER, b"hello", 7), b"T" + CONSUMER),
    ],
)
def test_each_command_is_published_under_its_id_and_topic(command: Command, topic: bytes) -> None:
    assert zmq_topic(command) == topic


def test_rfc46_puts_signature_id_version_and_fields_into_the_second_frame() -> None:
    fields = b"\x20" + PRODUCER + b"\x05hello" + bytes(7) + b"\x09"
    assert encode(Record(PRODUCER, b"hello", 9, b"content"), Framing.RFC46) == [
        b"Mhello",
        b"\xaa\xa5M\x01" + fields,
        b"content",
    ]
    assert encode(Head(PRODUCER, b"hello", 9), Framing.RFC46) == [b"Hhello", b"\xaa\xa5H\x01" + fields]


def test_an_ack_of_ours_has_the_stores_address_behind_the_last_field() -> None:
    plain = encode(Ack(PRODUCER, b"hello", 3))
    assert encode(Ack(PRODUCER, b"hello", 3, STORE)) == [plain[0] + b"\x20" + STORE]


def test_an_ack_in_rfc46_has_the_stores_address_as_its_first_field() -> None:
    frames = encode(Ack(PRODUCER, b"hello", 3, STORE), Framing.RFC46)
    assert frames[1] == SIGNATURE + b"K\x01\x20" + STORE + b"\x05hello" + bytes(7) + b"\x03"


def test_an_ack_in_rfc46_with_the_partition_as_its_address_names_no_store() -> None:
    frames = encode(Ack(PRODUCER, b"hello", 3, PRODUCER), Framing.RFC46)
    assert decode(frames) == Ack(PRODUCER, b"hello", 3)


@given(any_command, st.sampled_from(Framing), st.binary(min_size=1, max_size=30))
def test_octets_behind_the_last_field_are_ignored(command: Command, framing: Framing, more: bytes) -> None:
    frames = encode(command, framing)
    if isinstance(command, GetHeads):  # with NULs in the topic there is no telling where it ends
        command = command._replace(topic=b"hello")
        frames = encode(command, framing)
    place = 0 if framing is Framing.LIBDAFKA else 1
    frames[place] += more
    assert decode(frames) == command


@pytest.mark.parametrize(
    ("frames", "expected"),
    [
        ([], "empty"),
        ([b""], "empty"),
        ([b"", b""], "empty"),
        ([b"X" + PRODUCER + b"\0\x01"], "unknown-id"),
        ([b"Mhello\0\x01\x01A\x05hello" + bytes(8)], "frame-count"),
        ([b"Mhello\0\x01\x01A\x05hello" + bytes(8), b"", b"", b""], "frame-count"),
        ([b"Hhello\0\x01\x01A\x05hello" + bytes(8), b"\xaa\xa5H\x01", b""], "frame-count"),
        ([b"Mhello", b""], "topic"),
        ([b"K" + PRODUCER], "topic"),
        ([b"Mhello\0\x02\x01A\x05hello" + bytes(8), b""], "version"),
        ([b"Mhello\0", b""], "version"),
        ([b"Mhello\0\x01", b""], "short-fields"),
        ([b"Mhello\0\x01\x01A\x05hello" + bytes(7), b""], "short-fields"),
        ([b"Mhello\0\x01\x01A\xffhello" + bytes(8), b""], "short-fields"),
        ([b"Mhello\0\x01\x01A\x06hello2" + bytes(8), b""], "topic-mismatch"),
        ([b"Hhello2\0\x01\x01A\x05hello" + bytes(8)], "topic-mismatch"),
        ([b"Mhello\0\x01\x01A\x05hello" + b"\xff" * 8, b""], "sequence"),
        ([b"D" + b"A" * 256 + b"\0\x01\x01A\x05hello" + bytes(8), b""], "topic"),
        ([b"Mhello", b"\xaa\xa0M\x01\x01A\x05hello" + bytes(8), b""], "signature"),
        ([b"Mhello", b"", b""], "signature"),
        ([b"Mhello", b"\xaa\xa5H\x01\x01A\x05hello" + bytes(8), b""], "id-mismatch"),
        ([b"Mhello", b"\xaa\xa5M\x30\x01A\x05hello" + bytes(8), b""], "version"),
        ([b"Mother", b"\xaa\xa5M\x01\x01A\x05hello" + bytes(8), b""], "topic-mismatch"),
        ([b"W" + STORE + b"\0\x01\x01A" + b"\xff" * 4], "too-many-strings"),
        ([b"W" + STORE + b"\0\x01\x01A\0\0\0\x01\xff\xff\xff\xffhello"], "short-fields"),
    ],
)
def test_an_invalid_command_is_named_by_its_cause(frames: list[bytes], expected: str) -> None:
    assert cause(frames) == expected


@pytest.mark.parametrize("topic", [b"hello", b"t", b" ", b"!" * 33, b"A" * 32])
def test_messages_of_java_nodes_are_malformed_and_taken_for_nothing_else(topic: bytes) -> None:
    """Without the version octet and with the subject in front of the address; topics have letters."""
    name, number = string(topic), (7).to_bytes(8, "big")
    producer, consumer = string(PRODUCER), string(CONSUMER)
    sent = [
        [b"M" + topic + b"\0" + name + producer + number, b"value"],
        [b"D" + CONSUMER + b"\0" + name + producer + number, b"value"],
        [b"F" + PRODUCER + b"\0" + name + number + (5).to_bytes(4, "big") + consumer],
        [b"K" + PRODUCER + b"\0" + name + number],
        [b"H" + topic + b"\0" + name + producer + number],
        [b"E" + CONSUMER + b"\0" + name + producer + number],
        [b"G" + topic + b"\0" + consumer],
    ]
    for frames in sent:
        with pytest.raises(MalformedMessage):
            decode(frames)


@given(st.lists(st.binary(max_size=100), max_size=4))
def test_no_frames_raise_anything_but_malformed_message(frames: list[bytes]) -> None:
    try:
        decode(frames)
    except MalformedMessage as error:
        assert error.cause in CAUSES


@given(any_command, st.sampled_from(Framing), st.data())
def test_a_damaged_command_is_a_command_or_malformed(
    command: Command, framing: Framing, data: st.DataObject
) -> None:
    frames = encode(command, framing)
    which = data.draw(st.integers(0, len(frames) - 1))
    damaged = bytearray(frames[which])
    if damaged:
        damaged[data.draw(st.integers(0, len(damaged) - 1))] = data.draw(st.integers(0, 255))
    frames[which] = bytes(damaged[: data.draw(st.integers(0, len(damaged)))])
    try:
        decode(frames)
    except MalformedMessage as error:
        assert error.cause in CAUSES


@pytest.mark.parametrize(
    "command",
    [
        Record(PRODUCER, b"x" * 256, 0, b""),
        Record(b"x" * 256, b"hello", 0, b""),
        Record(PRODUCER, b"hello", -1, b""),
        Record(PRODUCER, b"hello", 2**64, b""),
        Fetch(PRODUCER, CONSUMER, b"hello", 0, 2**32),
        Fetch(PRODUCER, CONSUMER, b"hello", 0, -1),
        Fetch(b"x" * 256, CONSUMER, b"hello", 0, 1),
        GetHeads(b"x" * 256, CONSUMER),
        ConsumerHello(STORE, CONSUMER, (b"",) * (STRINGS_LIMIT + 1)),
    ],
)
@pytest.mark.parametrize("framing", Framing)
def test_commands_that_do_not_fit_the_wire_are_a_value_error(command: Command, framing: Framing) -> None:
    with pytest.raises(ValueError):
        encode(command, framing)
