"""Threads beside the hub that receive from connections lent to them, and the hub that goes on with what they
leave."""

from __future__ import annotations

import gc
import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest
from bytecode import stretch_of
from sockets.serving import Recorder, in_hub, publisher, subscriber
from sockets.test_leases import one
from timing import SECONDS, until

from dafka.hub.hub import get_hub
from dafka.sockets.loans import CAN_LEND, Loan, Loans
from dafka.sockets.peer import Peer

pytestmark = pytest.mark.skipif(not CAN_LEND, reason="no connection is lent on this system")


class Lending:
    """As a connection that is lent, of which nobody but the test sees the other end."""

    def __init__(self, loans: Loans) -> None:
        one, self.other = socket.socketpair()
        one.setblocking(False)
        self.socket = SimpleNamespace(_sock=one, fileno=one.fileno, close=one.close)
        self.loan: Loan | None = None
        self.taken_back = 0
        self.given = loans.lend(self)

    def take_back(self, _: None = None) -> None:
        self.taken_back += 1


@pytest.fixture
def loans() -> Loans:
    return Loans()


@pytest.fixture
def lending(loans: Loans) -> Iterator[Lending]:
    lender = Lending(loans)
    yield lender
    lender.other.close()
    lender.socket.close()


def test_a_thread_that_waits_receives_what_comes(loans: Loans, lending: Lending):
    assert loans.wait(0) == []
    lending.other.send(b"hello")
    assert loans.wait(SECONDS) == [lending.given]
    assert lending.given.receive() == b"hello"


def test_octets_that_come_are_told_of_once(loans: Loans, lending: Lending):
    lending.other.send(b"hello")
    assert loans.wait(SECONDS) == [lending.given]
    assert loans.wait(0) == []
    lending.other.send(b"again")
    assert loans.wait(SECONDS) == [lending.given]


def test_octets_that_nobody_is_done_with_are_received_again_and_nothing_behind_them(lending: Lending):
    lending.other.send(b"first")
    assert lending.given.receive() == b"first"
    lending.other.send(b"second")
    assert lending.given.receive() == b"first"
    lending.given.octets = []
    assert lending.given.receive() == b"second"


def test_nothing_is_received_where_nothing_has_come(lending: Lending):
    assert lending.given.receive() is None
    assert not lending.given.receiving


def test_the_end_of_a_connection_is_received_as_no_octets(loans: Loans, lending: Lending):
    lending.other.close()
    assert loans.wait(SECONDS) == [lending.given]
    assert lending.given.receive() == b""


def test_an_error_of_a_connection_is_received_as_no_octets(loans: Loans, lending: Lending):
    lending.other.send(b"never read")
    lending.socket._sock.shutdown(socket.SHUT_RD)
    lending.socket._sock.close()
    assert lending.given.receive() == b""
    assert not lending.given.receiving


def test_nothing_is_received_behind_the_end_of_a_loan(loans: Loans, lending: Lending):
    loan = lending.given
    lending.other.send(b"for the hub")
    assert loan.end()
    assert loan.receive() is None
    assert loans.wait(0) == []
    assert not loans.lent
    assert lending.socket._sock.recv(100) == b"for the hub"


def test_a_loan_does_not_end_while_a_thread_is_receiving(lending: Lending):
    loan = lending.given
    loan.receiving = True
    assert not loan.end()
    lending.other.send(b"hello")
    assert loan.receive() is None  # another thread's
    assert loan.receiving
    loan.receiving = False
    assert loan.end()
    assert loan.ended.is_set()


def test_a_loan_is_given_back_once(lending: Lending):
    for _ in range(3):
        lending.given.give_back(get_hub())
    in_hub(bool)
    assert lending.taken_back == 1


def test_a_loan_that_has_ended_is_not_given_back(lending: Lending):
    """The connection may be lent again by then."""
    assert lending.given.end()
    lending.given.give_back(get_hub())
    in_hub(bool)
    assert not lending.taken_back


@pytest.mark.parametrize("kept", [False, True], ids=["not received", "received"])
def test_octets_that_have_come_and_nobody_is_done_with_are_neglected(lending: Lending, kept: bool):
    loan = lending.given
    assert not loan.is_neglected
    lending.other.send(b"hello")
    if kept:
        loan.receive()
    assert loan.is_neglected
    loan.receive()
    loan.octets = []
    assert not loan.is_neglected
    lending.other.close()
    assert loan.is_neglected


