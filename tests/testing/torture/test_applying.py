"""What each fault does to clients in this process, and that it does what it says and nothing else."""

from __future__ import annotations

import pytest
from kafka.errors import CommitFailedError, NetworkExceptionError, TopicAuthorizationFailedError
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.testing import Fault, chaos, wait_until
from dafka.testing.torture.applying import NOT_WRITTEN, WRITTEN
from dafka.testing.torture.coordinated import OF_COORDINATOR
from dafka.testing.torture.deciding import BEFORE, BEHIND
from dafka.testing.torture.kinds import KINDS

T0 = TopicPartition("t", 0)


def producer(broker, **options):
    return KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5, **options)


def consumer(broker, **options):
    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False, "group_id": "g", **options}
    return KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5, **options)


def read(one, count):
    records = []
    wait_until(lambda: [records.extend(some) for some in one.poll(100).values()] and len(records) >= count)
    return [record.value for record in records]


def produce_kinds(test):
    return [kind for kind, one in KINDS.items() if "produce" in one.operations and test(kind)]


@pytest.mark.parametrize("kind", produce_kinds(lambda kind: KINDS[kind].level != "everything"))
def test_an_idempotent_producer_writes_once_whatever_happens(kind):
    fault = Fault("produce t-0", 1, kind)
    with chaos.plan([fault]) as broker, producer(broker) as one:
        assert one.send("t", b"a").get(100).offset == 0
        assert (broker.values("t"), broker.faults) == ([b"a"], [fault])


@pytest.mark.parametrize("kind", produce_kinds(lambda kind: kind != "slow_answer"))
def test_without_retries_the_program_hears_of_it_and_it_is_written_or_not(kind):
    with (
        chaos.plan([Fault("produce t-0", 1, kind)]) as broker,
        producer(broker, retries=0, acks="all", enable_idempotence=False) as one,
    ):
        error = {**NOT_WRITTEN, **WRITTEN}.get(kind, NetworkExceptionError)
        with pytest.raises(error):
            one.send("t", b"a").get(100)
        written = kind in BEHIND or kind in WRITTEN
        assert broker.values("t") == ([b"a"] if written else [])
        assert [call.done for call in broker.history] == [written]


@pytest.mark.parametrize("kind", ["lost_answer", "timed_out"])
def test_a_producer_that_is_not_idempotent_writes_twice(kind):
    with (
        chaos.plan([Fault("produce t-0", 1, kind)]) as broker,
        producer(broker, acks="all", enable_idempotence=False) as one,
    ):
        one.send("t", b"a").get(100)
        assert broker.values("t") == [b"a", b"a"]


def test_errors_that_may_not_be_retried_fail_the_future():
    with chaos.plan([Fault("produce t-0", 2, "denied")]) as broker, producer(broker) as one:
        one.send("t", b"a").get(100)
        with pytest.raises(TopicAuthorizationFailedError):
            one.send("t", b"b").get(100)
        one.send("t", b"c").get(100)
        assert broker.values("t") == [b"a", b"c"]


def test_replicas_do_not_concern_producers_that_do_not_wait_for_them():
    plan = [Fault("produce t-0", 1, "timed_out"), Fault("produce t-0", 2, "not_enough_replicas")]
    with chaos.plan(plan) as broker, producer(broker, acks=1, enable_idempotence=False, retries=0) as one:
        for value in (b"a", b"b"):
            one.send("t", value).get(100)
        assert (broker.values("t"), broker.faults) == ([b"a", b"b"], [])


def test_with_acks_0_a_lost_request_is_a_lost_record():
    plan = [Fault("produce t-0", 1, "lost_request"), Fault("produce t-0", 2, "full_disk")]
    with chaos.plan(plan) as broker, producer(broker, acks=0, enable_idempotence=False) as one:
        for value in (b"a", b"b"):
            one.send("t", value).get(100)
        broker.wait_for_records("t")
        assert (broker.values("t"), broker.faults) == ([b"b"], plan[:1])


