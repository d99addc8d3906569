"""A publisher of one topic, and the descriptor that tells when it need not wait."""

from __future__ import annotations

import contextlib
import select

import pytest

from dafka.overlay import Closed, Endpoint, Overloaded
from dafka.overlay.node import limits

WAIT = 100  # seconds, for what takes milliseconds


@pytest.fixture
def make():
    with contextlib.ExitStack() as made:
        yield lambda *args, **named: made.enter_context(Endpoint(*args, **named))


def is_ready(publisher, seconds: float = 0) -> bool:
    return bool(select.select([publisher.fileno()], [], [], seconds)[0])


def test_it_publishes_on_its_topic(make):
    endpoint = make()
    subscriber = endpoint.subscribe("/t", own=True)
    with endpoint.publisher("/t/x") as publisher:
        publisher.publish((1, "two"))
        assert publisher.capacity == limits.PENDING_MESSAGES
        assert is_ready(publisher)
    assert subscriber.get(timeout=WAIT)[:2] == ("/t/x", (1, "two"))
    for call in (lambda: publisher.publish(1), publisher.fileno):
        with pytest.raises(Closed):
            call()
    publisher.close()


def test_a_topic_that_is_too_long_is_refused(make):
    with pytest.raises(ValueError, match="65536 octets"):
        make().publisher("x" * 65536)


def test_its_descriptor_is_readable_while_it_need_not_wait(make):
    endpoint = make()
    slow, quick = endpoint.publisher("/slow"), endpoint.publisher("/quick")
    pending = endpoint._carrier.pending
    assert is_ready(slow)
    pending.block(b"/slow")
    assert not is_ready(slow)
    assert is_ready(quick)
    with pytest.raises(Overloaded):
        slow.publish(1, timeout=0.01)
    pending._blocked.clear()
    pending._wake()
    assert is_ready(slow)


def test_it_is_not_readable_while_the_queue_of_the_endpoint_is_full(make, monkeypatch):
    endpoint = make()
    publisher = endpoint.publisher("/t")
    assert is_ready(publisher)
    monkeypatch.setattr(endpoint._carrier.pending, "_most", 0)
    with pytest.raises(Overloaded):
        publisher.publish(1, timeout=0.01)
    endpoint._carrier.pending._wake()
    assert not is_ready(publisher)
    monkeypatch.undo()
    endpoint._carrier.pending._wake()
    assert is_ready(publisher)


def test_at_the_end_of_its_endpoint_it_is_readable_and_says_so(make):
    endpoint = make()
    publisher = endpoint.publisher("/t")
    endpoint._carrier.pending.block(b"/t")
    assert not is_ready(publisher)
    endpoint.close()
    assert is_ready(publisher)
    with pytest.raises(Closed):
        publisher.publish(1)
