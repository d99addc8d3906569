"""Lone reads: a record that comes alone is received by the thread of the consumer's user that waits for it.

To wake the hub's thread, and from there the user's, takes longer than all else that is done for a record. So
the hub lends the user's thread a connection over which records come alone (:mod:`dafka.sockets.loans`), and
that thread takes those that are next in their partition itself: in one stretch of code in which the
interpreter changes to no other thread and looks for no signal, and never while the hub does something with
the consumer's role (:attr:`LoneReads.busy`). It leaves out heads that say nothing new. Anything else that
comes it gives back, with the connection, to the hub: several records at once, records of a partition that is
behind, heads that tell of records that did not come.

If connections were not worth lending, more records have to come alone before the next one is lent.
"""

from __future__ import annotations

import time
from typing import Any

from dafka.hub.hub import Hub, is_plain_thread
from dafka.mesh import limits
from dafka.mesh.inbox import AllRuns
from dafka.protocol.commands import Head
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import decode
from dafka.protocol.runs import Run
from dafka.protocol.stretches import Stretches
from dafka.roles.consumer import ConsumerRole
from dafka.roles.follower import State
from dafka.roles.limits import LAST_SEQUENCE
from dafka.roles.outputs import Deliver
from dafka.sockets import limits as sockets_limits
from dafka.sockets.leases import is_traced
from dafka.sockets.loans import CAN_LEND, Loan, Loans
from dafka.zmtp.cutting import Cutter
from dafka.zmtp.errors import ProtocolError

_new = tuple.__new__  # of a NamedTuple, without the call in Python that its class makes of it


def _head(octets: bytes) -> Head | None:
    """The HEAD that these octets are, if they are one."""
    cutter = Cutter(len(octets), len(octets))
    cutter.feed(octets)
    try:
        messages, command = cutter.cut(2)
        if len(messages) != 1 or command is not None or cutter.in_progress:
            return None
        head = decode(messages[0])
    except (ProtocolError, MalformedMessage):
        return None  # the hub's to say
    return head if isinstance(head, Head) else None