def test_other_partitions_are_not_concerned():
    with chaos.plan([Fault("produce t-1", 1, "denied")]) as broker, producer(broker) as one:
        broker.create_topic("t", 2)
        good, bad = one.send("t", b"a", partition=0), one.send("t", b"b", partition=1)
        assert good.get(100).offset == 0
        with pytest.raises(TopicAuthorizationFailedError):
            bad.get(100)


@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if "fetch" in one.operations])
def test_a_consumer_reads_everything_whatever_happens_to_its_fetches(kind):
    fault = Fault("fetch t-0", 1, kind)
    with chaos.plan([fault]) as broker:
        broker.preload("t", [b"a", b"b"])
        one = consumer(broker)
        assert read(one, 2) == [b"a", b"b"]
        one.close()
        assert broker.faults == [fault]


@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if "commit" in one.operations])
def test_a_commit_is_done_or_repeated_or_fails_because_the_member_has_left(kind):
    fault = Fault("commit g", 1, kind)
    with chaos.plan([fault]) as broker:
        broker.preload("t", [b"a", b"b"])
        one = consumer(broker)
        read(one, 2)
        if kind in ("evict", "restart"):  # members in the broker's own process are not kept
            with pytest.raises(CommitFailedError):
                one.commit()
            assert broker.committed("g") == {}
            assert read(one, 2) == [b"a", b"b"]
        one.commit()
        assert (broker.committed("g"), broker.faults) == ({T0: 2}, [fault])
        calls = [(call.told, call.done) for call in broker.history if call.operation == "commit"]
        if kind == "restart":
            assert calls[0] == ("nothing", False) and calls[-1] == ("ok", True)
        elif kind in BEFORE:
            assert calls == [("nothing", False), ("ok", True)]
        elif kind in BEHIND:
            assert calls == [("nothing", True), ("ok", True)]
        elif kind in OF_COORDINATOR:
            assert calls == [(OF_COORDINATOR[kind].__name__, False), ("ok", True)]
        one.close()


def test_a_consumer_without_a_membership_cannot_be_taken_out():
    with chaos.plan([Fault("commit g", 1, "evict")]) as broker:
        broker.preload("t", [b"a"])
        one = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id="g")
        one.assign([T0])
        one.commit({T0: OffsetAndMetadata(1, "", -1)})
        assert (broker.committed("g"), broker.faults) == ({T0: 1}, [])
        one.close()


@pytest.mark.parametrize("operation", ["join", "sync"])
@pytest.mark.parametrize("kind", ["lost_request", "not_coordinator", "loading", "slow_answer", "refused"])
def test_joining_goes_on_until_it_succeeds(operation, kind):
    fault = Fault(f"{operation} g", 2 if operation == "join" else 1, kind)
    with chaos.plan([fault]) as broker:
        broker.preload("t", [b"a"])
        one = consumer(broker)
        assert read(one, 1) == [b"a"]
        one.close()
        assert broker.faults == [fault]


@pytest.mark.parametrize("call", [1, 2])
@pytest.mark.parametrize("kind", [kind for kind, one in KINDS.items() if "transaction" in one.operations])
def test_a_transaction_commits_offsets_and_records_once(call, kind):
    fault = Fault("transaction tx", call, kind)
    with chaos.plan([fault]) as broker, producer(broker, transactional_id="tx") as one:
        broker.create_topic("t")
        one.init_transactions()
        one.begin_transaction()
        one.send("out", b"a")
        one.send_offsets_to_transaction({T0: OffsetAndMetadata(1, "", -1)}, "g")
        one.commit_transaction()
        assert (broker.committed("g"), broker.values("out"), broker.faults) == ({T0: 1}, [b"a"], [fault])


def test_calm_ends_all_faults():
    with chaos(1, rate=1.0) as broker, producer(broker, retries=0, enable_idempotence=False) as one:
        broker.calm()
        for _ in range(20):
            one.send("t", b"a").get(100)
        assert broker.faults == []
