"""Produce and fetch with several brokers: each partition's leader, and what happens when leaders change."""

from __future__ import annotations

import time

import gevent
import pytest
from broker.remote.fake_broker import CLOSE, HANG, after, fetched, once, produced
from kafka.errors import (
    KafkaConnectionError,
    LeaderNotAvailableError,
    NetworkExceptionError,
    NotLeaderForPartitionError,
    OffsetOutOfRangeError,
    RequestTimedOutError,
    UnknownTopicOrPartitionError,
)
from kafka.protocol.consumer import ListOffsetsResponse

from dafka.broker.interface.broker import EARLIEST, LATEST, FetchFrom
from dafka.broker.remote import limits
from dafka.protocol.batch_writer import encode_batch

PRODUCE, FETCH, LIST_OFFSETS, METADATA, API_VERSIONS = 0, 1, 2, 3, 18
NOT_LEADER, OUT_OF_RANGE = 6, 1
BATCH = encode_batch([(1000, None, b"v", ())])
ALL = {("t", 0): [BATCH], ("t", 1): [BATCH], ("t", 2): [BATCH]}


def fetch(remote, *partitions, offset=0, wait=10.0):
    wanted = {("t", number): FetchFrom(offset, 1000) for number in partitions}
    return remote.fetch(wanted, max_wait=wait, min_bytes=1, max_bytes=10_000)


def parked(request):
    """A broker that has nothing: it waits as long as it may."""
    time.sleep(request.max_wait_ms / 1000)
    return fetched(request)


def test_each_batch_goes_to_the_leader_of_its_partition(trio, remote_to):
    for number, broker in enumerate(trio.brokers):
        broker.answers[PRODUCE] = lambda request, number=number: produced(request, base_offset=number)
    remote = remote_to(trio.addresses[:1])
    outcome = remote.produce(ALL)
    assert {partition: one.base_offset for partition, one in outcome.items()} == {
        ("t", 0): 0,
        ("t", 1): 1,
        ("t", 2): 2,
    }
    assert [broker.counts[PRODUCE] for broker in trio.brokers] == [1, 1, 1]


def test_a_batch_that_was_refused_because_the_leader_has_changed_goes_to_the_new_one(trio, remote_to):
    def not_here(request):
        trio.leaders["t"][0] = 1
        return produced(request, NOT_LEADER)

    trio.brokers[0].answers[PRODUCE] = not_here
    trio.brokers[1].answers[PRODUCE] = lambda request: produced(request, base_offset=7)
    assert remote_to(trio.addresses).produce({("t", 0): [BATCH]})["t", 0].base_offset == 7


def test_a_refusal_that_lasts_is_returned(trio, remote_to):
    trio.brokers[0].answers[PRODUCE] = lambda request: produced(request, NOT_LEADER)
    outcome = remote_to(trio.addresses).produce({("t", 0): [BATCH]})["t", 0]
    assert outcome.error is NotLeaderForPartitionError
    assert trio.brokers[0].counts[PRODUCE] == 1 + limits.RETRIES


def test_a_partition_without_a_leader_and_one_that_does_not_exist_have_different_errors(trio, remote_to):
    trio.leaders["t"][1] = -1
    outcome = remote_to(trio.addresses).produce({("t", 1): [BATCH], ("t", 9): [BATCH], ("no", 0): [BATCH]})
    assert outcome["t", 1].error is LeaderNotAvailableError
    assert outcome["t", 9].error is UnknownTopicOrPartitionError
    assert outcome["no", 0].error is UnknownTopicOrPartitionError


@pytest.mark.parametrize(
    ("answer", "error"), [(CLOSE, NetworkExceptionError), (HANG, RequestTimedOutError)], ids=["lost", "late"]
)
def test_a_produce_that_may_have_been_carried_out_is_not_repeated(trio, remote_to, answer, error):
    trio.brokers[0].answers[PRODUCE] = lambda request: answer
    trio.brokers[1].answers[PRODUCE] = trio.brokers[2].answers[PRODUCE] = produced
    outcome = remote_to(trio.addresses, request_timeout=0.5).produce(ALL)
    assert outcome["t", 0].error is error
    assert "perhaps written" in outcome["t", 0].detail
    assert [outcome["t", number].error for number in (1, 2)] == [None, None]
    assert trio.brokers[0].counts[PRODUCE] == 1


