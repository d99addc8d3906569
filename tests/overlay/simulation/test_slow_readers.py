"""Slow readers in simulated overlays. `scripts/simulate_overlay --of readers` runs as many as wanted."""

from __future__ import annotations

import pytest
from overlay.simulation.slow_readers import simulate

from dafka.overlay.core import Core
from dafka.overlay.flow import Flow
from dafka.overlay.routing.outputs import Relay
from dafka.overlay.routing.peer import Peer

SEEDS = range(8)
FAR = (5000056, 5000058, 5000070)  # up to 29 hops over slow links: the last messages come after 12 s
HAPPENING = (4, 6, 8)


@pytest.mark.parametrize("seed", [*SEEDS, *FAR])
def test_slow_readers_get_everything_in_order_and_what_waits_is_bounded(seed):
    simulate(seed)


def test_everything_that_may_happen_does():
    overlays = [simulate(seed) for seed in HAPPENING]
    assert any(one.waited for one in overlays)
    assert any(node.core.flow.dropped for one in overlays for node in one.ours)
    assert any(one.left for one in overlays)
    assert any(one.paused for one in overlays) and any(one.congested for one in overlays)


def forgets_heights(patch):
    send, hear = Peer._send, Peer.height

    def flat(*arguments):
        outputs = send(*arguments)
        return [one._replace(height=0) if isinstance(one, Relay) else one for one in outputs]

    patch.setattr(Peer, "_send", flat)
    patch.setattr(Peer, "height", lambda self, branches: hear(self, branches) and 0)
    hops = Peer.first_hops
    patch.setattr(Peer, "first_hops", lambda self, topic: ((hop, 0) for hop, _ in hops(self, topic)))


def forgets_to_give_credit_for_what_was_held(patch):
    patch.setattr(Flow, "room", lambda self, blocker: [])


def gives_credit_before_there_is_room(patch):
    take = Flow.take
    patch.setattr(
        Flow, "take", lambda self, one, height, cost, last, blockers: take(self, one, height, cost, last, [])
    )


def drops_from_the_middle(patch):
    def put(self, outlet, frames):
        for frame in frames:
            if outlet.octets >= self._most:
                self.dropped += 1
                continue
            outlet.frames.insert(len(outlet.frames) // 2, frame)
            self._count(outlet, len(frame) + 128)

    patch.setattr(Flow, "_wait_or_drop", put)


def sends_without_credit(patch):
    patch.setattr(Flow, "send", lambda self, neighbour, height, frames: b"".join(frames))


def keeps_a_little_of_the_credit(patch):
    give = Flow._give

    def given(self, neighbour, height, inlet):
        grant = give(self, neighbour, height, inlet)
        return grant and grant._replace(octets=grant.octets - 1)

    patch.setattr(Flow, "_give", given)


def holds_back_nothing_for_leaves(patch):
    patch.setattr(Core, "congested", lambda self, peer: None)


def never_reads_a_leaf_again(patch):
    room = Flow.room
    patch.setattr(
        Flow, "room", lambda self, blocker: [one for one in room(self, blocker) if not self._is_plain[one[0]]]
    )


def keeps_what_waited_for_a_neighbour_that_is_gone(patch):
    def link_down(self, neighbour):
        self._is_plain.pop(neighbour, None)
        return []

    patch.setattr(Flow, "link_down", link_down)


@pytest.mark.parametrize(
    ("fault", "first"),
    [
        (holds_back_nothing_for_leaves, 14),
        (never_reads_a_leaf_again, 0),
        (keeps_what_waited_for_a_neighbour_that_is_gone, 0),
        (forgets_heights, 0),
        (forgets_to_give_credit_for_what_was_held, 0),
        (gives_credit_before_there_is_room, 0),
        (keeps_a_little_of_the_credit, 0),
        (sends_without_credit, 0),
        (drops_from_the_middle, 0),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_an_overlay_that_does_this_is_found(fault, first, monkeypatch):
    fault(monkeypatch)
    for seed in range(first, first + 20):
        try:
            simulate(seed)
        except (AssertionError, KeyError):
            return
    pytest.fail("no seed found it")
