"""A master and a clone of libbroker, recorded: ours takes either part and says the same commands.

Acknowledgements and keepalives depend on the moment, and are left out.
"""

from __future__ import annotations

import json
from datetime import datetime, timezone
from itertools import groupby

from overlay.vectors import Vector, vectors

from dafka.overlay.stores.clone import Clone
from dafka.overlay.stores.content import Content
from dafka.overlay.stores.master import NANOSECONDS, Master
from dafka.overlay.stores.outputs import Answered, Changed, Cleared, Output, Publish
from dafka.overlay.values import Address, Count, Port, Set, Table, Timespan, Timestamp, Value
from dafka.overlay.wire.commands import (
    QUERIES,
    AckClone,
    AttachWriter,
    Command,
    CumulativeAck,
    Expire,
    Keepalive,
    Nack,
    PutUnique,
    decode_command,
    encode_command,
)
from dafka.overlay.wire.envelope import Envelope, decode_envelope
from dafka.overlay.wire.primitives import NOBODY, EntityId

CLONE = EntityId(bytes.fromhex("11111111111141118111111111111111"), 7)
MASTER = EntityId(bytes.fromhex("22222222222242228222222222222222"), 7)
STATE = [("k0", Count(10)), (Count(7), Set([Count(1)]))]
LAST = "store-clear"


def steps() -> list[tuple[str, list[Vector]]]:
    """What was done to the store: the names, and the commands and events that followed."""
    rows = [one for one in vectors() if one.name.startswith("store-")]
    found = [(name, list(some)) for name, some in groupby(rows, key=lambda one: one.session)]
    return found[: [name for name, _ in found].index(LAST) + 1]


def envelopes(some: list[Vector], by_clone: bool) -> list[Envelope]:
    ways = ("clone->master", "connector->listener") if by_clone else ("master->clone", "listener->connector")
    read = [one for one in some if one.direction in ways and "ttl=" in one.meaning]
    return [decode_envelope(one.message) for one in read]


def by_itself(command: Command) -> bool:
    return isinstance(command.content, (CumulativeAck, Keepalive))


def events_of(outputs: list[Output]) -> list[Value]:
    events: list[Value] = []
    for one in outputs:
        events += [one.event] if isinstance(one, Changed) else one.events if isinstance(one, Cleared) else []
    return events


def in_order(payload: bytes) -> bytes:
    """The same command with the entries of a content in an order of their own: that means nothing."""
    command = decode_command(payload)
    content = command.content
    if isinstance(content, AckClone):
        content = content._replace(state=tuple(sorted(content.state, key=repr)))
    return encode_command(command._replace(content=content))


def said(outputs: list[Output]) -> list[tuple[bytes, bytes, bytes]]:
    """Topic, receiver and octets of the commands."""
    return [
        (one.topic, one.receiver or NOBODY, in_order(encode_command(one.command)))
        for one in outputs
        if isinstance(one, Publish) and not by_itself(one.command) and not one.topic.endswith(QUERIES)
    ]


def recorded(some: list[Vector], by_clone: bool) -> list[tuple[bytes, bytes, bytes]]:
    return [
        (one.topic, one.receiver, in_order(one.payload))
        for one in envelopes(some, by_clone)
        if not by_itself(decode_command(one.payload))
    ]


def as_json(value: Value) -> object:
    match value:
        case None:
            return {"@data-type": "none", "data": {}}
        case Count():
            return {"@data-type": "count", "data": int(value)}
        case Timespan():
            unit = next(one for one in (10**9, 10**6) if value % one == 0)
            return {"@data-type": "timespan", "data": f"{value // unit}{'s' if unit == 10**9 else 'ms'}"}
        case Timestamp():
            when = datetime.fromtimestamp(value / NANOSECONDS, timezone.utc)
            return {"@data-type": "timestamp", "data": when.strftime("%Y-%m-%dT%H:%M:%S.000")}
        case str():
            return {"@data-type": "string", "data": value}
        case Set():
            return {"@data-type": "set", "data": [as_json(one) for one in value]}
        case Table():
            pairs = [{"key": as_json(key), "value": as_json(one)} for key, one in value.entries]
            return {"@data-type": "table", "data": pairs}
        case tuple() if not isinstance(value, (Port, Address)):
            return {"@data-type": "vector", "data": [as_json(one) for one in value]}
    raise AssertionError(value)


def check_events(name: str, outputs: list[Output], some: list[Vector], direction: str) -> None:
    expected = [one.meaning[one.meaning.index("{") :] for one in some if one.direction == direction]
    events = [json.dumps(as_json(event)) for event in events_of(outputs)]
    if not expected and "put-unique" in name:
        return  # libbroker leaves out the event where put_unique was called
    # The order of a clear is that of libbroker's hash table.
    assert sorted(events) == sorted(json.dumps(json.loads(one)) for one in expected), name


def test_ours_as_the_master():
    content = Content("st")
    content.replace(STATE, MASTER)
    master = Master(MASTER, content)
    now = 0.0
    for name, some in steps():
        outputs: list[Output] = []
        for envelope in envelopes(some, by_clone=True):
            outputs += master.receive(now, decode_command(envelope.payload))
        if not envelopes(some, by_clone=True):  # written at the master itself
            for envelope in envelopes(some, by_clone=False):
                action = decode_command(envelope.payload).content
                if name == "store-put-unique-new-at-master":
                    key, value, expiry, publisher = action
                    caller = EntityId(MASTER.endpoint, 8)
                    outputs += master.write(now, PutUnique(key, value, expiry, caller, 1, publisher))
                    assert Answered(1, True) in outputs
                    break
                outputs += master.write(now, action)
        if any(isinstance(decode_command(one.payload).content, Expire) for one in envelopes(some, False)):
            assert master.tick(now + 0.5) is not None
            now += 1.1
            outputs += master.tick(now)
        assert said(outputs) == recorded(some, by_clone=False), name
        check_events(name, outputs, some, "local at master")
    assert len(content) == 0


def test_ours_as_a_clone():
    content = Content("st")
    clone = Clone(CLONE, content, lambda: CLONE)
    outputs = clone.tick()
    for name, some in steps():
        for envelope in envelopes(some, by_clone=True):
            action = decode_command(envelope.payload).content
            if not isinstance(action, (Nack, AttachWriter, CumulativeAck, Keepalive)):
                outputs += clone.write(action)
        for envelope in envelopes(some, by_clone=False):
            command = decode_command(envelope.payload)
            outputs += clone.receive(command)
            if isinstance(command.content, AckClone):
                assert sorted(map(repr, content)) == sorted(map(repr, STATE))
                outputs = [one for one in outputs if not isinstance(one, Changed)]
        if name == "store-attach":
            # Ours opens its writer at the first write, libbroker at once.
            attach = next(
                one for one in recorded(some, True) if decode_command(one[2]).content == AttachWriter(1, 5)
            )
            assert said(outputs) == [one for one in recorded(some, True) if one != attach]
        else:
            assert [one for one in said(outputs) if one != attach] == recorded(some, by_clone=True), name
        check_events(name, outputs, some, "local at clone")
        if name == "store-put-unique-new-at-clone":
            assert Answered(1, True) in outputs
        if name == "store-put-unique-existing-at-clone":
            assert Answered(2, False) in outputs
        outputs = []
    assert len(content) == 0
