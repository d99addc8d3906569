"""The store that a master and a clone of libbroker shared, replayed on sockets: ours takes either part.

Acknowledgements and keepalives depend on the moment, and are left out of what is compared.
"""

from __future__ import annotations

from contextlib import closing
from types import SimpleNamespace

import pytest
from overlay.node.endpoints import until
from overlay.node.test_recorded_connections import V1, Wire
from overlay.stores import test_recorded_stores as stores
from overlay.stores.test_recorded_stores import CLONE, MASTER, STATE, by_itself, steps
from overlay.vectors import Vector

from dafka.hub.hub import get_hub
from dafka.overlay import Endpoint
from dafka.overlay.node import carrier
from dafka.overlay.wire.commands import (
    AckClone,
    AttachWriter,
    CumulativeAck,
    Keepalive,
    Nack,
    PutUnique,
    decode_command,
)
from dafka.overlay.wire.envelope import COMMAND, Envelope, decode_envelope
from dafka.overlay.wire.primitives import EntityId

BY_CLONE = ("connector->listener", "clone->master")
BY_MASTER = ("listener->connector", "master->clone")
NOT_WRITTEN = (AckClone, AttachWriter, CumulativeAck, Keepalive, Nack)


@pytest.fixture(autouse=True)
def numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Objects of stores have the number of the recording."""
    monkeypatch.setattr(carrier, "secrets", SimpleNamespace(randbits=lambda bits: CLONE.number))


def is_by_itself(octets: bytes) -> bool:
    envelope = decode_envelope(octets[4:])
    return envelope.kind != COMMAND or by_itself(decode_command(envelope.payload))


def command_of(octets: bytes) -> object:
    return decode_command(decode_envelope(octets[4:]).payload).content


def in_order(octets: bytes) -> tuple[int, Envelope]:
    """A message, in which the order of a content's entries means nothing."""
    envelope = decode_envelope(octets[4:])
    return len(octets), envelope._replace(payload=stores.in_order(envelope.payload))


def next_of_ours(wire: Wire) -> bytes:
    while is_by_itself(octets := wire.read()):
        pass
    return octets


def shake_hands(wire: Wire, some: list[Vector], ours: str) -> None:
    """Filters are not compared: ours has a topic more, for questions of proxies."""
    for one in some:
        if "ttl=" in one.meaning:
            return
        if one.direction == ours:
            assert wire.read()[4] == one.octets[4], one.name
        else:
            wire.send(one.octets)


def actions(some: list[Vector], ways: tuple[str, ...]) -> list[object]:
    found = [command_of(one.octets) for one in some if one.direction in ways]
    return [one for one in found if not isinstance(one, NOT_WRITTEN)]


def messages(some: list[Vector]) -> list[Vector]:
    return [one for one in some if one.direction in BY_CLONE + BY_MASTER and "ttl=" in one.meaning]


def test_ours_as_the_master() -> None:
    with Endpoint("127.0.0.1:0", id=MASTER.endpoint, versions=V1) as endpoint:
        store = endpoint.attach_master("st")
        content = endpoint._carrier.role.stores["st"].content
        get_hub().run(content.replace, STATE, MASTER)
        with closing(Wire(endpoint, is_dialled=False)) as wire:
            for name, some in steps():
                if name == "store-attach":
                    shake_hands(wire, some, BY_MASTER[0])
                some = messages(some)
                theirs = [one for one in some if one.direction in BY_CLONE]
                for one in theirs:
                    wire.send(one.octets)
                if not theirs:
                    for action in actions(some, BY_MASTER):
                        if name == "store-put-unique-new-at-master":
                            key, value, expiry, publisher = action
                            caller = EntityId(MASTER.endpoint, 8)
                            store.write(PutUnique(key, value, expiry, caller, 1, publisher))
                            break
                        store.write(action)
                for one in some:
                    if one.direction in BY_MASTER and not is_by_itself(one.octets):
                        assert in_order(next_of_ours(wire)) == in_order(one.octets), one.name
        assert not store.keys()


def test_ours_as_a_clone() -> None:
    with Endpoint(id=CLONE.endpoint, versions=V1) as endpoint:
        store = endpoint.attach_clone("st")
        with closing(Wire(endpoint, is_dialled=True)) as wire:
            for name, some in steps():
                if name == "store-attach":
                    shake_hands(wire, some, BY_CLONE[0])
                some = messages(some)
                for action in actions(some, BY_CLONE):
                    store.write(action)
                for one in some:
                    if one.direction in BY_MASTER:
                        wire.send(one.octets)
                    elif not is_by_itself(one.octets) and not isinstance(
                        command_of(one.octets), AttachWriter
                    ):
                        octets = next_of_ours(wire)
                        if octets != one.octets:  # it opens its writer now, libbroker at once
                            assert isinstance(command_of(octets), AttachWriter)
                            octets = next_of_ours(wire)
                        assert octets == one.octets, one.name
        until(lambda: not store.keys())
