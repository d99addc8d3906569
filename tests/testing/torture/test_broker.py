"""chaos(seed): the same program with the same seed meets the same faults."""

from __future__ import annotations

import os
import sys
import threading
import time

import pytest
from kafka.errors import KafkaError

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.testing import Fault, TestBroker, chaos, wait_until
from dafka.testing.torture.kinds import LEVELS

RECORDS = 8
RUNS = int(os.environ.get("DAFKA_TEST_SAME_RUNS", "2"))  # that are compared with a first one; long form: 100


def bill(broker: TestBroker) -> None:
    """A careful program: it commits what it has written, and reads again what it could not write."""
    servers = broker.bootstrap_servers
    with KafkaProducer(bootstrap_servers=servers, retry_backoff_ms=5) as producer:
        consumer = KafkaConsumer(
            "orders",
            bootstrap_servers=servers,
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            max_poll_records=1,
            retry_backoff_ms=5,
        )

        def step() -> bool:
            for records in consumer.poll(100).values():
                for record in records:
                    try:
                        producer.send("bills", key=record.value).get(60)
                        consumer.commit()
                    except KafkaError:
                        for partition in consumer.assignment():
                            consumer.seek(partition, record.offset)
            return sum(broker.committed("billing").values()) == RECORDS

        wait_until(step, 120)
        consumer.close()


def outcome(broker: chaos) -> tuple[list[Fault], list[object]]:
    with broker:
        broker.preload("orders", [b"%d" % number for number in range(RECORDS)])
        bill(broker)
        assert {record.key for record in broker.records("bills")} == {b"%d" % n for n in range(RECORDS)}
        calls = [
            (call.client, call.point, call.number, call.told, call.done, dict(call.offsets), call.fault)
            for call in broker.history
        ]
        return broker.faults, calls


@pytest.mark.parametrize("level", LEVELS)
def test_the_same_seed_gives_the_same_history(level):
    expected = outcome(chaos(5, level, rate=0.3))
    assert expected[0]
    for _ in range(RUNS):
        assert outcome(chaos(5, level, rate=0.3)) == expected


def test_threads_that_compete_change_nothing():
    idle = threading.Event()
    worker = threading.Thread(target=lambda: [None for _ in iter(idle.is_set, True)])
    expected = outcome(chaos(4, rate=0.2))
    interval = sys.getswitchinterval()
    worker.start()
    sys.setswitchinterval(interval / 20)  # more switches, and less waiting for each
    try:
        assert outcome(chaos(4, rate=0.2)) == expected
    finally:
        sys.setswitchinterval(interval)
        idle.set()
        worker.join()


def test_recorded_faults_are_a_plan_that_happens_again():
    faults, calls = outcome(chaos(8, rate=0.3))
    assert faults
    again = outcome(chaos.plan(faults))
    assert again == (faults, calls)
    assert outcome(chaos.plan(faults[:1]))[0] == faults[:1]


def test_seeds_differ():
    assert outcome(chaos(1, rate=0.3))[0] != outcome(chaos(2, rate=0.3))[0]


def test_the_tests_own_looking_and_filling_go_past_the_faults():
    with chaos(1, rate=1.0) as broker:
        broker.preload("t", [b"a"] * 10)
        assert broker.values("t") == [b"a"] * 10 and broker.topics() == ["t"]
        assert (broker.faults, broker.history) == ([], [])


def test_faults_that_a_test_orders_are_there_as_well():
    with chaos.plan([]) as broker, KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        from kafka.errors import MessageSizeTooLargeError

        broker.fail_next_produce(MessageSizeTooLargeError)
        with pytest.raises(MessageSizeTooLargeError):
            producer.send("t", b"a").get(100)


def test_it_says_what_it_is():
    broker = chaos(7, "network")
    assert repr(broker).startswith("<chaos(7, level='network'), ")
    with pytest.raises(ValueError, match="level"):
        chaos(1, "some")


def test_a_broker_without_tests_goes_by_the_systems_time_and_nothing_around_it():
    with Broker() as broker:
        core = broker._state().core
        assert core.time is time.time and core._groups._groups.clock is time.monotonic
        assert core.for_client("a") is core


def test_a_broker_without_chaos_has_nothing_of_it_in_its_way():
    with TestBroker() as broker:
        state = broker._state()
        assert state.core is broker._faulty and type(state.listener).__name__ == "Listener"
        assert (
            state.core.for_client("a") is state.core and state.core.inner.for_client("a") is state.core.inner
        )
