"""Words about subscriptions that a ring with chords of nodes exchanges when its filters change, in memory."""

from __future__ import annotations

import random
from collections import deque
from functools import partial
from time import perf_counter

from processes import Figures

from dafka.overlay.routing.outputs import Tell
from dafka.overlay.routing.peer import Peer
from dafka.overlay.wire.frames import FrameReader

CHANGES = 20


def updates(peers: int) -> Figures:
    """Words a second that are sent, heard and passed on."""
    nodes = [Peer(number.to_bytes(16, "big"), 100) for number in range(1, peers + 1)]
    by_id = {node.me: node for node in nodes}
    links = {(index, (index + 1) % peers) for index in range(peers)}
    links |= {(index, (index + peers // 2) % peers) for index in range(0, peers // 2, 3)}
    for one, other in sorted(links):
        here, there = nodes[one], nodes[other]
        ours, theirs = here.announcement, there.announcement
        left = deque((here.me, step) for step in here.link_up(there.me, ours, theirs))
        left += [(there.me, step) for step in there.link_up(here.me, theirs, ours)]
        _settle(by_id, left)
    chance = random.Random(1)
    words = 0
    began = perf_counter()
    for change in range(CHANGES):
        node = chance.choice(nodes)
        words += _settle(by_id, deque((node.me, step) for step in node.subscribe((b"/%d" % change,))))
    return (words / (perf_counter() - began),)


def _settle(nodes: dict[bytes, Peer], left: deque) -> int:  # type: ignore[type-arg]
    words = 0
    while left:
        sender, step = left.popleft()
        if isinstance(step, Tell):
            reader = FrameReader(len(step.octets))
            reader.feed(step.octets)
            for word in reader.messages():
                words += 1
                left += [(step.neighbour, one) for one in nodes[step.neighbour].receive(sender, word)]
    return words


TEN, FIFTY, TWO_HUNDRED = (partial(updates, peers) for peers in (10, 50, 200))
