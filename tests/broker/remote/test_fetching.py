"""Fetch with several brokers: each partition's leader, and what happens when leaders change."""

from __future__ import annotations

import threading
import time

import gevent
from broker.remote.fake_broker import CLOSE, HANG, fetched, once
from kafka.errors import (
    NetworkExceptionError,
    OffsetOutOfRangeError,
)
from kafka.protocol.consumer import ListOffsetsResponse

from dafka.broker.interface.broker import EARLIEST, LATEST, FetchFrom
from dafka.broker.remote import limits
from dafka.protocol.batch_writer import encode_batch

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
NOT_LEADER, OUT_OF_RANGE = 6, 1
BATCH = encode_batch([(1000, None, b"v", ())])


def fetch(remote, *partitions, offset=0, wait=10.0):
    wanted = {("t", number): FetchFrom(offset, 1000) for number in partitions}
    return remote.fetch(wanted, max_wait=wait, min_bytes=1, max_bytes=10_000)


def parked(request):
    """A broker that has nothing: it waits as long as it may."""
    time.sleep(request.max_wait_ms / 1000)
    return fetched(request)


def test_the_first_leader_with_records_ends_a_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = trio.brokers[2].answers[FETCH] = parked
    trio.brokers[1].answers[FETCH] = lambda request: fetched(request, BATCH)
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, 1, 2, wait=60.0)
    assert time.monotonic() - started < 40
    assert {partition: one.batches for partition, one in found.items()} == {("t", 1): [BATCH]}


def test_answers_of_slower_leaders_are_kept_for_the_next_fetch(trio, remote_to):
    go_on = threading.Event()
    trio.brokers[0].answers[FETCH] = lambda request: go_on.wait(100) and fetched(request, BATCH)
    trio.brokers[1].answers[FETCH] = once(lambda request: fetched(request, BATCH), parked)
    remote = remote_to(trio.addresses)
    assert set(fetch(remote, 0, 1)) == {("t", 1)}
    go_on.set()
    found = fetch(remote, 0)
    assert found["t", 0].batches == [BATCH]
    assert trio.brokers[0].counts[FETCH] == 1  # it was asked once, and its records came once


def test_a_fetch_that_is_interrupted_is_taken_over_by_the_next(trio, remote_to):
    go_on = threading.Event()
    trio.brokers[0].answers[FETCH] = lambda request: go_on.wait(100) and fetched(request, BATCH)
    remote = remote_to(trio.addresses)
    wanted = {("t", 0): FetchFrom(0, 1000)}

    def interrupted():
        green = gevent.spawn(remote.remote.fetch, wanted, max_wait=10.0, min_bytes=1, max_bytes=10_000)
        with gevent.Timeout(100):
            while not trio.brokers[0].counts[FETCH]:
                gevent.sleep(0.01)
        green.kill()

    remote.hub.run(interrupted)
    go_on.set()
    assert fetch(remote, 0)["t", 0].batches == [BATCH]
    assert trio.brokers[0].counts[FETCH] == 1


def test_nothing_found_is_an_answer_for_all_partitions_in_time(trio, remote_to, monkeypatch):
    monkeypatch.setattr("dafka.broker.remote.fetching.FETCH_GRACE", 25.0)  # their output is waited for
    for broker in trio.brokers:
        broker.answers[FETCH] = parked
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, 1, 2, wait=0.3)
    assert 0.3 <= time.monotonic() - started < 30
    assert {partition: (one.error, one.high_watermark) for partition, one in found.items()} == {
        ("t", number): (None, 10) for number in range(3)
    }


def test_a_leader_that_does_not_answer_does_not_hold_up_the_fetch(trio, remote_to):
    trio.brokers[0].answers[FETCH] = lambda request: HANG
    started = time.monotonic()
    found = fetch(remote_to(trio.addresses), 0, wait=0.2)
    assert time.monotonic() - started < 30
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
