"""Protocol Signature, Versioning, Dafka Commands: octets on the wire, in the framing of the specification.

The nodes in the field have another framing without a signature; ours read both and send either.
"""

from __future__ import annotations

import pytest
from mesh.peer import ADDRESS, Peer

from dafka import Consumer, Tower
from dafka.protocol import commands
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import Framing, decode, encode, zmq_topic

ONE, OTHER = b"A" * 32, b"B" * 32
EVERY_COMMAND = [
    (b"M", commands.Record(ONE, b"hello", 7, b"content")),
    (b"D", commands.DirectRecord(OTHER, ONE, b"hello", 7, b"content")),
    (b"F", commands.Fetch(ONE, OTHER, b"hello", 7, 3)),
    (b"K", commands.Ack(ONE, b"hello", 7, OTHER)),
    (b"H", commands.Head(ONE, b"hello", 7)),
    (b"E", commands.DirectHead(OTHER, ONE, b"hello", 7)),
    (b"G", commands.GetHeads(b"hello", OTHER)),
    (b"W", commands.ConsumerHello(ONE, OTHER, (b"hello", b"hello2"))),
    (b"L", commands.StoreHello(ONE, OTHER)),
]
every_command = pytest.mark.parametrize(
    ("octet", "command"), EVERY_COMMAND, ids=[type(command).__name__ for _, command in EVERY_COMMAND]
)


@every_command
def test_every_message_has_the_signature(octet, command):
    """Every Dafka message sent SHALL start with the DAFKA protocol signature, %xAA %xA0.

    %xAA %xA5 in the grammar, which counts; it begins the frame behind the topic frame.
    """
    _, body, *_ = encode(command, Framing.RFC46)
    assert body[:3] == b"\xaa\xa5" + octet


@pytest.mark.parametrize(
    "start", [b"\xaa\xa0M\x01", b"\xa5\xaaM\x01", b"", b"\xaa", b"GET / HTTP/1.1\r\n", b"\x00" * 9]
)
def test_a_message_without_the_signature_is_silently_discarded(start):
    """A node SHALL silently discard any message received that does not start with these two octets."""
    topic, body, content = encode(commands.Record(ADDRESS, b"hello", 0, b"good"), Framing.RFC46)
    with pytest.raises(MalformedMessage):
        decode([topic, start + body[4:], content])
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["hello"], tower=tower) as consumer:
        peer.meet(b"Mhello")
        peer.send_frames([topic, start + body[4:], content])
        peer.send_frames([topic, body, content])
        assert [record.value for record in consumer.poll(100.0)] == [b"good"]


@every_command
def test_the_version_follows_the_signature(octet, command):
    """A version number octet %x01 shall follow the signature. (Behind the command's ID, by the grammar.)"""
    _, body, *_ = encode(command, Framing.RFC46)
    assert body[:4] == b"\xaa\xa5" + octet + b"\x01"
    head = encode(command, Framing.LIBDAFKA)[0]
    assert head.startswith(zmq_topic(command) + b"\0\x01")


@pytest.mark.parametrize("version", [b"\x00", b"\x02", b"\x30", b"\xff"])
def test_a_message_of_another_version_is_discarded(version):
    """A node SHALL discard messages that do not contain a valid version number."""
    good = commands.Record(ADDRESS, b"hello", 0, b"good")
    topic, body, content = encode(good, Framing.RFC46)
    of_specification = [topic, body[:3] + version + body[4:], content]
    head, content = encode(good, Framing.LIBDAFKA)
    of_field = [head.replace(b"hello\0\x01", b"hello\0" + version, 1), content]
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["hello"], tower=tower) as consumer:
        peer.meet(b"Mhello")
        for frames in (of_specification, of_field):
            with pytest.raises(MalformedMessage, match="version"):
                decode(frames)
            peer.send_frames(frames)
        peer.send(good)
        assert [record.value for record in consumer.poll(100.0)] == [b"good"]


@every_command
def test_the_first_frame_is_the_zeromq_topic(octet, command):
    """Each command MUST contain as first frame the name of the ZeroMQ topic it is published to."""
    names = {b"M": b"hello", b"H": b"hello", b"G": b"hello", b"D": OTHER, b"E": OTHER}
    topic = octet + names.get(octet, ONE)
    assert encode(command, Framing.RFC46)[0] == topic
    assert encode(command, Framing.LIBDAFKA)[0].startswith(topic)
    for framing in Framing:
        assert decode(encode(command, framing)) == command
