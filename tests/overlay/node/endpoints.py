"""What tests of running endpoints share."""

from __future__ import annotations

import time

from dafka.overlay import Empty

WAIT = 100  # seconds, for what takes milliseconds


def until(condition, seconds=WAIT):
    ends = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < ends, "it never happens"
        time.sleep(0.002)


def heard(subscriber, publisher, topic="/t"):
    """Publish until it arrives: from then on everything does."""
    ends = time.monotonic() + WAIT
    while time.monotonic() < ends:
        publisher.publish(topic, "are you there")
        try:
            subscriber.get(timeout=0.02)
            break
        except Empty:
            continue
    publisher.publish(topic, "last")
    while subscriber.get(timeout=WAIT).value != "last":
        pass


def values_until(subscriber, end):
    values = []
    while end not in values:
        values.append(subscriber.get(timeout=WAIT).value)
    return values
