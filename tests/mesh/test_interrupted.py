"""Ctrl-C in a call of a producer, and in close() of any node: the program may go on, as in a notebook."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import gevent
import pytest
from timing import SECONDS, until

from dafka import Consumer, Producer, Store, Tower
from dafka.hub import hub
from dafka.mesh import batch_producer, producer_node
from dafka.mesh import producer as producer_module
from dafka.mesh.zmtp import ZmtpTransport
from tests.compat.interrupting import InterruptedCall

MODULES = (producer_module, producer_node, batch_producer, hub)


def sends(producer: Producer) -> None:
    for _ in range(3):
        producer.send(b"more")


def flushes(producer: Producer) -> None:
    producer.flush(SECONDS)


@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batch"])
@pytest.mark.parametrize("call", [sends, flushes])
def test_a_producer_sends_all_that_it_took_whichever_call_ctrl_c_ends(
    tmp_path: Path, call: Callable[[Producer], None], batch: bool
) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        for number in count(1):
            with Producer("t", tower=tower, batch=batch, linger=60 if batch else None) as producer:
                producer.send(b"before")
                producer.flush(SECONDS)  # the hub has nothing more to send
                producer.send(b"again")
                interruption = InterruptedCall(number, *MODULES)
                with suppress(KeyboardInterrupt), interruption:
                    call(producer)
                last = producer.send(b"later")
                producer.flush(SECONDS)
                metrics = producer.metrics()
                assert (metrics["unacknowledged"], metrics["pending_bytes"]) == (0, 0)
                assert metrics["records_out"] == last + 1
            if not interruption.interrupted:
                break
    assert number > 10


def test_a_batch_lingers_no_longer_whichever_call_ctrl_c_ends() -> None:
    with Tower() as tower:
        for number in count(1):
            with Producer("t", tower=tower, batch=True, linger=0.0, min_stores=0) as producer:
                interruption = InterruptedCall(number, *MODULES)
                with suppress(KeyboardInterrupt), interruption:
                    producer.send(b"first of a batch")
                until(lambda: not producer.metrics()["pending_records"])
            if not interruption.interrupted:
                break
    assert number > 5


@pytest.mark.parametrize("batch", [False, True], ids=["raw", "batch"])
def test_a_producer_whose_close_ctrl_c_has_ended_leaves_at_the_next_one(tmp_path: Path, batch: bool) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        for number in count(1):
            producer = Producer("t", tower=tower, batch=batch)
            producer.send(b"before")
            interruption = InterruptedCall(number, *MODULES)
            with suppress(KeyboardInterrupt), interruption:
                producer.close(SECONDS)
            producer.close(SECONDS)
            assert producer._node.closed
            assert producer._node.left
            if not interruption.interrupted:
                break
    assert number > 10


def new_node(kind: str, tower: Tower, folder: Path) -> Any:
    """A node that is alone at its endpoint."""
    if kind == "store":
        return Store(folder, tower=tower, beacon_interval=0.9)
    if kind == "consumer":
        return Consumer(["t"], tower=tower, beacon_interval=0.9)
    return Producer("t", tower=tower, beacon_interval=0.9)


@pytest.mark.parametrize("kind", ["producer", "consumer", "store"])
def test_a_close_that_ctrl_c_ends_is_carried_out_to_its_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    close, closed = ZmtpTransport.close, []
    begun = threading.Event()

    def slow(transport: ZmtpTransport) -> None:
        begun.set()
        gevent.sleep(0.3)
        close(transport)
        closed.append(transport)

    with Tower() as tower:
        node = new_node(kind, tower, tmp_path / "db")
        with monkeypatch.context() as patched:
            patched.setattr(ZmtpTransport, "close", slow)

            def interrupt() -> None:
                begun.wait(SECONDS)
                os.kill(os.getpid(), signal.SIGINT)

            thread = threading.Thread(target=interrupt)
            thread.start()
            with pytest.raises(KeyboardInterrupt):
                node.close()
            thread.join()
            until(lambda: closed)
        if kind == "store":
            until(lambda: node._node.log.closed)
            with new_node(kind, tower, tmp_path / "db"):
                pass