def test_a_leader_that_is_down_is_an_error_of_its_partitions_only(trio, remote_to):
    trio.brokers[1].answers[PRODUCE] = trio.brokers[2].answers[PRODUCE] = produced
    remote = remote_to(trio.addresses[1:])
    trio.brokers[0].stop()
    outcome = remote.produce(ALL)
    assert outcome["t", 0].error is NetworkExceptionError
    assert "not sent" in outcome["t", 0].detail
    assert [outcome["t", number].error for number in (1, 2)] == [None, None]


def test_several_batches_for_a_partition_go_one_at_a_time_up_to_the_first_refused(fake, remote_to):
    broker = fake.brokers[0]
    answers = iter([(0, 10), (0, 20), (7, -1)])  # the third: RequestTimedOut, at the broker
    broker.answers[PRODUCE] = lambda request: produced(request, *next(answers))
    outcome = remote_to(fake.addresses).produce({("t", 0): [BATCH] * 5})["t", 0]
    assert outcome.error is RequestTimedOutError
    assert outcome.base_offsets == (10, 20)
    assert broker.counts[PRODUCE] == 3
    sizes = [
        len(one.records)
        for request in broker.requests
        if request.API_KEY == PRODUCE
        for one in request.topic_data[0].partition_data
    ]
    assert sizes == [len(BATCH)] * 3


def test_acks_0_does_not_wait_for_an_answer(fake, remote_to):
    fake.brokers[0].answers[PRODUCE] = lambda request: HANG
    remote = remote_to(fake.addresses)
    assert remote.produce({("t", 0): [BATCH] * 3}, 0)["t", 0].error is None
    fake.brokers[0].wait_for(PRODUCE, 3)


def test_the_first_leader_with_records_ends_a_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = trio.brokers[2].answers[FETCH] = parked
    trio.brokers[1].answers[FETCH] = lambda request: fetched(request, BATCH)
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, 1, 2, wait=5.0)
    assert time.monotonic() - started < 4
    assert {partition: one.batches for partition, one in found.items()} == {("t", 1): [BATCH]}


def test_answers_of_slower_leaders_are_kept_for_the_next_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = after(0.5, lambda request: fetched(request, BATCH))
    trio.brokers[1].answers[FETCH] = once(lambda request: fetched(request, BATCH), parked)
    remote = remote_to(trio.addresses)
    assert set(fetch(remote, 0, 1)) == {("t", 1)}
    found = fetch(remote, 0)
    assert found["t", 0].batches == [BATCH]
    assert trio.brokers[0].counts[FETCH] == 1  # it was asked once, and its records came once


def test_a_fetch_that_is_interrupted_is_taken_over_by_the_next(trio, remote_to):
    trio.brokers[0].answers[FETCH] = after(0.5, lambda request: fetched(request, BATCH))
    remote = remote_to(trio.addresses)
    wanted = {("t", 0): FetchFrom(0, 1000)}

    def interrupted():
        green = gevent.spawn(remote.remote.fetch, wanted, max_wait=10.0, min_bytes=1, max_bytes=10_000)
        with gevent.Timeout(10):
            while not trio.brokers[0].counts[FETCH]:
                gevent.sleep(0.01)
        green.kill()

    remote.hub.run(interrupted)
    assert fetch(remote, 0)["t", 0].batches == [BATCH]
    assert trio.brokers[0].counts[FETCH] == 1


def test_nothing_found_is_an_answer_for_all_partitions_in_time(trio, remote_to):
    for broker in trio.brokers:
        broker.answers[FETCH] = parked
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, 1, 2, wait=0.3)
    assert 0.3 <= time.monotonic() - started < 5
    assert {partition: (one.error, one.high_watermark) for partition, one in found.items()} == {
        ("t", number): (None, 10) for number in range(3)
    }


def test_a_leader_that_does_not_answer_does_not_hold_up_the_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = lambda request: HANG
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, wait=0.2)
    assert time.monotonic() - started < 5
    assert (found["t", 0].error, found["t", 0].batches) == (None, [])


def test_a_broker_that_does_not_wait_is_not_asked_all_the_time(trio, remote_to):
    trio.brokers[0].answers[FETCH] = fetched
    fetch(remote_to(trio.addresses), 0, wait=0.5)
    assert trio.brokers[0].counts[FETCH] <= 1 + 0.5 / limits.EMPTY_PAUSE


def test_a_fetch_follows_its_partition_to_the_new_leader(trio, remote_to):
    def not_here(request):
        trio.leaders["t"][0] = 1
        return fetched(request, code=NOT_LEADER)

    trio.brokers[0].answers[FETCH] = not_here
    trio.brokers[1].answers[FETCH] = lambda request: fetched(request, BATCH)
    assert fetch(remote_to(trio.addresses), 0)["t", 0].batches == [BATCH]


