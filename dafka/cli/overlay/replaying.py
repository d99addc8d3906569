"""A recorded cluster, built again in one process, and its messages published again."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from typing import NamedTuple

import click

from dafka.overlay import Endpoint, Subscriber

_PAUSE = 0.01
_ANYWHERE = "127.0.0.1:0"


class Recorded(NamedTuple):
    """A message: microseconds since the beginning, its publisher, and the octets of its value."""

    when: int
    sender: str
    topic: str
    octets: int


class Recording(NamedTuple):
    """The nodes with their prefixes, the links between them, and the messages."""

    nodes: Mapping[str, tuple[str, ...]]
    links: Sequence[tuple[str, str]]
    messages: Sequence[Recorded]


class Result(NamedTuple):
    """``left_out``: messages of senders that are not nodes. ``expected``: deliveries to subscribers."""

    nodes: int
    links: int
    published: int
    delivered: int
    expected: int
    left_out: int
    seconds: float


class Replay:
    """The nodes of a recording, connected. Raises :class:`click.ClickException` if that takes too long."""

    def __init__(self, recording: Recording, timeout: float) -> None:
        self._recording = recording
        self._timeout = timeout
        self._delivered: Counter[str] = Counter()
        self._open = ExitStack()
        self._endpoints: dict[str, Endpoint] = {}
        try:
            self._build()
        except BaseException:
            self._open.close()
            raise

    def run(self, speed: float) -> Result:
        """Publish everything, ``speed`` times as fast as it was recorded (0: as fast as possible)."""
        messages = [one for one in self._recording.messages if one.sender in self._endpoints]
        expected = expected_deliveries(self._recording, messages)
        began = time.monotonic()
        for message in messages:
            if speed:
                time.sleep(max(0.0, began + message.when / speed / 1e6 - time.monotonic()))
            content = "x" * max(message.octets - 3, 0)
            self._endpoints[message.sender].publish(message.topic, content, timeout=self._timeout)
        delivered = self._await(expected)
        return Result(
            len(self._endpoints),
            len(self._recording.links),
            len(messages),
            delivered,
            expected,
            len(self._recording.messages) - len(messages),
            max(time.monotonic() - began, 1e-9),
        )

    def close(self) -> None:
        self._open.close()

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _build(self) -> None:
        for name, prefixes in self._recording.nodes.items():
            endpoint = self._endpoints[name] = self._open.enter_context(Endpoint(listen=_ANYWHERE))
            if prefixes:
                subscriber = self._open.enter_context(endpoint.subscribe(*prefixes))
                threading.Thread(target=self._count, args=(name, subscriber), daemon=True).start()
        for one, other in self._recording.links:
            if not self._endpoints[one].peer(self._endpoints[other].address, timeout=self._timeout):
                raise click.ClickException(f"no peering between {one} and {other}")
        groups = components(self._recording.nodes, self._recording.links)
        for name, endpoint in self._endpoints.items():
            for other in groups[name] - {name}:
                if not endpoint.await_peer(self._endpoints[other].id, self._timeout):
                    raise click.ClickException(f"{name} has no path to {other}")

    def _count(self, name: str, subscriber: Subscriber) -> None:
        for _ in subscriber:
            self._delivered[name] += 1

    def _await(self, expected: int) -> int:
        last, changed = -1, time.monotonic()
        while True:
            delivered = sum(self._delivered.values())
            if delivered >= expected:
                return delivered
            if delivered != last:
                last, changed = delivered, time.monotonic()
            elif time.monotonic() - changed > self._timeout:
                return delivered
            time.sleep(_PAUSE)


def components(nodes: Iterable[str], links: Iterable[tuple[str, str]]) -> dict[str, set[str]]:
    """The nodes with which each node is connected, over any number of links."""
    groups = {name: {name} for name in nodes}
    for one, other in links:
        if groups[one] is not groups[other]:
            joined = groups[one] | groups[other]
            groups.update(dict.fromkeys(joined, joined))
    return groups


def expected_deliveries(recording: Recording, messages: Iterable[Recorded]) -> int:
    """How often the messages are to arrive: once at each other node that is reachable and wants the topic."""
    groups = components(recording.nodes, recording.links)
    wanted: dict[tuple[str, str], int] = {}
    total = 0
    for message in messages:
        key = message.sender, message.topic
        if key not in wanted:
            wanted[key] = sum(
                any(message.topic.startswith(prefix) for prefix in recording.nodes[name])
                for name in groups[message.sender] - {message.sender}
            )
        total += wanted[key]
    return total
