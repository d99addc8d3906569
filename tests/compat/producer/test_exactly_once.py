"""Offsets that a transaction commits, and exactly-once processing in a process that is killed."""

from __future__ import annotations

import signal
import sys
import textwrap
import threading

import forking
import pytest
from kafka.errors import CommitFailedError, KafkaError, KafkaTimeoutError

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.structs import ConsumerGroupMetadata, OffsetAndMetadata
from dafka.testing import TestBroker
from tests.compat.patient import PatientConsumer

T0 = TopicPartition("t", 0)


def test_no_offsets_are_nothing_to_commit(transactional, state):
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction({}, "g")
    assert state() == ("Empty", 0)
    transactional.commit_transaction()


def test_offsets_are_the_groups_when_the_transaction_commits(transactional, new_consumer, broker):
    offsets = {T0: OffsetAndMetadata(5, "note", -1)}
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction(offsets, "g")
    assert broker.committed("g") == {}
    transactional.abort_transaction()
    assert broker.committed("g") == {}
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction(offsets, ConsumerGroupMetadata("g", -1, "", None))
    transactional.commit_transaction()
    assert new_consumer(group_id="g").committed(T0) == 5


def test_a_reader_of_committed_records_waits_for_offsets_that_a_transaction_commits(
    transactional, new_consumer
):
    transactional.begin_transaction()
    transactional.send_offsets_to_transaction({T0: OffsetAndMetadata(5, "", -1)}, "g")
    reader = new_consumer(group_id="g", isolation_level="read_committed")
    with pytest.raises(KafkaTimeoutError):
        reader.committed(T0, timeout_ms=300)
    waiting = threading.Timer(0.2, transactional.commit_transaction)
    waiting.start()
    assert reader.committed(T0, timeout_ms=100_000) == 5
    waiting.join()


def test_offsets_of_a_consumer_that_the_group_has_lost_abort_the_transaction(transactional):
    transactional.begin_transaction()
    gone = ConsumerGroupMetadata("g", 3, "gone", None)
    with pytest.raises(CommitFailedError):
        transactional.send_offsets_to_transaction({T0: OffsetAndMetadata(5, "", -1)}, gone)
    with pytest.raises(KafkaError, match="in an error state"):
        transactional.commit_transaction()
    transactional.abort_transaction()


@pytest.mark.parametrize(
    "group, error", [(5, TypeError), (ConsumerGroupMetadata("g", 3, "", None), ValueError)]
)
def test_invalid_groups(transactional, group, error):
    transactional.begin_transaction()
    with pytest.raises(error):
        transactional.send_offsets_to_transaction({}, group)


# -- exactly once -------------------------------------------------------------------------------

PROCESSOR = """
    import os, signal, sys
    from itertools import count
    from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
    from compat.kafka.structs import OffsetAndMetadata
    from dafka import Broker

    steps = count(1)

    def step():
        if next(steps) == int(sys.argv[2]):
            os.kill(os.getpid(), signal.SIGKILL)

    with Broker(sys.argv[1]) as broker:
        consumer = KafkaConsumer(
            "in", bootstrap_servers=broker.bootstrap_servers, group_id="g", enable_auto_commit=False,
            auto_offset_reset="earliest", isolation_level="read_committed", max_poll_records=7,
        )
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="processor")
        producer.init_transactions()
        while True:
            for partition, records in consumer.poll(1000).items():
                producer.begin_transaction()
                for record in records:
                    producer.send("out", b"done " + record.value, partition=partition.partition)
                    step()
                end = OffsetAndMetadata(records[-1].offset + 1, "", -1)
                producer.send_offsets_to_transaction({partition: end}, consumer.group_metadata())
                producer.commit_transaction()
                step()
"""


def test_each_record_is_processed_once_although_the_process_is_killed_again_and_again(tmp_path):
    count, kills = 300, 4
    with TestBroker(tmp_path) as broker:
        broker.create_topic("in", 2)
        broker.create_topic("out", 2)
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for number in range(count):
                producer.send("in", b"%d" % number, partition=number % 2)
    for attempt in range(kills):
        steps = 24 + 5 * attempt  # in the middle of a transaction, or at its end
        child = forking.Popen(
            [sys.executable, "-c", textwrap.dedent(PROCESSOR), str(tmp_path), str(steps)],
            env={"PYTHONPATH": ":".join(sys.path)},
        )
        assert child.wait(200) == -signal.SIGKILL
    # The rest without a kill, in this process.
    with TestBroker(tmp_path) as broker:
        assert broker.members("g") == []  # they ended with the process, and nobody waits for their sessions
        servers = broker.bootstrap_servers
        consumer = KafkaConsumer(
            "in",
            bootstrap_servers=servers,
            group_id="g",
            enable_auto_commit=False,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
        )
        producer = KafkaProducer(bootstrap_servers=servers, transactional_id="processor")
        producer.init_transactions()
        while sum(broker.lag("g", "in").values()):
            for partition, records in consumer.poll(2000).items():
                producer.begin_transaction()
                for record in records:
                    producer.send("out", b"done " + record.value, partition=partition.partition)
                end = OffsetAndMetadata(records[-1].offset + 1, "", -1)
                producer.send_offsets_to_transaction({partition: end}, consumer.group_metadata())
                producer.commit_transaction()
        producer.close()
        consumer.close()
        reader = PatientConsumer(
            "out",
            bootstrap_servers=servers,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            consumer_timeout_ms=500,
        )
        values = [record.value for record in reader]
        reader.close()
    assert sorted(values) == sorted(b"done %d" % number for number in range(count))
