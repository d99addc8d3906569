"""Faults of InitProducerId and of share groups, and a broker that really restarts."""

from __future__ import annotations

import threading

import pytest
from kafka.structs import OffsetAndMetadata, TopicPartition

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.share import ShareConsumer
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.testing import Fault, chaos, wait_until
from dafka.testing.torture.kinds import ACKNOWLEDGE, ACQUIRE, INIT, KINDS


def kinds_of(operation):
    return [kind for kind, one in KINDS.items() if operation in one.operations and kind != "half_open"]


def producer(broker, **options):
    return KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5, **options)


def consumer(broker):
    return KafkaConsumer(
        "t",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="g",
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        retry_backoff_ms=5,
    )


# -- InitProducerId ---------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", kinds_of(INIT))
def test_a_transactional_producer_gets_its_id_whatever_happens(kind):
    fault = Fault("init tx", 1, kind)
    with chaos.plan([fault]) as broker, producer(broker, transactional_id="tx") as one:
        one.init_transactions()
        one.begin_transaction()
        one.send("t", b"a")
        one.commit_transaction()
        assert (broker.values("t"), broker.faults) == ([b"a"], [fault])


@pytest.mark.parametrize("kind", kinds_of(INIT))
def test_so_does_one_that_is_only_idempotent_and_no_coordinator_concerns_it(kind):
    fault = Fault("init idempotent", 1, kind)
    with chaos.plan([fault]) as broker, producer(broker) as one:
        one.send("t", b"a").get(100)
        met = [] if kind in ("not_coordinator", "loading") else [fault]
        assert (broker.values("t"), broker.faults) == ([b"a"], met)


def test_over_tcp_as_well():
    confluent_kafka = pytest.importorskip("confluent_kafka")
    plan = [Fault("init tx", 1, "lost_answer"), Fault("init tx", 2, "loading")]
    with chaos.plan(plan) as broker:
        one = confluent_kafka.Producer(
            {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "tx", "retry.backoff.ms": 5}
        )
        one.init_transactions(100)
        one.begin_transaction()
        one.produce("t", b"a")
        one.commit_transaction(100)
        assert (broker.values("t"), broker.faults) == ([b"a"], plan)


# -- share groups -----------------------------------------------------------------------------------


def share(broker, **options):
    change = ConfigChange("share.auto.offset.reset", 0, "earliest")
    connect(broker.bootstrap_servers, 60.0).call(
        "alter_configs", {Resource(ResourceType.GROUP, "s"): [change]}
    )
    return ShareConsumer("t", bootstrap_servers=broker.bootstrap_servers, group_id="s", **options)


@pytest.mark.parametrize(
    ("operation", "kind"), [(one, kind) for one in (ACQUIRE, ACKNOWLEDGE) for kind in kinds_of(one)]
)
def test_a_share_group_loses_no_record_whatever_happens(operation, kind):
    fault = Fault(f"{operation} s", 1, kind)
    with chaos.plan([fault]) as broker:
        broker.preload("t", [b"a", b"b"])
        one = share(broker)
        seen = set()

        def step():
            for records in one.poll(100).values():
                seen.update(record.value for record in records)
            offset = broker.share_offsets("s").get(TopicPartition("t", 0))
            return seen == {b"a", b"b"} and offset == 2

        wait_until(step, 100)
        assert broker.faults == [fault]
        one.close()


# -- a restart --------------------------------------------------------------------------------------


def test_a_restart_is_one_members_in_the_process_are_gone_and_what_was_stored_is_there():
    fault = Fault("produce t-0", 2, "restart")
    with chaos.plan([fault]) as broker, producer(broker) as one:
        reader = consumer(broker)
        one.send("t", b"a").get(100)
        wait_until(lambda: reader.poll(100))
        reader.commit()
        core, members = broker._state().core, broker.members("g")
        assert len(members) == 1
        one.send("t", b"b").get(100)
        assert broker._state().core is not core and broker.faults == [fault]
        assert members[0].member_id not in [member.member_id for member in broker.members("g")]
        assert broker.committed("g") == {("t", 0): 1} and broker.values("t") == [b"a", b"b"]
        (records,) = wait_until(lambda: reader.poll(100)).values()
        assert [record.value for record in records] == [b"b"]
        reader.close()


def test_clients_of_other_threads_notice_nothing_but_the_delay():
    plan = [Fault("produce t-0", call, "restart") for call in (3, 9, 15)]
    with chaos.plan(plan) as broker:
        broker.create_topic("t")
        broker.create_topic("u")
        failures = []

        def send(topic):
            try:
                with producer(broker) as one:
                    for number in range(20):
                        one.send(topic, b"%d" % number).get(100)
            except BaseException as error:
                failures.append(error)
                raise

        threads = [threading.Thread(target=send, args=topic) for topic in "tu"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures and broker.faults == plan
        for topic in "tu":
            assert broker.values(topic) == [b"%d" % number for number in range(20)]


def test_a_transaction_goes_on_behind_a_restart():
    with chaos.plan([Fault("produce t-0", 2, "restart")]) as broker:
        with producer(broker, transactional_id="tx") as one:
            one.init_transactions()
            one.begin_transaction()
            one.send("t", b"a").get(100)
            one.send("t", b"b").get(100)
            one.send_offsets_to_transaction({TopicPartition("t", 0): OffsetAndMetadata(1, "", -1)}, "g")
            one.commit_transaction()
        committed = broker._records(TopicPartition("t", 0), committed=True)
        assert [record.value for record in committed] == [b"a", b"b"]
        assert broker.committed("g") == {("t", 0): 1}


def test_clients_over_tcp_connect_again():
    aiokafka = pytest.importorskip("aiokafka")
    import asyncio

    async def send(servers):
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as one:
            for number in range(5):
                await one.send_and_wait("t", b"%d" % number)

    plan = [Fault("produce t-0", 2, "restart"), Fault("produce t-0", 4, "disconnect")]
    with chaos.plan(plan) as broker:
        address = broker.bootstrap_servers
        asyncio.run(send(address))
        assert broker.values("t") == [b"%d" % number for number in range(5)]
        assert (broker.bootstrap_servers, broker.faults) == (address, plan)


def test_the_tests_own_questions_wait_meanwhile():
    plan = [Fault("produce t-0", call, "restart") for call in range(2, 40, 2)]
    with chaos.plan(plan) as broker:
        address = broker.bootstrap_servers
        broker.create_topic("t")

        def send():
            with producer(broker) as one:
                for number in range(20):
                    one.send("t", b"%d" % number).get(100)

        sender = threading.Thread(target=send)
        sender.start()
        while sender.is_alive():
            assert broker.running and broker.bootstrap_servers == address
            assert broker.topics() == ["t"] and len(broker.values("t")) <= 20
            assert broker.groups() == []
            broker.clear_faults()
        sender.join()
        assert len(broker.values("t")) == 20 and len(broker.faults) >= 15
    assert not broker.running


def test_a_broker_that_has_restarted_is_stopped_and_its_folder_removed():
    with chaos.plan([Fault("produce t-0", 1, "restart")]) as broker:
        path = broker.path
        with producer(broker) as one:
            one.send("t", b"a").get(100)
        assert broker.path == path
    from os.path import exists

    assert not exists(path) and not broker.running
