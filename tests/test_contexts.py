"""Contexts of tests end, whatever has become of their sockets and of those that they sent to."""

from __future__ import annotations

import re
import threading
from pathlib import Path

import pytest
import zmq
from contexts import new_context
from ports import free_port
from timing import until

TESTS = Path(__file__).parent
OTHERS = {
    "contexts.py",  # makes them
    "sockets/test_hostile.py",  # in a program that is killed
}


@pytest.mark.parametrize("kind", [zmq.PUB, zmq.XPUB, zmq.PUSH, zmq.DEALER])
def test_a_socket_that_is_dropped_with_unsent_messages_does_not_hold_up_its_context(kind: int) -> None:
    context = new_context()
    _drop_with_unsent_messages(context, kind)
    ending = threading.Thread(target=context.destroy, kwargs={"linger": 0}, daemon=True)
    ending.start()
    until(lambda: not ending.is_alive(), "the context has not ended")


def _drop_with_unsent_messages(context: zmq.Context[zmq.Socket[bytes]], kind: int) -> None:
    dropped = context.socket(kind)
    if kind in (zmq.PUB, zmq.XPUB):  # without a subscriber they send nothing
        subscriber = context.socket(zmq.SUB)
        subscriber.rcvhwm = 1
        subscriber.subscribe(b"")
        dropped.sndhwm = 0
        dropped.connect(f"tcp://127.0.0.1:{subscriber.bind_to_random_port('tcp://127.0.0.1')}")
        until(lambda: dropped.send(b"first") or subscriber.poll(10))
        for _ in range(200):
            dropped.send(bytes(100_000))
        subscriber.close()
    else:
        dropped.connect(f"tcp://127.0.0.1:{free_port()}")
        dropped.send(b"to nobody")


def test_tests_take_their_contexts_from_one_place() -> None:
    made = re.compile(r"zmq\.Context\(\)")
    found = {str(path.relative_to(TESTS)) for path in TESTS.rglob("*.py") if made.search(path.read_text())}
    assert found == OTHERS
