"""The simulation sees a mesh that breaks its promises: with a fault built into a role, or into what carries
its messages, some seed finds it."""

from __future__ import annotations

import pytest
from simulation.scenario import simulate

from dafka.protocol.commands import Ack, Trimmed
from dafka.protocol.stretches import Stretches
from dafka.roles.ahead import Ahead
from dafka.roles.catchup import CatchUp
from dafka.roles.claim import PartitionClaim, Position
from dafka.roles.consumer import ConsumerRole
from dafka.roles.peers import PeersRole
from dafka.roles.producer import ProducerRole
from dafka.roles.store import StoreRole
from dafka.zmtp.connection import Connection
from dafka.zmtp.cutting import Cutter

SEEDS = range(700)


def acknowledges_what_it_has_not_committed(patch):
    receive_run = StoreRole.receive_run

    def eager(self, now, run):
        outputs = receive_run(self, now, run)
        stored = self._partitions.get((run.topic, run.address))
        if stored is not None and stored.next > stored.committed:
            outputs.append(Ack(stored.address, stored.topic, stored.next - 1, self.address))
        return outputs

    patch.setattr(StoreRole, "receive_run", eager)


def lets_go_of_what_is_not_acknowledged(patch):
    publish = ProducerRole.publish

    def forgetful(self, now, contents):
        run = publish(self, now, contents)
        self._drop(max(0, self.next_sequence - self.first_retained - 20))
        return run

    patch.setattr(ProducerRole, "publish", forgetful)


def never_repeats_a_fetch(patch):
    patch.setattr(CatchUp, "_overdue", lambda self, now, follower, outputs: None)


def leaves_out_what_is_missing(patch):
    def careless(self, follower, first, contents):
        follower.next = first

    patch.setattr(Ahead, "keep", careless)


def gives_no_regard_to_room(patch):
    set_room = ConsumerRole.set_room
    patch.setattr(ConsumerRole, "set_room", lambda self, now, *room: set_room(self, now, 10**6, 10**9))


def skips_at_the_first_word(patch):
    def hasty(self, now, follower, first, source):
        if first > follower.next:
            follower.trimmed, follower.doubted = first, -1e9
            self._set_due(follower, now)

    patch.setattr(CatchUp, "trimmed", hasty)


def believes_a_producer_and_does_not_wait_for_stores(patch):
    patch.setattr(CatchUp, "_no_store_has", lambda self, follower: True)
    patch.setattr(ProducerRole, "_may_be_committing", lambda self, now, store: False)


def leaves_records_out_while_others_are_on_their_way_into_the_log(patch):
    receive = StoreRole.receive

    def hasty(self, now, command, **more):
        if type(command) is Trimmed and command.recipient == self.address:
            stored = self._partitions.get((command.topic, command.address))
            if stored is not None and stored.pending:
                self._catchup.trimmed(now, stored, command.sequence, command.source)
        return receive(self, now, command, **more)

    patch.setattr(StoreRole, "receive", hasty)


def gives_a_store_up_too_soon(patch):
    patch.setattr(
        ProducerRole, "_is_lost", lambda self, now, store: self.store_timeout and now - self._heard[store] > 2
    )


def asks_again_whenever_an_answer_is_not_whole(patch):
    patch.setattr(CatchUp, "_answered_in_part", CatchUp._forget_fetch)


def begins_at_0_again(patch):
    def decide(self, now, outputs):
        self.found = Position(0, 0)

    patch.setattr(PartitionClaim, "_decide", decide)


def does_not_notice_its_twin(patch):
    patch.setattr(PartitionClaim, "_hear_rival", lambda self, now, rival, numbering, sample: [])


def says_where_a_partition_ends_before_it_has_read_all(patch):
    receive = StoreRole.receive
    patch.setattr(StoreRole, "receive", lambda self, now, command, **more: receive(self, now, command))


