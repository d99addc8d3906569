"""Sides of connections, and what they are told."""

from __future__ import annotations

from dafka.zmtp.connection import Connection, Established, Event, Messages, Options

ROUTER = Options((b"ROUTER", b"PULL", b"PUSH"), accepts=True, max_octets=1 << 20)
PUB = Options((b"PUB",), accepts=True, max_octets=4096)
DEALER = Options((b"DEALER",), accepts=False, identity=b"me", max_octets=1 << 20)


def received(connection: Connection, octets: bytes, most: int = 1000) -> list[Event]:
    """All events, with messages one by one."""
    events: list[Event] = []
    pieces = [octets]
    while pieces or connection.pending:
        for event in connection.receive(pieces.pop() if pieces else b"", most):
            if isinstance(event, Messages):
                events += [Messages([one]) for one in event.messages]
            else:
                events.append(event)
    return events


def talk(one: Connection, other: Connection) -> tuple[list[Event], list[Event]]:
    """Let two connections talk until both are silent; returns the events of each."""
    events: tuple[list[Event], list[Event]] = ([], [])
    while True:
        forth, back = one.take_output(), other.take_output()
        if not forth and not back:
            return events
        events[1].extend(received(other, forth) if forth else [])
        events[0].extend(received(one, back) if back else [])


def established(connection: Connection, octets: bytes) -> Established:
    received(connection, octets)
    connection.take_output()
    assert connection.established is not None
    return connection.established
