"""Both ends of a link, over a transport that loses, doubles and reorders, and with ends that are killed."""

from __future__ import annotations

import random

import pytest

from dafka.overlay.bridge import limits
from dafka.overlay.bridge.limits import HELLO_SECONDS, SILENT_SECONDS
from dafka.overlay.bridge.sharing import incoming as limits_of_incoming
from dafka.overlay.bridge.sharing.incoming import FROM_SOURCE, Incoming, Step, Tell, Write
from dafka.overlay.bridge.sharing.link_messages import Attach, Batches, OfLink
from dafka.overlay.bridge.sharing.outgoing import Outgoing
from dafka.overlay.channels.messages import (
    CumulativeAck,
    Event,
    FromProducer,
    Handshake,
    Nack,
    RetransmitFailed,
)

BERLIN, PARIS = b"b" * 16, b"p" * 16
KEY = ("flights", 0)
WINDOW = 10 * (limits.EVENT_BESIDE + 5)  # ten events of at most five records of one octet


class World:
    """Topic flights of berlin, of ``length`` records, on its way to paris. Time goes on in ticks."""

    def __init__(
        self, seed: int, length: int, loss: float = 0.0, window: int = 10 * (limits.EVENT_BESIDE + 5)
    ) -> None:
        self.chance = random.Random(seed)
        self.loss = loss
        self.length = length
        self.window = window
        self.now = 0.0
        self.wire: list[tuple[float, bytes, object]] = []  # time, receiver, message
        self.links = 0
        self.lives = 0
        self.log: list[int] = []  # offsets written by paris
        self.checkpoint: dict[tuple[str, int], int] = {}
        self.largest_gap = 0
        self.start_berlin()
        self.start_paris()

    def start_berlin(self) -> None:
        self.outgoing: Outgoing | None = None

    def start_paris(self) -> None:
        self.positions = dict(self.checkpoint)
        self.waiting: list[Write] = []
        self.incoming = Incoming("paris", "berlin", lambda: dict(self.positions), self.new_link)

    def new_link(self) -> int:
        self.links += 1
        return self.links

    def post(self, to: bytes, message: object) -> None:
        if self.chance.random() < self.loss:
            return
        late = self.chance.random() * 0.5 if self.loss else 0.0
        self.wire.append((self.now + late, to, message))
        if self.chance.random() < self.loss / 3:
            self.wire.append((self.now + 2 * late, to, message))

    def carry(self, steps: list[Step]) -> None:
        for step in steps:
            if isinstance(step, Tell):
                self.post(step.peer, step.message)
            else:
                self.waiting.append(step)

    def tell_paris(self, messages: list[FromProducer]) -> None:
        assert self.outgoing is not None
        for message in messages:
            self.post(PARIS, OfLink(self.outgoing.link, message))

    def hear_berlin(self, message: object) -> None:
        if isinstance(message, Attach):
            if self.outgoing is None or self.outgoing.link != message.link:
                self.outgoing = Outgoing(message, self.window)
                self.outgoing.share({"flights": 1})
            self.tell_paris(self.outgoing.repeat())
            return
        assert isinstance(message, OfLink)
        content = message.message
        assert isinstance(content, (CumulativeAck, Nack))
        if self.outgoing is not None and self.outgoing.link == message.link:
            self.tell_paris(self.outgoing.receive(content))
        elif isinstance(content, CumulativeAck):
            self.post(PARIS, OfLink(message.link, RetransmitFailed(content.sequence + 1)))
        else:
            self.post(PARIS, OfLink(message.link, RetransmitFailed(content.sequences[0])))

    def tick(self, greets: bool = True, writes: bool = True) -> None:
        self.now += 0.1
        due = [one for one in self.wire if one[0] <= self.now]
        self.wire = [one for one in self.wire if one[0] > self.now]
        for _, to, message in due:
            if to == BERLIN:
                self.hear_berlin(message)
            elif isinstance(message, OfLink) and isinstance(message.message, FROM_SOURCE):
                self.carry(self.incoming.receive(self.now, BERLIN, message.link, message.message))
        if greets:
            self.carry(self.incoming.greeted(self.now, BERLIN, True))
        self.carry(self.incoming.tick(self.now))
        if self.outgoing is not None:
            self.tell_paris(self.outgoing.tick())
            self.read()
        if writes:
            self.write(self.chance.randint(0, 4))

    def read(self) -> None:
        out = self.outgoing
        assert out is not None
        while out.has_room and out.positions[KEY] < self.length:
            start = out.positions[KEY]
            stop = min(start + self.chance.randint(1, 5), self.length)
            octets = b"".join(bytes([offset % 256]) for offset in range(start, stop))
            self.tell_paris(out.send(Batches(*KEY, 1, stop, (octets,))))
            assert out.in_flight <= self.window + limits.EVENT_BESIDE + 5

    def write(self, most: int) -> None:
        current = [one for one in self.waiting if self.incoming.is_current(one.ticket)]
        for one in current[:most]:
            content = one.content
            offsets = list(range(content.next - len(content.batches[0]), content.next))
            assert content.batches[0] == bytes([offset % 256 for offset in offsets])
            behind = max(self.log, default=-1) + 1
            assert offsets[0] <= behind, f"{offsets[0]} comes when {behind} is next"
            self.log += offsets
            self.positions[KEY] = content.next
            self.carry(self.incoming.written(one.ticket))
        self.waiting = current[most:]

    def run(self, ticks: int = 5000) -> None:
        for _ in range(ticks):
            if max(self.log, default=-1) == self.length - 1:
                return
            self.tick()
        raise AssertionError(f"{max(self.log, default=-1) + 1} of {self.length} after {ticks} ticks")


