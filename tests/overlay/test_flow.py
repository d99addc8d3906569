"""Credit: messages that may be sent, messages that wait, and news of room."""

from __future__ import annotations

import random

import pytest

from dafka.overlay import flow as flow_module
from dafka.overlay import limits
from dafka.overlay.flow import Flow, Grant, TooSlow
from dafka.overlay.wire.frames import FrameReader, Run, frame
from dafka.protocol.errors import MalformedMessage

A, B = b"a" * 16, b"b" * 16
SIZE = 10_000
COST = SIZE + limits.MESSAGE_COST
FRAME = bytes(SIZE)


def linked(overflow: str = "wait", *, is_plain: bool = False) -> Flow:
    flow = Flow(overflow)
    flow.link_up(A, is_plain)
    flow.link_up(B, is_plain)
    return flow


def sent_at_once(flow: Flow, height: int = 0) -> int:
    """How many messages go before the first one waits."""
    count = 0
    while flow.send(A, height, Run([FRAME])):
        count += 1
    return count


def test_messages_go_until_the_credit_is_used_up_and_on_when_there_is_more():
    flow = linked()
    count = sent_at_once(flow)
    assert count == -(-limits.WINDOW_OCTETS // COST)
    assert flow.credit(A, 0, 2 * COST)[0] == FRAME
    assert flow.send(A, 0, Run([FRAME, FRAME])) == FRAME
    assert flow.waiting == COST


def test_each_height_and_each_neighbour_has_its_own_credit():
    flow = linked()
    assert sent_at_once(flow, 0) == sent_at_once(flow, 1) == sent_at_once(flow, 7)
    assert flow.send(B, 0, Run([FRAME])) == FRAME


def test_many_messages_at_once_are_split_where_the_credit_ends():
    flow = linked()
    many = [bytes([number]) * SIZE for number in range(200)]
    sent = flow.send(A, 0, Run(many))
    count = len(sent) // SIZE
    assert sent == b"".join(many[:count]) and 0 < count < 200
    assert flow.credit(A, 0, count * COST)[0] == b"".join(many[count:])


def test_a_message_larger_than_all_credit_goes_when_there_is_any():
    flow = linked()
    large = bytes(3 * limits.WINDOW_OCTETS)
    assert flow.send(A, 0, Run([large])) == large
    assert flow.send(A, 0, Run([FRAME])) == b""
    assert flow.credit(A, 0, len(large) // 2)[0] == b""
    assert flow.credit(A, 0, len(large))[0] == FRAME


def test_a_neighbour_gets_credit_for_what_found_room_and_none_for_what_did_not():
    flow = linked()
    assert flow.take(A, 0, COST, COST, ["subscriber"]) is None
    half = limits.WINDOW_OCTETS // 2
    assert flow.take(A, 0, half, COST, []) is None  # behind one that waits
    assert flow.held == half + COST
    assert flow.room("another") == []
    assert flow.room("subscriber") == [Grant(A, 0, half + COST)]
    assert flow.held == 0


def test_a_neighbour_waits_for_all_that_had_no_room():
    flow = linked()
    flow.take(A, 1, limits.WINDOW_OCTETS, COST, ["one", (B, 0)])
    assert flow.room("one") == []
    assert flow.room((B, 0)) == [Grant(A, 1, limits.WINDOW_OCTETS)]


def test_credit_that_is_exceeded_is_an_error_by_name():
    flow = linked()
    flow.take(A, 0, limits.WINDOW_OCTETS, COST, ["subscriber"])
    with pytest.raises(MalformedMessage) as caught:
        flow.take(A, 0, COST, COST, [])
    assert caught.value.cause == "credit"


def test_messages_held_of_all_neighbours_together_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.flow.HELD_OCTETS", COST)
    flow = linked()
    flow.take(A, 0, COST, COST, ["subscriber"])
    with pytest.raises(MalformedMessage) as caught:
        flow.take(B, 0, COST, COST, ["subscriber"])
    assert caught.value.cause == "held"
    flow.link_down(B)
    assert flow.held == COST


def test_messages_waiting_for_all_neighbours_together_are_bounded(monkeypatch):
    monkeypatch.setattr("dafka.overlay.flow.QUEUES_OCTETS", 8 * limits.QUEUE_OCTETS)
    flow = Flow()
    neighbours = [bytes([number]) * 16 for number in range(100)]
    for neighbour in neighbours:
        flow.link_up(neighbour, is_plain=False)
        flow.credit(neighbour, 0, 0)
        while not flow.is_full(neighbour, 0):
            flow.send(neighbour, 0, Run([FRAME]))
    # Those that came last had little room, and the others most of what there was.
    assert 3 * limits.QUEUE_OCTETS < flow.waiting < 8 * limits.QUEUE_OCTETS
    for neighbour in neighbours:  # each goes on when it is read, however much waits for others
        while flow.is_full(neighbour, 0):
            flow.credit(neighbour, 0, limits.WINDOW_OCTETS)
    for neighbour in neighbours:
        flow.link_down(neighbour)
    assert flow.waiting == 0


def test_a_neighbour_with_too_much_under_way_to_it_is_left(monkeypatch):
    monkeypatch.setattr("dafka.overlay.flow.QUEUES_OCTETS", 2 * limits.QUEUE_OCTETS)
    flow = linked()
    with pytest.raises(TooSlow, match="wait for all peers"):
        while True:  # without a look at is_full
            flow.send(A, 0, Run([bytes(SIZE)]))
    assert flow.waiting <= 2 * limits.QUEUE_OCTETS + COST
    flow.link_down(A)
    assert flow.waiting == 0


def test_a_queue_is_full_and_has_room_when_half_of_it_is_gone():
    flow = linked()
    while not flow.is_full(A, 0):
        flow.send(A, 0, Run([FRAME]))
    flow.take(B, 1, limits.WINDOW_OCTETS, COST, [(A, 0)])
    assert not flow.has_freed()
    assert flow.credit(A, 0, limits.WINDOW_OCTETS // 4)[1] == []
    assert flow.credit(A, 0, limits.WINDOW_OCTETS)[1] == [Grant(B, 1, limits.WINDOW_OCTETS)]
    assert flow.has_freed() and not flow.has_freed()


def test_a_neighbour_that_goes_holds_up_nobody_any_more():
    flow = linked()
    while not flow.is_full(A, 0):
        flow.send(A, 0, Run([FRAME]))
    flow.take(B, 1, limits.WINDOW_OCTETS, COST, [(A, 0)])
    assert flow.link_down(A) == [Grant(B, 1, limits.WINDOW_OCTETS)]
    assert flow.waiting == 0 and flow.has_freed()
    assert flow.send(A, 0, Run([FRAME])) == b""


@pytest.mark.parametrize("overflow", ["drop_newest", "drop_oldest"])
def test_messages_beyond_a_full_queue_are_dropped_if_that_is_wanted(overflow):
    flow = linked(overflow)
    for number in range(1000):
        flow.send(A, 0, Run([number.to_bytes(4, "big") + FRAME]))
    assert not flow.is_full(A, 0) and flow.waiting <= limits.QUEUE_OCTETS + COST
    left = []
    while flow.waiting:
        octets, _ = flow.credit(A, 0, limits.WINDOW_OCTETS)
        left += [int.from_bytes(octets[at : at + 4], "big") for at in range(0, len(octets), SIZE + 4)]
    assert len(left) + flow.dropped + -(-limits.WINDOW_OCTETS // (COST + 4)) == 1000
    assert left == sorted(left)
    assert (999 in left) == (overflow == "drop_oldest")


def test_a_neighbour_is_left_beyond_a_full_queue_if_that_is_wanted():
    flow = linked("disconnect")
    with pytest.raises(TooSlow):
        for _ in range(1000):
            flow.send(A, 0, Run([FRAME]))


def test_a_peer_of_version_1_is_sent_what_its_connection_takes_and_read_while_there_is_room():
    flow = linked(is_plain=True)
    for _ in range(1000):
        assert flow.send(A, 0, Run([FRAME])) == FRAME
    flow.congested(A)
    assert flow.send(A, 0, Run([FRAME])) == b""
    assert flow.drained(A) == (FRAME, [])
    assert flow.hold(A, ["subscriber"]) and not flow.hold(A, ["subscriber"])
    assert flow.paused == [A]
    assert flow.room("subscriber") == [Grant(A, 0, 0)] and flow.paused == []


@pytest.mark.parametrize("overflow", ["wait", "drop_oldest"])
def test_a_long_queue_for_a_version_1_peer_goes_in_several_pieces(overflow):
    flow = linked(overflow, is_plain=True)
    flow.congested(A)
    flow.send(A, 0, Run([bytes(100 + number) for number in range(5000)]))
    waited = flow.waiting
    sent, _ = flow.drained(A)
    assert sent and waited > limits.WINDOW_OCTETS
    while flow.has_more(A):
        assert flow.drained(A)[0]
    assert flow.waiting == 0 and not flow.is_full(A, 0)
    assert flow.send(A, 0, Run([FRAME])) == FRAME


def test_nothing_is_kept_of_a_peer_of_version_1_that_is_left_while_it_still_sends_and_is_full():
    flow = linked(is_plain=True)
    flow.link_down(A)
    flow.congested(A)
    assert not flow.hold(A, ["subscriber"]) and not flow.has_more(A)
    assert flow.paused == [] and flow.room("subscriber") == []
    flow.link_up(A, is_plain=True)
    assert flow.send(A, 0, Run([FRAME])) == FRAME


def test_a_queue_stays_full_until_half_of_it_is_gone_also_if_more_is_put_in():
    flow = linked()
    while not flow.is_full(A, 0):
        flow.send(A, 0, Run([FRAME]))
    flow.take(B, 1, limits.WINDOW_OCTETS, COST, [(A, 0)])
    flow.credit(A, 0, 3 * COST)
    flow.send(A, 0, Run([FRAME]))
    assert flow.is_full(A, 0)
    flow.credit(A, 0, limits.WINDOW_OCTETS)
    assert not flow.is_full(A, 0) and flow.held == 0


def test_both_ends_agree_about_the_credit_whatever_is_sent():
    for seed in range(6):
        chance = random.Random(seed)
        sender, receiver = linked(), linked()
        way: list[bytes] = []
        grants: list[Grant | None] = []
        sent = arrived = 0
        is_full = False
        for step in range(400):
            what = chance.randrange(4) if step < 300 else chance.randrange(1, 4)
            if what == 0:
                sizes = [
                    chance.choice([10, SIZE, limits.WINDOW_OCTETS]) for _ in range(chance.randrange(1, 9))
                ]
                sent += len(sizes)
                way.append(sender.send(A, 0, Run([frame(bytes(size)) for size in sizes])))
            elif what == 1 and way:
                reader = FrameReader(2**24)
                reader.feed(way.pop(0))
                costs = [4 + len(one) + limits.MESSAGE_COST for one in reader.messages()]
                arrived += len(costs)
                if costs:
                    blockers = ["reader"] if is_full else []
                    grants.append(receiver.take(A, 0, sum(costs), costs[-1], blockers))
            elif what == 2:
                is_full = step < 300 and chance.random() < 0.5
                if not is_full:
                    grants += receiver.room("reader")
            elif what == 3:
                way += [sender.credit(A, 0, grant.octets)[0] for grant in grants if grant is not None]
                grants.clear()
        while sender.waiting or way:
            for octets in way:
                reader = FrameReader(2**24)
                reader.feed(octets)
                costs = [4 + len(one) + limits.MESSAGE_COST for one in reader.messages()]
                arrived += len(costs)
                grants.append(receiver.take(A, 0, sum(costs), costs[-1], []) if costs else None)
            grants += receiver.room("reader")
            way = [sender.credit(A, 0, grant.octets)[0] for grant in grants if grant is not None]
            grants.clear()
            assert way or not sender.waiting, "both wait for ever"
        assert sent == arrived and receiver.held == 0


def test_a_message_that_waits_for_many_neighbours_takes_its_memory_once(monkeypatch):
    monkeypatch.setattr(flow_module, "QUEUES_OCTETS", 5 * SIZE)
    flow = Flow()
    neighbours = [number.to_bytes(16, "big") for number in range(8)]
    for one in neighbours:
        flow.link_up(one, is_plain=False)
        while flow.send(one, 0, Run([FRAME])):  # until its credit is used up
            pass
    large = Run([bytes(2 * SIZE)])
    for one in neighbours:
        assert flow.send(one, 0, large) == b""
    with pytest.raises(TooSlow):
        for one in neighbours:
            flow.send(one, 0, Run([bytes(2 * SIZE)]))  # each its own