def test_the_bell_wakes_who_waits_and_who_will_wait_next(loans: Loans):
    waited = threading.Thread(target=loans.wait, args=(SECONDS,))
    waited.start()
    time.sleep(0.01)
    loans.set()
    waited.join(SECONDS)
    assert not waited.is_alive()
    loans.set()
    began = time.monotonic()
    loans.wait(SECONDS)
    assert time.monotonic() - began < SECONDS / 2
    loans.wait(0.01)  # it rings no more


@pytest.mark.parametrize("timeout", [-1.0, 0.0, 0.02])
def test_waiting_ends_with_its_time(loans: Loans, lending: Lending, timeout: float):
    began = time.monotonic()
    assert loans.wait(timeout) == []
    assert max(timeout, 0) <= time.monotonic() - began < 10


def test_a_wait_for_longer_than_the_system_can_count_is_one_for_long(loans: Loans, lending: Lending):
    lending.other.send(b"hello")
    assert loans.wait(float("inf")) == [lending.given]
    loans.set()
    assert loans.wait(1e300) == []


def test_a_wait_of_which_nobody_knows_any_more_leaves_no_descriptor():
    before = os.listdir("/proc/self/fd")
    loans = Loans()
    assert len(os.listdir("/proc/self/fd")) == len(before) + 2
    del loans
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_a_connection_that_cannot_be_waited_for_is_not_lent(loans: Loans, tmp_path):
    with open(tmp_path / "file", "wb") as file:  # epoll takes no files
        lender: Any = SimpleNamespace(loan=None, socket=SimpleNamespace(_sock=socket, fileno=file.fileno))
        lender.socket._sock = SimpleNamespace(recv=file.write)
        with pytest.raises(OSError, match="not permitted"):
            loans.lend(lender)
    assert not loans.lent
    assert lender.loan is None


def test_a_connection_that_is_closed_is_not_lent(loans: Loans):
    one, other = socket.socketpair()
    one.close()
    other.close()
    lender: Any = SimpleNamespace(loan=None, socket=SimpleNamespace(_sock=one, fileno=one.fileno))
    with pytest.raises(OSError, match="Bad file descriptor"):
        loans.lend(lender)
    assert not loans.lent
    assert lender.loan is None


def test_no_call_and_no_loop_lies_between_the_look_at_a_loan_and_the_end_of_receiving():
    stretch_of(Loan.receive, "if self.held", "finally:")


def test_no_garbage_is_collected_while_a_thread_is_receiving(loans: Loans, lending: Lending):
    """A finalizer may wait for something that the hub is to receive. Other threads may collect meanwhile."""
    collected: list[bool] = []
    here = threading.get_ident()

    def note(phase: str, info: dict[str, int]) -> None:
        if lending.given.receiving and threading.get_ident() == here:
            collected.append(True)

    threshold = gc.get_threshold()
    for room in range(20):  # objects that are made before the next collection
        lending.other.send(b"hello")
        gc.collect()
        gc.callbacks.append(note)
        try:
            gc.set_threshold(gc.get_count()[0] + room)
            assert lending.given.receive() == b"hello"
        finally:
            gc.callbacks.remove(note)
            gc.set_threshold(*threshold)
        lending.given.octets = []
    assert not collected


# -- connections of a socket ------------------------------------------------------------------------


@contextmanager
def lent_by_a_subscriber() -> Iterator[tuple[Any, Any, Recorder, Peer, Loans]]:
    """A publisher, a subscriber with one connection to it, which is lent behind the message ``lend``."""
    handler, loans = Recorder(), Loans()

    def express(peer: Peer, octets: bytes) -> bool:
        if b"lend" not in octets:
            return False
        loans.lend(peer)
        return True

    with publisher() as served, subscriber(handler, served.endpoint) as sub:
        in_hub(sub.subscribe, b"a")
        until(lambda: served.metrics()["subscriptions"] == 1)
        (peer,) = handler.peers
        in_hub(served.send, [b"a", b"plain"])  # behind the greeting, which may come together with something
        until(lambda: handler.received)
        peer.express = express
        in_hub(served.send, [b"a", b"lend"])
        until(lambda: peer.loan is not None)
        yield served, sub, handler, peer, loans


