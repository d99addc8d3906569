from __future__ import annotations

import os

import pytest

from dafka.overlay.bridge.sharing.link_messages import (
    Attach,
    Batches,
    Hello,
    LinkMessage,
    OfLink,
    TopicSettings,
    from_value,
    to_value,
)
from dafka.overlay.channels.messages import CumulativeAck, Event, Handshake, Heartbeat, Nack, RetransmitFailed
from dafka.overlay.values import Count, Table, Value
from dafka.overlay.values.decoder import decode
from dafka.overlay.values.encoder import encode
from dafka.protocol.errors import MalformedMessage

MESSAGES: list[LinkMessage] = [
    Hello("berlin"),
    Attach(2**63 - 1, "paris", {("a.b", 0): 7, ("a.b", 3): 2**40, ("c", 0): 0}),
    Attach(1, "paris", {}),
    OfLink(1, Handshake(1, 5)),
    OfLink(1, Event(2, Batches("a", 1, 3, 99, (os.urandom(1000), b"")))),
    OfLink(1, RetransmitFailed(3)),
    OfLink(1, Heartbeat(3)),
    OfLink(1, CumulativeAck(3)),
    OfLink(1, Nack((3, 4))),
    TopicSettings(1, {"a.b": {"cleanup.policy": "compact", "retention.ms": "-1"}, "c": {}}),
]


@pytest.mark.parametrize("message", MESSAGES, ids=range(len(MESSAGES)))
def test_messages_are_read_as_they_were_written(message: LinkMessage) -> None:
    assert from_value(decode(encode(to_value(message)))) == message


NONSENSE: list[Value] = [
    None,
    (),
    ("hello", Count(2), "berlin"),
    ("attach", Count(1), "x", Table({1: (Count(1), Count(2))})),
    ("attach", Count(1), "x", Table({"t": ((Count(1), -2),)})),
    ("event", Count(1), Count(2), "t", Count(0), Count(1), Count(5), ("no base64!",)),
    ("event", Count(1), Count(2), "t", Count(0), Count(1)),
    ("nack", Count(1), (1,)),
    ("nack", Count(1), ()),
    ("cumulative_ack", 1, Count(2)),
    ("settings", Count(1), ()),
    ("settings", Count(1), Table({"t": None})),
    ("settings", Count(1), Table({"t": Table({"retention.ms": 5})})),
    ("settings", Count(1), Table({"t": Table({"retention.ms": "5" * 20_000})})),
    ("settings", Count(1), Table({"t": Table({str(number): "" for number in range(200)})})),
]


@pytest.mark.parametrize("value", NONSENSE, ids=range(len(NONSENSE)))
def test_anything_but_a_message_is_an_error(value: Value) -> None:
    with pytest.raises(MalformedMessage):
        from_value(value)