def believes_every_ack(patch):
    def believe(self, now, store, end):
        self._acknowledge(now, store, min(end, self.next_sequence))
        return []

    patch.setattr(ProducerRole, "_hear_ack", believe)


def takes_what_waits_when_its_partition_is_claimed(patch):
    receive = ConsumerRole.receive
    patch.setattr(ConsumerRole, "receive", lambda self, now, command, **more: receive(self, now, command))


def lets_in_more_while_appends_behind_one_that_failed_are_under_way(patch):
    not_stored = StoreRole.not_stored

    def rash(self, now, topic, address, end):
        outputs = not_stored(self, now, topic, address, end)
        self._give_back(self._partitions[topic, address], 10**9)
        return outputs

    patch.setattr(StoreRole, "not_stored", rash)


def sets_all_room_aside_for_fetches(patch):
    patch.setattr("dafka.roles.room._half", lambda room: room)


def forgets_the_beginning_of_a_torn_message(patch):
    feed = Cutter.feed

    def forgetful(self, octets):
        self._position = len(self._buffer)
        feed(self, octets)

    patch.setattr(Cutter, "feed", forgetful)


def leaves_what_is_pending_where_it_is(patch):
    patch.setattr(Connection, "pending", False)


def numbers_the_second_stretch_of_a_buffer_like_the_first(patch):
    add = Stretches._add

    def muddled(self, stream, first, contents):
        add(self, stream, self._runs[0][1] if self._runs else first, contents)

    patch.setattr(Stretches, "_add", muddled)


def takes_a_record_whose_end_has_not_arrived(patch):
    def rash(buffer, position, body, room, contents):
        end = body + 2 + buffer[body + 1]
        contents.append(buffer[body + 2 : end])
        return end

    patch.setattr("dafka.protocol.stretches._stretch", rash)


def does_not_answer_pings(patch):
    take_output = Connection.take_output

    def silent(self):
        self._pong = None
        return take_output(self)

    patch.setattr(Connection, "take_output", silent)


def does_not_expect_a_successor_on_a_lost_port(patch):
    patch.setattr(PeersRole, "expected", lambda self, now, endpoint, began, lost: False)


@pytest.mark.parametrize(
    ("fault", "finder"),
    [
        (acknowledges_what_it_has_not_committed, 0),
        (lets_go_of_what_is_not_acknowledged, 0),
        (never_repeats_a_fetch, 0),
        (leaves_out_what_is_missing, 0),
        (gives_no_regard_to_room, 0),
        (skips_at_the_first_word, 67),
        (believes_a_producer_and_does_not_wait_for_stores, 99),
        (leaves_records_out_while_others_are_on_their_way_into_the_log, 18),
        (gives_a_store_up_too_soon, 33),
        (asks_again_whenever_an_answer_is_not_whole, 30),
        (begins_at_0_again, 2),
        (does_not_notice_its_twin, 9),
        (says_where_a_partition_ends_before_it_has_read_all, 535),
        (believes_every_ack, 50),
        (lets_in_more_while_appends_behind_one_that_failed_are_under_way, 98),
        (sets_all_room_aside_for_fetches, 2),
        (takes_what_waits_when_its_partition_is_claimed, 89),
        (forgets_the_beginning_of_a_torn_message, 8),
        (leaves_what_is_pending_where_it_is, 8),
        (numbers_the_second_stretch_of_a_buffer_like_the_first, 148),
        (takes_a_record_whose_end_has_not_arrived, 8),
        (does_not_answer_pings, 8),
        (does_not_expect_a_successor_on_a_lost_port, 3),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_a_role_that_does_this_is_found(fault, finder, monkeypatch):
    """``finder`` is a seed that has found it; others follow, for the simulation may have changed."""
    fault(monkeypatch)
    for seed in (finder, *SEEDS):
        try:
            simulate(seed)
        except AssertionError:
            return
    pytest.fail(f"no seed below {len(SEEDS)} found it")
