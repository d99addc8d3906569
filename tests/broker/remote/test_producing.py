"""Produce with several brokers: each batch goes to the leader of its partition, and none is stored twice."""

from __future__ import annotations

import pytest
from broker.remote.fake_broker import CLOSE, HANG, produced
from kafka.errors import (
    NetworkExceptionError,
    RequestTimedOutError,
)

from dafka.broker.remote import limits
from dafka.protocol.batch import read_header, with_producer
from dafka.protocol.batch_writer import encode_batch

PRODUCE = 0
NOT_LEADER = 6
BATCH = encode_batch([(1000, None, b"v", ())])


ALL = {("t", 0): [BATCH], ("t", 1): [BATCH], ("t", 2): [BATCH]}


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


@pytest.mark.parametrize(
    ("answer", "error"), [(CLOSE, NetworkExceptionError), (HANG, RequestTimedOutError)], ids=["lost", "late"]
)
def test_a_produce_that_may_have_been_carried_out_is_not_repeated(trio, remote_to, answer, error):
    trio.brokers[0].answers[PRODUCE] = lambda request: answer
    trio.brokers[1].answers[PRODUCE] = trio.brokers[2].answers[PRODUCE] = produced
    outcome = remote_to(trio.addresses, request_timeout=3.0).produce(ALL)
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


def of_a_producer(count: int) -> list[bytes]:
    return [with_producer(BATCH, 7, 0, sequence) for sequence in range(count)]


@pytest.mark.parametrize("out_of_order", [(45, -1), (0, 40)], ids=["refused", "taken all the same"])
def test_batches_of_an_idempotent_producer_are_under_way_together_behind_the_first(
    fake, remote_to, out_of_order
):
    broker = fake.brokers[0]
    answers = iter([(0, 10), (0, 20), (7, -1), out_of_order, out_of_order, out_of_order])
    broker.answers[PRODUCE] = lambda request: produced(request, *next(answers))
    outcome = remote_to(fake.addresses).produce({("t", 0): of_a_producer(9)})["t", 0]
    assert outcome.error is RequestTimedOutError
    assert outcome.base_offsets == (10, 20)
    assert broker.counts[PRODUCE] == 2 + limits.IN_FLIGHT  # one more for the one that was taken


@pytest.mark.parametrize("in_flight", [0, 1, 2, limits.IN_FLIGHT, 5])
def test_no_more_requests_are_under_way_than_the_caller_allows(fake, remote_to, in_flight):
    broker = fake.brokers[0]
    answers = iter([(0, 10), (7, -1), *[(45, -1)] * limits.IN_FLIGHT])
    broker.answers[PRODUCE] = lambda request: produced(request, *next(answers))
    outcome = remote_to(fake.addresses).produce({("t", 0): of_a_producer(9)}, in_flight=in_flight)["t", 0]
    assert (outcome.error, outcome.base_offsets) == (RequestTimedOutError, (10,))
    assert broker.counts[PRODUCE] == 1 + min(max(in_flight, 1), limits.IN_FLIGHT)


def test_a_batch_whose_leader_moves_while_others_are_under_way_behind_it_is_sent_again_first(fake, remote_to):
    broker = fake.brokers[0]
    refused = [(NOT_LEADER, -1), *[(45, -1)] * (limits.IN_FLIGHT - 1)]
    answers = iter([(0, 0), *refused, *[(0, offset) for offset in range(1, 9)]])
    broker.answers[PRODUCE] = lambda request: produced(request, *next(answers))
    outcome = remote_to(fake.addresses).produce({("t", 0): of_a_producer(9)})["t", 0]
    assert (outcome.error, outcome.base_offsets) == (None, tuple(range(9)))
    requests = [one for one in broker.requests if one.API_KEY == PRODUCE]
    sequences = [read_header(one.topic_data[0].partition_data[0].records).base_sequence for one in requests]
    assert sequences == [0, *range(1, 1 + limits.IN_FLIGHT), *range(1, 9)]


@pytest.mark.parametrize("answer", [CLOSE, HANG], ids=["lost", "late"])
def test_batches_under_way_whose_answers_do_not_come_are_perhaps_written(fake, remote_to, answer):
    broker = fake.brokers[0]
    answers = iter([(0, 0), (0, 1)])
    broker.answers[PRODUCE] = lambda request: (
        produced(request, *one) if (one := next(answers, None)) else answer
    )
    outcome = remote_to(fake.addresses, request_timeout=3.0).produce({("t", 0): of_a_producer(9)})["t", 0]
    assert outcome.base_offsets == (0, 1)
    assert outcome.error in (NetworkExceptionError, RequestTimedOutError)
    assert "perhaps written" in outcome.detail


def test_a_partition_that_is_refused_gets_no_further_batches_and_the_others_go_on(fake, remote_to):
    broker = fake.brokers[0]
    fake.leaders = {"t": {0: 0, 1: 0}}
    sent = {0: 0, 1: 0}

    def answer(request):
        answered = produced(request, base_offset=5)
        for one in answered.responses[0].partition_responses:
            sent[one.index] += 1
            if one.index == 1 and sent[1] >= 3:
                one.error_code = 7 if sent[1] == 3 else 45
        return answered

    broker.answers[PRODUCE] = answer
    batches = of_a_producer(30)
    outcome = remote_to(fake.addresses).produce({("t", 0): batches, ("t", 1): batches})
    assert (outcome["t", 0].error, outcome["t", 0].base_offsets) == (None, (5,) * 30)
    assert (outcome["t", 1].error, outcome["t", 1].base_offsets) == (RequestTimedOutError, (5, 5))
    assert sent == {0: 30, 1: 2 + limits.IN_FLIGHT}
    assert broker.counts[PRODUCE] == 30


def test_acks_0_does_not_wait_for_an_answer(fake, remote_to):
    fake.brokers[0].answers[PRODUCE] = lambda request: HANG
    remote = remote_to(fake.addresses)
    assert remote.produce({("t", 0): [BATCH] * 3}, 0)["t", 0].error is None
    fake.brokers[0].wait_for(PRODUCE, 3)
