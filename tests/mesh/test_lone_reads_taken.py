"""The record that a thread takes in the role's place: only the next one of a partition that lacks nothing."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from bytecode import stretch_of
from mesh.lending import PARTITION

from dafka.hub.hub import get_hub
from dafka.mesh.inbox import AllRuns
from dafka.mesh.lone_reads import LoneReads
from dafka.protocol.commands import GetHeads, Head
from dafka.protocol.framing import Framing, encode
from dafka.protocol.runs import Run
from dafka.roles.consumer import ConsumerRole
from dafka.roles.follower import Follower, State
from dafka.roles.limits import LAST_SEQUENCE
from dafka.roles.outputs import Deliver
from dafka.zmtp.encoding import encode as encode_message


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
        self.peer = SimpleNamespace(waits_since=None, emptied=0.0)
        self.loan: Any = SimpleNamespace(
            held=True, octets=[self.octets], messages=0, size=0, lender=self.peer
        )
        self.run = Run(None, PARTITION, b"t", 5, [b"five"])

    def state(self) -> Any:
        return (
            [getattr(self.follower, name) for name in Follower.__slots__],
            list(self.inbox.runs),
            (self.reads.records, self.reads.octets),
            (self.loan.octets, self.loan.messages, self.loan.size),
            (self.peer.waits_since, self.peer.emptied),
        )

    def take(self) -> bool:
        return self.reads._take(self.loan, self.octets, self.run)


def test_a_record_that_is_next_leaves_the_partition_as_the_roles_way_does():
    one, other = Taking(), Taking()
    assert one.take()
    assert list(one.inbox.runs) == [Deliver(b"t", PARTITION, 5, [b"five"])]
    assert (one.reads.records, one.reads.octets) == (1, 4)
    assert (one.loan.octets, one.loan.messages, one.loan.size) == ([], 1, len(one.octets))
    assert one.peer.waits_since == one.peer.emptied > 0
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


def have_missed_it(taking: Taking) -> None:
    taking.follower.next = 4


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
        *(hear_of_more, ask_for_it, be_further, be_behind, have_missed_it, know_more, be_for_another),
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


def test_no_call_and_no_loop_lies_between_the_look_at_a_head_and_its_leaving_out():
    stretch_of(LoneReads._pass_over, "if (", "return")


def test_no_garbage_is_collected_while_a_record_is_being_taken():
    """A finalizer may wait for the hub, which may take back the connection and hand over what comes next."""
    collected: list[Any] = []

    def note(phase: str, info: dict[str, int]) -> None:
        if taking.loan.messages and not taking.inbox.runs:
            collected.append(sys._getframe(1))

    threshold = gc.get_threshold()
    for room in range(30):  # objects that are made before the next collection
        taking = Taking()
        gc.collect()
        gc.callbacks.append(note)
        try:
            gc.set_threshold(gc.get_count()[0] + room)
            assert taking.take()
        finally:
            gc.callbacks.remove(note)
            gc.set_threshold(*threshold)
    assert not collected


def heads(taking: Taking, sequence: int) -> bool:
    octets = b"".join(encode_message(encode(Head(PARTITION, b"t", sequence))))
    taking.loan.octets = [octets]
    return taking.reads._pass_over(taking.loan, octets)


@pytest.mark.parametrize("sequence", [0, 3, 4])
def test_a_head_that_says_nothing_new_is_left_out(sequence: int):
    taking = Taking()
    assert heads(taking, sequence)
    assert taking.reads.heads == 1
    assert (taking.loan.octets, taking.loan.messages) == ([], 1)
    assert taking.peer.waits_since == taking.peer.emptied > 0


def test_a_head_of_records_that_did_not_come_is_left_to_the_hub():
    taking = Taking()
    assert not heads(taking, 5)
    assert taking.reads.heads == 0
    assert taking.loan.octets


@pytest.mark.parametrize("change", [leave_the_loan, be_busy])
def test_a_head_is_left_to_the_hub_unless_it_is_for_the_thread(change: Callable[[Taking], None]):
    taking = Taking()
    change(taking)
    before = taking.state()[0]
    assert not heads(taking, 3)
    assert taking.state()[0] == before
    assert taking.reads.heads == 0


@pytest.mark.parametrize(
    "octets",
    [
        b"",
        b"\0",
        b"\0\5Hello",
        b"\4\5Hello",
        b"".join(encode_message(encode(GetHeads(b"t", b"C" * 32)))),
        b"".join(encode_message(encode(Head(b"O" * 32, b"t", 0)))),
        b"".join(encode_message(encode(Head(PARTITION, b"u", 0)))),
        b"".join(encode_message(encode(Head(PARTITION, b"t", 0))))[:-1],
        2 * b"".join(encode_message(encode(Head(PARTITION, b"t", 0)))),
        b"".join(encode_message(encode(Head(PARTITION, b"t", 0)))) + b"\0",
        b"\2\xff" + bytes(7) + b"Hello",
    ],
)
def test_octets_that_are_no_head_of_a_followed_partition_are_left_to_the_hub(octets: bytes):
    taking = Taking()
    taking.loan.octets = [octets]
    before = taking.state()
    assert not taking.reads._pass_over(taking.loan, octets)
    assert taking.state() == before


def test_a_head_in_the_words_of_the_specification_is_left_out_too():
    taking = Taking()
    octets = b"".join(encode_message(encode(Head(PARTITION, b"t", 4), Framing.RFC46)))
    taking.loan.octets = [octets]
    assert taking.reads._pass_over(taking.loan, octets)
