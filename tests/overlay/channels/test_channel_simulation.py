"""Channels over a transport that loses, doubles and reorders: nothing is lost, nothing comes twice."""

from __future__ import annotations

import pytest
from overlay.channels.simulation import simulate

from dafka.overlay.channels.consumer import Consume, Consumer
from dafka.overlay.channels.messages import Event
from dafka.overlay.channels.producer import Producer


@pytest.mark.parametrize("first", range(0, 150, 10))
def test_every_consumer_gets_every_event_once_and_in_order(first):
    for seed in range(first, first + 10):
        try:
            simulate(seed)
        except AssertionError as error:
            pytest.fail(f"seed {seed}: {error}")


def lets_go_at_the_first_acknowledgement(patch):
    acknowledge = Producer._acknowledge

    def eager(self, consumer, known, sequence):
        outputs = acknowledge(self, consumer, known, sequence)
        while self._events and self._events[0].sequence <= sequence:
            self._events.popleft()
        return outputs

    patch.setattr(Producer, "_acknowledge", eager)


def never_asks_for_what_is_missing(patch):
    patch.setattr(Consumer, "_missing", lambda self: () if self.next else (0,))


def does_not_heed_heartbeats(patch):
    note = Consumer._note
    patch.setattr(Consumer, "_note", lambda self, sequence: note(self, sequence) if self._ahead else None)


def consumes_what_comes_first(patch):
    def eager(self, message):
        if isinstance(message, Event) and self.next and message.sequence >= self.next:
            self.next = message.sequence + 1
            return [Consume(message.content)]
        return receive(self, message)

    receive = Consumer.receive
    patch.setattr(Consumer, "receive", eager)


def begins_where_the_producer_is_now(patch):
    add = Producer.add

    def late(self, consumer):
        known = self._consumers.get(consumer)
        if known is not None:
            known.offset = self.sequence
        return add(self, consumer)

    patch.setattr(Producer, "add", late)


def forgets_the_silent_too_soon(patch):
    patch.setattr(Producer.__init__, "__defaults__", (True, 20))


@pytest.mark.parametrize(
    "fault",
    [
        lets_go_at_the_first_acknowledgement,
        never_asks_for_what_is_missing,
        does_not_heed_heartbeats,
        consumes_what_comes_first,
        begins_where_the_producer_is_now,
        forgets_the_silent_too_soon,
    ],
    ids=lambda value: value.__name__,
)
def test_a_channel_that_does_this_is_found(fault, monkeypatch):
    fault(monkeypatch)
    for seed in range(150):
        try:
            simulate(seed)
        except (AssertionError, IndexError):
            return
    pytest.fail("no seed found it")