def test_an_error_of_one_partition_ends_the_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = lambda request: fetched(request, code=OUT_OF_RANGE)
    trio.brokers[1].answers[FETCH] = parked
    found = fetch(remote_to(trio.addresses), 0, 1)
    assert {partition: one.error for partition, one in found.items()} == {("t", 0): OffsetOutOfRangeError}


def out_of_range_as_kafka_says_it(request):
    response = fetched(request, code=OUT_OF_RANGE)
    for topic in response.responses:
        for one in topic.partitions:
            one.high_watermark = one.last_stable_offset = one.log_start_offset = -1
    return response


def listed(request):
    """The partition has the offsets 5 to 8."""
    topic_class = ListOffsetsResponse.ListOffsetsTopicResponse
    return ListOffsetsResponse(
        throttle_time_ms=0,
        topics=[
            topic_class(
                name=topic.name,
                partitions=[
                    topic_class.ListOffsetsPartitionResponse(
                        partition_index=one.partition_index,
                        error_code=0,
                        timestamp=-1,
                        offset={EARLIEST: 5, LATEST: 9}[one.timestamp],
                        leader_epoch=0,
                    )
                    for one in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def test_the_limits_of_a_partition_are_told_with_an_offset_out_of_range(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[FETCH] = out_of_range_as_kafka_says_it
    broker.answers[LIST_OFFSETS] = listed
    found = fetch(remote_to(fake.addresses), 0)["t", 0]
    assert (found.error, found.log_start_offset, found.high_watermark) == (OffsetOutOfRangeError, 5, 9)


def test_limits_that_cannot_be_learned_are_a_retriable_error(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[FETCH] = out_of_range_as_kafka_says_it
    broker.answers[LIST_OFFSETS] = lambda request: CLOSE
    assert fetch(remote_to(fake.addresses), 0)["t", 0].error is NetworkExceptionError


def test_a_leader_that_goes_away_is_a_retriable_error(trio, remote_to):
    trio.brokers[0].answers[FETCH] = lambda request: CLOSE
    assert fetch(remote_to(trio.addresses), 0)["t", 0].error is NetworkExceptionError


def test_another_bootstrap_address_is_asked_when_one_is_down(trio, remote_to):
    trio.brokers[0].stop()
    trio.brokers[1].answers[API_VERSIONS] = lambda request: CLOSE
    remote = remote_to(trio.addresses)
    assert set(remote.metadata(["t"]).topics) == {"t"}


def test_a_cluster_that_cannot_be_reached_says_why_for_each_address(trio, remote_to):
    for broker in trio.brokers:
        broker.stop()
    remote = remote_to(trio.addresses)
    with pytest.raises(KafkaConnectionError, match=r"refused.*;.*refused.*;.*refused"):
        remote.metadata(None)


def test_a_broker_that_is_down_is_left_in_peace_ever_longer_and_found_when_it_is_back(fake, remote_to):
    remote = remote_to(fake.addresses)
    remote.metadata(None)
    broker = fake.brokers[0]
    broker.stop()
    started = time.monotonic()
    for _ in range(4):
        with pytest.raises(KafkaConnectionError, match=r"refused|closed"):
            remote.metadata(None)
    pauses = [limits.RECONNECT_BACKOFF * 2**count * (1 - limits.RECONNECT_JITTER) for count in range(2)]
    assert time.monotonic() - started > sum(pauses)
    broker.restart()
    assert remote.metadata(["t"]).topics["t"].error is None


def test_connections_are_shared_and_given_back(fake, remote_to):
    broker = fake.brokers[0]
    broker.answers[PRODUCE] = produced
    broker.answers[FETCH] = lambda request: fetched(request, BATCH)
    remote = remote_to(fake.addresses)

    def work():
        def one():
            for _ in range(5):
                remote.remote.produce({("t", 0): [BATCH]})
                remote.remote.metadata(["t"])
                wanted = {("t", 0): FetchFrom(0, 1000)}
                remote.remote.fetch(wanted, max_wait=1.0, min_bytes=1, max_bytes=1000)

        gevent.joinall([gevent.spawn(one) for _ in range(20)], raise_error=True, timeout=30)

    remote.hub.run(work)
    # The bootstrap connection, one for everything, one for produce, and the fetches that overlapped.
    assert broker.connections <= 3 + 20
    assert broker.counts[PRODUCE] == 100