class LoneReads:
    """Those of one consumer. ``inbox``: None if no thread may put anything into it."""

    def __init__(self, hub: Hub, role: ConsumerRole, inbox: AllRuns | None) -> None:
        self.busy = 0
        """Things that the hub is doing with the role."""
        self.records = self.octets = 0
        """Taken by threads ever, and their contents; written by them only."""
        self.heads = 0
        """HEADs that threads have left out."""
        self._hub = hub
        self._role = role
        self._inbox = inbox
        self._loans: Loans | None = None
        self._given: list[Loan] = []  # of which is not known yet what they were worth
        self._alone = 0  # records that came alone since the last loan
        self._wanted = 1  # so many, for the next one

    # -- the user's thread ----------------------------------------------------------------------

    def bell(self) -> Loans | None:
        """What the calling thread is to wait for, if it was lent connections."""
        loans = self._loans
        if loans is None or not loans.lent:
            return None
        if not is_plain_thread() or is_traced():
            self._hub.post(self.end)
            return None
        return loans

    @property
    def may_come(self) -> bool:
        """Whether there are connections that only a waiting thread receives from."""
        return self._loans is not None and bool(self._loans.lent)

    def wait(self, loans: Loans, timeout: float | None) -> None:
        """Wait for a record, for anything else that comes, for the bell or for the timeout."""
        try:
            told = loans.wait(timeout)
        except (OSError, ValueError):
            self._hub.check()  # in a forked process
            raise
        for loan in told:
            self._receive(loan)

    def _receive(self, loan: Loan) -> None:
        octets = loan.receive()
        if octets is None:
            return
        peer: Any = loan.lender
        taker = peer.taker
        assert isinstance(taker, Stretches)
        is_little = len(octets) < sockets_limits.LITTLE_OCTETS  # nothing has come behind it
        inbound = taker.lone(octets) if is_little else None
        if inbound is not None:
            is_done = self._take(loan, octets, inbound.runs[0])
        else:
            is_done = is_little and self._pass_over(loan, octets)
        if not is_done:
            loan.give_back(self._hub)

    def _pass_over(self, loan: Loan, octets: bytes) -> bool:
        """Leave out a HEAD that says nothing new, as there is one in each second in which records come; False
        if the octets are anything else."""
        head = _head(octets)
        follower = None if head is None else self._role.follower(head.topic, head.address)
        if head is None or follower is None:
            return False
        sequence, size, now = head.sequence, len(octets), time.monotonic()
        nothing: list[bytes] = []
        peer: Any = loan.lender
        passed = False
        # One stretch, as in dafka.sockets.loans.
        if (
            loan.held
            and loan.octets
            and loan.octets[0] is octets
            and not self.busy
            and sequence < follower.end
        ):
            loan.octets = nothing
            loan.messages += 1
            loan.size += size
            self.heads += 1
            peer.waits_since = now
            peer.emptied = now
            passed = True
        return passed

    def _take(self, loan: Loan, octets: bytes, run: Run) -> bool:
        """Hand over this record, which the octets of the loan are; False if it is not the next one, or not
        for the thread to take now."""
        recipient, address, topic, first, contents = run
        role, inbox, idle = self._role, self._inbox, State.IDLE
        follower = role.follower(topic, address)
        if follower is None or recipient is not None or first >= LAST_SEQUENCE or inbox is None:
            return False
        (content,) = contents
        size, octets_size, end = len(content), len(octets), first + 1
        # All that the garbage collector, which may run other code, has to know of is made before the stretch.
        delivered = iter((_new(Deliver, (topic, address, first, contents)),))
        runs, now = inbox.runs, time.monotonic()
        nothing: list[bytes] = []
        peer: Any = loan.lender
        taken = False
        # One stretch, as in dafka.sockets.loans.
        if (
            loan.held
            and loan.octets
            and loan.octets[0] is octets
            and not self.busy
            and not role.reclaimed
            and follower.state is idle
            and follower.next == first
            and follower.end == first
        ):
            loan.octets = nothing
            loan.messages += 1
            loan.size += octets_size
            self.records += 1
            self.octets += size
            peer.waits_since = now
            peer.emptied = now
            follower.next = end
            follower.end = end
            follower.record_bytes = size + 1
            follower.untried = False
            runs += delivered
            taken = True
        return taken

    # -- the hub --------------------------------------------------------------------------------

    def offer(self, peer: Any) -> bool:
        """The only record that has come from ``peer`` woke the user's thread. Lend it the connection, if that
        was of use lately; whether it was lent."""
        if not CAN_LEND or self._inbox is None:
            return False
        for loan in [loan for loan in self._given if not loan.held]:
            self._given.remove(loan)
            self._valued(loan.messages)
        self._alone += 1
        if self._alone < self._wanted:
            return False
        self._alone = 0
        try:
            if self._loans is None:
                self._loans = Loans()
            if len(self._loans.lent) < limits.LENT_CONNECTIONS:
                self._given.append(self._loans.lend(peer))
                return True
        except OSError:  # no descriptors are left
            self._valued(0)
        return False

    def look(self) -> None:
        """Take back what the thread does not see to. To be called every now and then."""
        loans = self._loans
        if loans is None or not loans.lent:
            return
        is_full = len(loans.lent) >= limits.LENT_CONNECTIONS
        for loan in list(loans.lent.values()):
            if loan.is_neglected or (is_full and loan.messages == loan.seen):
                loan.lender.take_back()
            loan.seen = loan.messages

    def end(self) -> None:
        """Take back everything."""
        if self._loans is not None:
            for loan in list(self._loans.lent.values()):
                loan.lender.take_back()

    def close(self) -> None:
        """Nothing is lent any more. To be called when all connections are closed."""
        self._loans = None
        self._given.clear()

    def _valued(self, messages: int) -> None:
        """A loan has ended: so many messages were received with it."""
        is_worth_it = messages >= limits.LENT_WORTH_RECORDS
        self._wanted = 1 if is_worth_it else min(2 * self._wanted, limits.LENT_AFTER_RECORDS)
