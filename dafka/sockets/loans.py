"""Loans: how a thread that waits for a short message receives it itself, without the hub's thread in between.

The hub lends it connections over which messages come one by one (:class:`Loan`), and does not look at them
meanwhile. No lock is shared with the hub, which must not wait for a thread that the system, or a handler of a
signal, keeps from running. In its place, as in :mod:`dafka.sockets.leases`:

- A thread receives only while it has the loan (``held``), and tells so (``receiving``). What decides that,
  what begins it and what keeps the result stand in one stretch of code in which the interpreter changes to no
  other thread and looks for no signal. The only call in there is the system's.
- What was received stays in ``Loan.octets`` until the thread, in another such stretch, has done with it all
  that there is to do. So the hub may end the loan at any moment but in the call of the system, and goes on
  with these octets where the thread left off: it looks at them every now and then, which is how nothing is
  lost that a thread received whose program was interrupted.
- What the thread cannot do anything with it gives back, and the hub has the connection again.

Whoever lends has to see to the octets of which nobody was told: :attr:`Loan.is_neglected`.
"""

from __future__ import annotations

import errno
import os
import select
import sys
from collections.abc import Callable
from contextlib import suppress
from itertools import starmap
from socket import MSG_PEEK
from typing import Any, Protocol
from weakref import WeakSet

import gevent.event
from gevent import monkey

from dafka.hub.hub import Hub
from dafka.sockets import limits
from dafka.sockets.leases import IS_SAFE

CAN_LEND = IS_SAFE and sys.platform == "linux" and hasattr(os, "eventfd")
"""Whether there is all that it takes."""

if CAN_LEND:
    _epoll = monkey.get_original("select", "epoll")
    _COMES = select.EPOLLIN | select.EPOLLRDHUP | select.EPOLLET  # told once for all that has come
_READ = ((limits.LITTLE_OCTETS,),)


class Lender(Protocol):
    """A connection that can be lent."""

    loan: Loan | None
    socket: Any

    def take_back(self, _: None = None) -> None:
        """In the hub: have the connection again, and go on with what was received."""


class Loan:
    """One connection in the hands of the thread that waits, which keeps here what it does with it."""

    __slots__ = (
        *("_loans", "_receive", "descriptor", "ended", "held", "lender"),
        *("messages", "octets", "receiving", "returned", "seen", "size"),
    )

    def __init__(self, loans: Loans, lender: Lender) -> None:
        self.lender = lender
        self.held = True
        """Whether the thread has the connection. Set by the hub."""
        self.receiving = False
        """Whether a thread is receiving. Set by it."""
        self.octets: list[bytes] = []
        """What was received and nobody is done with: one item or none."""
        self.messages = self.size = 0
        """Those that threads are done with, and their octets."""
        self.seen = 0
        """Messages when the hub last looked."""
        self.returned = False
        """Whether the hub was asked to take it back."""
        self.ended = gevent.event.Event()
        """Set when the hub has it again."""
        self.descriptor: int = lender.socket.fileno()
        self._receive: Callable[[int], bytes] = lender.socket._sock.recv
        self._loans: Loans | None = loans

    def receive(self) -> bytes | None:
        """In the thread: what has come, or came before and nobody is done with; None if there is nothing.

        Empty if the connection has ended. To be called when it is told that something has come.
        """
        arriving = starmap(self._receive, _READ)
        begun = False
        try:
            try:
                # One stretch: no call in here but that of the iterator, no loop, and no jump where everything
                # is as it should be.
                if self.held and not self.receiving and not self.octets:
                    begun = self.receiving = True
                    self.octets += arriving
                    self.receiving = False
            finally:
                try:  # before anything else, as in dafka.mesh.lone
                    if begun:
                        self.receiving = False
                finally:
                    pass
        except BlockingIOError:
            return None
        except OSError:
            return b""
        octets = self.octets
        return octets[0] if octets else None

    def give_back(self, hub: Hub) -> None:
        """In the thread: the hub is to see to what has come."""
        if not self.returned:
            self.returned = True
            hub.post(self._take_back)

    # -- in the hub -----------------------------------------------------------------------------

    def _take_back(self) -> None:
        if self.held:  # and not lent again already
            self.lender.take_back()

    @property
    def is_neglected(self) -> bool:
        """Whether something has come that the thread has not seen to yet."""
        if self.octets:
            return True
        try:
            self.lender.socket._sock.recv(1, MSG_PEEK)
        except BlockingIOError:
            return False
        except OSError:
            pass
        return True

    def end(self) -> bool:
        """The thread has the connection no longer; False if it is receiving at this moment."""
        if self.receiving:
            return False
        self.revoke()
        return True

    def revoke(self) -> None:
        """The thread receives nothing more, but for what it may be receiving at this moment."""
        if self._loans is not None:
            self.held = False
            self._loans.forget(self)
            self._loans = None
            self.ended.set()


class Loans:
    """All that one waiting thread waits for: the connections that it was lent, and a bell.

    Its two descriptors are closed once nobody has it any more, not even a thread that still waits: to close
    what somebody waits for would not end the wait.
    """

    is_native = True
    """It keeps the whole thread waiting, as :attr:`dafka.hub.hub.Waiter.is_native` has it."""

    def __init__(self) -> None:
        """Raises OSError if the system has no descriptors left."""
        self.lent: dict[int, Loan] = {}
        """By their descriptors."""
        self._bell: int | None = None
        self._epoll = _epoll()
        self._bell = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._epoll.register(self._bell, _COMES)
        _all.add(self)

    def lend(self, lender: Lender) -> Loan:
        """In the hub: have the thread receive from this connection. Raises OSError."""
        loan = Loan(self, lender)
        if loan.descriptor < 0:
            raise OSError(errno.EBADF, os.strerror(errno.EBADF))
        self.lent[loan.descriptor] = loan
        try:
            self._epoll.register(loan.descriptor, _COMES)
        except OSError:
            del self.lent[loan.descriptor]
            raise
        lender.loan = loan
        return loan

    def forget(self, loan: Loan) -> None:
        """In the hub: a loan has ended."""
        if self.lent.get(loan.descriptor) is loan:
            del self.lent[loan.descriptor]
            with suppress(OSError, ValueError):
                self._epoll.unregister(loan.descriptor)

    def set(self) -> None:
        """Ring the bell: wake who waits, or will wait next. From any thread."""
        if self._bell is not None:
            os.eventfd_write(self._bell, 1)

    def wait(self, timeout: float | None) -> list[Loan]:
        """In the thread: wait until something has come, the bell has rung or ``timeout`` seconds are over
        (None: for ever). Over which connections something has come; it is told once.

        Raises OSError or ValueError in a forked process: what comes is its parent's.
        """
        find = self.lent.get
        timeout = None if timeout is None else min(max(timeout, 0.0), 1e6)
        return [loan for place, _ in self._epoll.poll(timeout) if (loan := find(place)) is not None]

    def abandon(self) -> None:
        """In a forked process, which may go on in the midst of a wait: leave everything to the parent."""
        for loan in self.lent.values():
            loan.held = False
        self._epoll.close()

    def close(self) -> None:
        """As of a :class:`dafka.hub.hub.Waiter`; nothing is to be given back."""

    def __del__(self) -> None:
        if self._bell is not None:
            os.close(self._bell)


_all: WeakSet[Loans] = WeakSet()


def _abandon_all() -> None:
    for loans in list(_all):
        loans.abandon()


if CAN_LEND:
    os.register_at_fork(after_in_child=_abandon_all)
