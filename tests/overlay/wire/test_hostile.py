"""Any octets that are not a message are refused by name."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from overlay.vectors import native

from dafka.overlay.limits import MOST_NACKED, MOST_PREFIXES
from dafka.overlay.values import decode, encode
from dafka.overlay.wire.commands import Command, CumulativeAck, Nack, decode_command, encode_command
from dafka.overlay.wire.envelope import (
    COMMAND,
    Envelope,
    decode_envelope,
    encode_envelope,
    read_filter,
    routing_update,
)
from dafka.overlay.wire.handshake import Announcement, OriginatorSyn, decode_handshake, encode_handshake
from dafka.overlay.wire.primitives import NO_ENTITY, NOBODY
from dafka.overlay.wire.zeek import Batch, Event, from_value, to_value
from dafka.protocol.errors import MalformedMessage

COMMANDS = [
    envelope.payload
    for one in native()
    if "ttl=" in one.meaning and not one.name.startswith(("op-", "bye"))
    for envelope in [decode_envelope(one.message)]
    if envelope.kind == COMMAND
]


def cause_of(call, *arguments):
    with pytest.raises(MalformedMessage) as caught:
        call(*arguments)
    return caught.value.cause


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_octets_are_a_message_or_malformed(octets):
    for read in (
        decode_handshake,
        lambda octets: decode_handshake(octets, 2),
        decode_envelope,
        decode_command,
    ):
        try:
            read(octets)
        except MalformedMessage:
            continue


@given(st.sampled_from(COMMANDS), st.integers(0, 2**16), st.integers(0, 255), st.integers(0, 2**16))
@settings(deadline=None)
def test_a_changed_command_is_a_command_or_malformed(payload, position, octet, length):
    changed = bytearray(payload)
    changed[position % len(payload)] = octet
    for octets in (bytes(changed), payload[: length % len(payload)]):
        try:
            command = decode_command(octets)
        except MalformedMessage:
            continue
        assert decode_command(encode_command(command)) == command


def test_filters_are_bounded():
    def message(count: int) -> bytes:
        announcement = Announcement(tuple([b"/topic/%d" % number for number in range(count)]))
        return encode_handshake(OriginatorSyn(announcement))[4:]

    assert len(decode_handshake(message(MOST_PREFIXES)).announcement.filter) == MOST_PREFIXES
    assert cause_of(decode_handshake, message(100_000)) == "filter"
    large = Announcement((bytes(2**20),))
    assert cause_of(decode_handshake, encode_handshake(OriginatorSyn(large))[4:]) == "filter"
    update = routing_update(NOBODY, NOBODY, [b""] * 100_000)
    assert cause_of(read_filter, update) == "filter"


def test_numbers_of_elements_that_lie_are_refused():
    lie = b"\xff\xff\xff\xff\x0f"
    assert cause_of(decode_handshake, b"\x0a" + lie) == "length"
    assert cause_of(read_filter, Envelope(3, NOBODY, NOBODY, b"<$>", lie)) == "length"
    nack = encode_command(command_of(Nack((1, 2))))
    assert cause_of(decode_command, nack[:57] + lie + nack[58:]) == "length"


def command_of(content):
    return Command(0, NO_ENTITY, NO_ENTITY, content)


def test_trailing_octets_are_refused():
    assert cause_of(decode_command, encode_command(command_of(CumulativeAck(1))) + b"\0") == "trailing-octets"
    update = routing_update(NOBODY, NOBODY, [b"/a"])
    assert cause_of(read_filter, update._replace(payload=update.payload + b"\0")) == "trailing-octets"


def test_a_topic_longer_than_its_length_field_is_refused():
    with pytest.raises(ValueError, match="topic"):
        encode_envelope(Envelope(1, NOBODY, NOBODY, bytes(65_536), b""))


def test_octets_behind_a_handshake_message_are_not_looked_at():
    message = encode_handshake(OriginatorSyn(Announcement((b"/a",), 5, 6)), 2)[4:]
    assert decode_handshake(message).announcement == Announcement((b"/a",))
    assert decode_handshake(message, 2).announcement == Announcement((b"/a",), 5, 6)


@pytest.mark.parametrize(
    "value",
    [
        None,
        (),
        (1, 1),
        (1, 1, ()),
        (2, 1, ("event", ())),
        (1, 1, ("event",)),
        (1, 1, ("event", (), ((1, 2),))),
        (1, 1, ("event", (), 7)),
        (1, 9, ("event", ())),
        (1, 3, ("stream", "writer", "path", "row")),
        (1, 5, (1,)),
    ],
)
def test_a_value_that_is_not_a_message_of_zeek_is_refused(value):
    assert cause_of(from_value, value) == "zeek-message"


def test_elements_beyond_those_known_are_left_out_and_batches_hold_messages():
    assert from_value((1, 1, ("event", (7,), (), "more"), "more")) == Event("event", (7,), ())
    batch = Batch((Event("a"), Batch((Event("b"),))))
    assert from_value(to_value(batch)) == batch
    assert from_value(decode(encode(to_value(batch)))) == batch


def test_a_nack_is_read_only_as_far_as_it_is_answered():
    nack = Command(0, NO_ENTITY, NO_ENTITY, Nack(tuple(range(1, 100_000))))
    assert decode_command(encode_command(nack)).content == Nack(tuple(range(1, MOST_NACKED + 1)))
    with pytest.raises(MalformedMessage):
        decode_command(encode_command(nack)[:-1])