def test_a_connection_that_is_lent_is_not_read_by_the_hub():
    with lent_by_a_subscriber() as (served, _, handler, peer, loans):
        in_hub(served.send, [b"a", b"next"])
        assert loans.wait(SECONDS) == [peer.loan]
        time.sleep(0.05)
        assert [message for _, message in handler.received] == [[b"a", b"plain"]]
        assert peer.loan.receive() == one(b"a", b"next")


@pytest.mark.parametrize("received", [False, True], ids=["not received", "received"])
def test_the_hub_goes_on_where_the_thread_left_off(received: bool):
    with lent_by_a_subscriber() as (served, _, handler, peer, loans):
        in_hub(served.send, [b"a", b"first"])
        assert loans.wait(SECONDS) == [peer.loan]
        if received:
            peer.loan.receive()
        in_hub(served.send, [b"a", b"second"])
        in_hub(peer.take_back)
        in_hub(served.send, [b"a", b"third"])
        until(lambda: len(handler.received) == 4)
        assert [message[1] for _, message in handler.received] == [b"plain", b"first", b"second", b"third"]
        assert peer.loan is None
        until(lambda: peer.waits_since is not None)


def test_half_a_message_that_a_thread_received_is_completed_by_the_hub():
    with lent_by_a_subscriber() as (served, _, handler, peer, _loans):
        whole = one(b"a", b"torn")
        for at in range(1, len(whole)):
            peer.loan.octets = [whole[:at]]  # as if received
            in_hub(peer.take_back)
            until(lambda: peer.loan is None)
            (outbox,) = [other._outbox for other in served._accepting._peers]
            in_hub(outbox.put, [whole[at:]])
            until(lambda at=at: len(handler.received) == 1 + at)
            in_hub(served.send, [b"a", b"lend"])
            until(lambda: peer.loan is not None)
        assert {tuple(message) for _, message in handler.received[1:]} == {(b"a", b"torn")}


def test_messages_that_threads_received_are_counted():
    with lent_by_a_subscriber() as (_, sub, _handler, peer, _loans):
        before = sub.metrics()
        peer.loan.messages += 3
        peer.loan.size += 30
        in_hub(peer.take_back)
        until(lambda: peer.loan is None)
        after = sub.metrics()
        assert after["messages_in"] - before["messages_in"] == 3
        assert after["octets_in"] - before["octets_in"] == 30


def test_a_connection_that_is_lent_is_made_again_when_it_has_ended():
    with lent_by_a_subscriber() as (served, _, handler, peer, loans):
        in_hub(lambda: next(iter(served._accepting._peers)).close())
        assert loans.wait(SECONDS) == [peer.loan]
        assert peer.loan.receive() == b""
        peer.loan.give_back(get_hub())
        until(lambda: len(handler.peers) == 2)
        until(lambda: served.metrics()["subscriptions"] == 1)
        in_hub(served.send, [b"a", b"again"])
        until(lambda: handler.received[-1][1] == [b"a", b"again"])
        assert not loans.lent


def test_a_descriptor_is_not_another_connections_while_a_thread_receives_from_it():
    with lent_by_a_subscriber() as (_, sub, _handler, peer, loans):
        loan, descriptor = peer.loan, peer.socket.fileno()
        loan.receiving = True
        in_hub(sub.close)
        time.sleep(0.05)
        assert peer.socket.fileno() == descriptor
        assert not loan.held
        assert not loans.lent
        loan.receiving = False
        until(lambda: peer.socket.fileno() == -1)
        assert loan.receive() is None


def test_a_loan_ends_as_soon_as_no_thread_is_receiving():
    with lent_by_a_subscriber() as (served, _, handler, peer, _loans):
        loan = peer.loan
        loan.receiving = True
        in_hub(peer.take_back)
        in_hub(served.send, [b"a", b"later"])
        time.sleep(0.05)
        assert peer.loan is loan
        assert len(handler.received) == 1
        loan.receiving = False
        until(lambda: len(handler.received) == 2)