def test_everything_arrives_in_order_and_once_where_nothing_is_lost() -> None:
    world = World(1, 300)
    world.run()
    assert world.log == list(range(300))
    assert world.links == 2  # the first number is of the link before berlin was known


@pytest.mark.parametrize("seed", range(30))
def test_everything_arrives_whatever_is_lost_doubled_and_late(seed: int) -> None:
    world = World(seed, 300, loss=0.2)
    world.run()
    assert sorted(set(world.log)) == list(range(300))


@pytest.mark.parametrize("seed", range(30))
def test_everything_arrives_though_both_ends_are_killed_again_and_again(seed: int) -> None:
    world = World(seed, 400, loss=0.1)
    for _ in range(10):
        for _ in range(world.chance.randint(5, 60)):
            world.tick()
            if world.chance.random() < 0.1:
                world.checkpoint = dict(world.positions)
        if world.chance.random() < 0.5:
            world.start_berlin()
        else:
            world.start_paris()
    world.run()
    assert sorted(set(world.log)) == list(range(400))


def test_a_receiver_that_does_not_write_is_sent_no_more_than_the_window() -> None:
    world = World(1, 10_000)
    for _ in range(100):
        world.tick(writes=False)
    assert len(world.waiting) <= 11
    assert world.outgoing is not None
    assert world.outgoing.is_attached
    assert world.outgoing.positions[KEY] <= 11 * 5


def test_a_site_that_keeps_to_no_window_is_not_held_in_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits_of_incoming, "HELD_OCTETS", 20 * (limits.EVENT_BESIDE + 10))
    links = iter(range(10))
    to_write = Incoming("paris", "berlin", dict, lambda: next(links))
    to_write.greeted(0.0, BERLIN, True)
    to_write.receive(0.0, BERLIN, 1, Handshake(1, 5))
    writes: list[Write] = []
    for sequence in range(2, 100):
        event = Event(sequence, Batches(*KEY, 1, sequence, (bytes(10),)))
        writes += [one for one in to_write.receive(0.0, BERLIN, 1, event) if isinstance(one, Write)]
    assert len(writes) == 20
    to_write.written(writes[-1].ticket)
    assert to_write.held == 0
    again = to_write.receive(0.0, BERLIN, 1, Event(22, Batches(*KEY, 1, 22, (bytes(10),))))
    assert [one for one in again if isinstance(one, Write)]


def test_positions_that_are_written_are_not_sent_again() -> None:
    world = World(1, 300)
    world.checkpoint = {KEY: 250}
    world.start_paris()
    world.log = list(range(250))
    world.run()
    assert world.log == list(range(300))


def test_another_bridge_of_the_same_site_is_not_listened_to_while_the_first_one_lives() -> None:
    incoming = Incoming("paris", "berlin", dict, iter(range(10)).__next__)
    incoming.greeted(0.0, BERLIN, True)
    assert incoming.greeted(SILENT_SECONDS / 2, PARIS, True) == []
    assert incoming.peer == BERLIN


@pytest.mark.parametrize(
    ("now", "reachable"), [(SILENT_SECONDS, True), (0.1, False)], ids=["silent", "unreachable"]
)
def test_another_bridge_takes_over_when_the_first_one_is_gone(now: float, reachable: bool) -> None:
    incoming = Incoming("paris", "berlin", dict, iter(range(10)).__next__)
    incoming.greeted(0.0, BERLIN, True)
    (step,) = incoming.greeted(now, PARIS, reachable)
    assert isinstance(step, Tell)
    assert step.peer == PARIS


def test_the_link_is_asked_for_until_it_is_there() -> None:
    incoming = Incoming("paris", "berlin", dict, iter(range(10)).__next__)
    (first,) = incoming.greeted(0.0, BERLIN, True)
    assert incoming.tick(HELLO_SECONDS / 2) == []
    assert incoming.tick(HELLO_SECONDS) == [first]


def test_topics_that_are_not_shared_any_more_are_not_sent() -> None:
    outgoing = Outgoing(Attach(1, "paris", {("a", 1): 5}))
    outgoing.share({"a": 2, "b": 1})
    assert outgoing.positions == {("a", 0): 0, ("a", 1): 5, ("b", 0): 0}
    outgoing.share({"b": 1})
    assert outgoing.positions == {("b", 0): 0}
    assert outgoing.send(Batches("a", 0, 2, 1, (b"x",))) == []


def test_unacknowledged_batches_are_in_flight() -> None:
    outgoing = Outgoing(Attach(1, "paris", {}))
    outgoing.share({"flights": 1})
    outgoing.repeat()
    outgoing.receive(CumulativeAck(1))
    for offset in range(3):
        outgoing.send(Batches(*KEY, 1, offset + 1, (bytes(100),)))
    outgoing.receive(CumulativeAck(2))
    assert outgoing.in_flight == 2 * (limits.EVENT_BESIDE + 100)


def test_batches_of_an_earlier_link_are_not_written() -> None:
    incoming = Incoming("paris", "berlin", dict, iter(range(10)).__next__)
    incoming.greeted(0.0, BERLIN, True)
    incoming.receive(0.0, BERLIN, 1, Handshake(1, 5))
    steps = incoming.receive(0.0, BERLIN, 1, Event(2, Batches(*KEY, 1, 1, (b"x",))))
    (write,) = [step for step in steps if isinstance(step, Write)]
    assert incoming.is_current(write.ticket)
    incoming.receive(0.0, BERLIN, 1, RetransmitFailed(3))
    assert not incoming.is_current(write.ticket)
    assert incoming.written(write.ticket) == []
