"""The record that a thread takes in the role's place: only the next one of a partition that lacks nothing."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from bytecode import stretch_of
from mesh.lending import PARTITION

from dafka.hub.hub import get_hub
from dafka.mesh.inbox import AllRuns
from dafka.mesh.lone_reads import LoneReads
from dafka.protocol.commands import Head
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.follower import Follower, State
from dafka.roles.limits import LAST_SEQUENCE
from dafka.roles.outputs import Deliver


class Taking:
    """A thread that has received the next record of a partition, 5 of ``P``, over a connection lent to it."""

    def __init__(self) -> None:
        self.role = ConsumerRole(b"C" * 32, offsets={PARTITION: 3})
        self.role.set_room(0.0, 100, 1000)
        self.role.subscribe(0.0, b"t")
        self.role.receive_run(0.0, Run(None, PARTITION, b"t", 3, [b"3", b"4"]))
        self.follower = self.role.follower(b"t", PARTITION)
        self.inbox = AllRuns()
        self.reads = LoneReads(get_hub(), self.role, self.inbox)
        self.octets = b"octets of the record"
        self.loan: Any = SimpleNamespace(held=True, octets=[self.octets], messages=0, size=0)
        self.run = Run(None, PARTITION, b"t", 5, [b"five"])

    def state(self) -> Any:
        return (
            [getattr(self.follower, name) for name in Follower.__slots__],
            list(self.inbox.runs),
            (self.reads.records, self.reads.octets),
            (self.loan.octets, self.loan.messages, self.loan.size),
        )

    def take(self) -> bool:
        return self.reads._take(self.loan, self.octets, self.run)


def test_a_record_that_is_next_leaves_the_partition_as_the_roles_way_does():
    one, other = Taking(), Taking()
    assert one.take()
    assert list(one.inbox.runs) == [Deliver(b"t", PARTITION, 5, [b"five"])]
    assert (one.reads.records, one.reads.octets) == (1, 4)
    assert (one.loan.octets, one.loan.messages, one.loan.size) == ([], 1, len(one.octets))
    other.role.receive_run(0.0, other.run)
    assert one.state()[0] == other.state()[0]


def leave_the_loan(taking: Taking) -> None:
    taking.loan.held = False


def have_taken_it(taking: Taking) -> None:
    taking.loan.octets = []


def have_received_something_else(taking: Taking) -> None:
    taking.loan.octets = [bytes(bytearray(taking.octets))]


def be_busy(taking: Taking) -> None:
    taking.reads.busy = 1


def claim_another_partition(taking: Taking) -> None:
    taking.role.reclaimed.add((b"t", b"O" * 32))


def hear_of_more(taking: Taking) -> None:
    taking.role.receive(0.0, Head(PARTITION, b"t", 6))


def ask_for_it(taking: Taking) -> None:
    taking.follower.state = State.ASKED


def be_further(taking: Taking) -> None:
    taking.role.receive_run(0.0, taking.run)


def be_behind(taking: Taking) -> None:
    taking.run = taking.run._replace(first=6)


def know_more(taking: Taking) -> None:
    taking.follower.end = 6


def be_for_another(taking: Taking) -> None:
    taking.run = taking.run._replace(recipient=b"X" * 32)


def be_of_another_partition(taking: Taking) -> None:
    taking.run = taking.run._replace(address=b"O" * 32)


def be_of_another_topic(taking: Taking) -> None:
    taking.run = taking.run._replace(topic=b"u")


def be_the_last_there_can_be(taking: Taking) -> None:
    taking.run = taking.run._replace(first=LAST_SEQUENCE)
    taking.follower.next = taking.follower.end = LAST_SEQUENCE


@pytest.mark.parametrize(
    "change",
    [
        *(leave_the_loan, have_taken_it, have_received_something_else, be_busy, claim_another_partition),
        *(hear_of_more, ask_for_it, be_further, be_behind, know_more, be_for_another),
        *(be_of_another_partition, be_of_another_topic, be_the_last_there_can_be),
    ],
)
def test_a_record_is_left_to_the_hub_unless_it_is_next_and_for_the_thread(change: Callable[[Taking], None]):
    taking = Taking()
    change(taking)
    before = taking.state()
    assert not taking.take()
    assert taking.state() == before


def test_no_call_and_no_loop_lies_between_the_look_at_a_record_and_its_handing_over():
    stretch_of(LoneReads._take, "if (", "return")
