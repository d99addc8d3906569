"""Every recorded message of the peer protocol is written as it was read."""

from __future__ import annotations

import pytest
from overlay.vectors import Vector, named, native

from dafka.overlay.values import Count, Set, decode, encode
from dafka.overlay.wire.commands import AckClone, Nack, Put, decode_command, encode_command
from dafka.overlay.wire.envelope import (
    COMMAND,
    DATA,
    ROUTING_UPDATE,
    decode_envelope,
    encode_envelope,
    read_filter,
    routing_update,
)
from dafka.overlay.wire.frames import FrameReader
from dafka.overlay.wire.handshake import WrongMagic, decode_handshake, encode_handshake
from dafka.overlay.wire.zeek import Event, from_value, to_value
from dafka.protocol.errors import MalformedMessage

MALFORMED = {
    # What the python side sent to see how libbroker takes it.
    "hs-wrong-magic/01-hello": "magic",
    "hs-unknown-type/01-type99": "message-type",
    "hs-short-hello/01-malformed": "truncated",
    "hs-zero-length/01-type0": "frame-length",
    "hs-http-request/01-type47": "frame-length",
    "op-unknown-envelope-type/01-drop_conn": "envelope-type",
    "op-trailing-bytes-in-data/01-data": "trailing-octets",
    "op-unknown-data-tag/01-malformed": "unknown-tag",
    "op-set-with-duplicate/01-data": "duplicate-element",
    "op-table-duplicate-key/01-data": "duplicate-element",
    "op-port-proto-4/01-data": "port",
    "op-frame-too-short/01-malformed": "envelope",
    "op-ieee-quiet-nan-7ff8/01-data": "real",
}
OTHERWISE = {
    # Read, and written in the one way that writers have.
    "op-set-not-sorted/01-data": "0c0202000000000000000302" + "0000000000000007",
    "op-boolean-2/01-data": "0101",
    "op-varbyte-overlong/01-data": "050568656c6c6f",
}
SPARE = {"hs-unexpected-originator-ack/01-originator_ack"}  # zeros behind a whole message
MOST = 1024 * 1024


def is_handshake(vector: Vector) -> bool:
    return "ttl=" not in vector.meaning and not vector.name.startswith("op-")


def again(vector: Vector) -> bytes:
    """The octets that what was read is written as."""
    reader = FrameReader(MOST)
    reader.feed(vector.octets)
    message = next(reader.messages())
    if is_handshake(vector):
        return encode_handshake(decode_handshake(message))
    envelope = decode_envelope(message)
    if envelope.kind == DATA:
        envelope = envelope._replace(payload=encode(decode(envelope.payload)))
    elif envelope.kind == COMMAND:
        envelope = envelope._replace(payload=encode_command(decode_command(envelope.payload)))
    elif envelope.kind == ROUTING_UPDATE:
        envelope = routing_update(envelope.sender, envelope.receiver, read_filter(envelope))
    return encode_envelope(envelope)


@pytest.mark.parametrize("vector", native(), ids=lambda vector: vector.name)
def test_a_recorded_message_is_written_as_it_was_read(vector):
    if vector.name in MALFORMED:
        with pytest.raises(MalformedMessage) as caught:
            again(vector)
        assert caught.value.cause == MALFORMED[vector.name]
    elif vector.name in OTHERWISE:
        assert decode_envelope(again(vector)[4:]).payload.hex() == OTHERWISE[vector.name]
    elif vector.name in SPARE:
        assert vector.octets.startswith(again(vector))
    else:
        assert again(vector) == vector.octets


def test_most_vectors_are_read():
    assert len(native()) > 350
    assert set(MALFORMED) | set(OTHERWISE) | SPARE <= {vector.name for vector in native()}


def test_a_wrong_magic_is_told_from_other_errors():
    with pytest.raises(WrongMagic):
        decode_handshake(named("hs-wrong-magic/01-hello").message)


def command(name: str):
    return decode_command(decode_envelope(named(name).message).payload)


def test_commands_have_the_fields_that_were_recorded():
    attached = command("store-attach/09-command.ack_clone")
    assert (attached.sequence, attached.sender.number, attached.receiver.number) == (1, 7, 7)
    assert isinstance(attached.content, AckClone)
    assert attached.content.offset == 1 and attached.content.heartbeat_interval == 5
    assert attached.content.state == (("k0", 10), (7, Set([Count(1)])))
    put = command("store-put-with-expiry-at-clone/01-command.put").content
    assert isinstance(put, Put) and put.key == "e" and put.expiry == 1_000_000_000
    assert command("py-writer/10-command.nack").content == Nack((3, 4))


def test_events_are_read_with_their_network_time():
    octets = decode_envelope(named("zeek-event-with-network-time").message).payload
    event = from_value(decode(octets))
    assert isinstance(event, Event)
    assert (event.name, event.arguments) == ("event_1", (42, "test"))
    assert event.network_time == 1_681_827_194_000_000_000
    assert encode(to_value(event)) == octets
    without = decode_envelope(named("zeek-event-no-metadata").message).payload
    event = from_value(decode(without))
    assert event == Event("event_1", (42, "test"))
    assert event.network_time is None
    assert encode(to_value(event)) == without
