"""broker.clock: hours or weeks pass at once."""

from __future__ import annotations

import gc
import time
import weakref

import pytest
from kafka.errors import KafkaError

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.share import ShareConsumer
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, Resource, ResourceType
from dafka.testing import TestBroker, chaos, wait_until

HOUR_MS = 3600 * 1000


@pytest.fixture
def broker():
    with TestBroker() as one:
        yield one


def consumer(broker, **options):
    options = {"group_id": "g", "auto_offset_reset": "earliest", "enable_auto_commit": False, **options}
    return KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers, **options)


def test_retention_deletes_what_is_old_by_then_and_keeps_what_came_since(broker):
    broker.create_topic("t", configs={"retention.ms": str(24 * HOUR_MS)})
    broker.preload("t", [b"old"])
    broker.clock.advance(hours=23)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("t", b"new").get(100)  # its timestamp is the broker's time
    assert broker.values("t") == [b"old", b"new"]
    broker.clock.advance(hours=2)
    assert broker.values("t") == [b"new"]
    broker.preload("t", [b"newest"])
    broker.clock.advance(hours=23)
    assert broker.values("t") == [b"newest"]


def test_the_broker_stamps_records_with_its_time(broker):
    broker.create_topic("t", configs={"message.timestamp.type": "LogAppendTime"})
    broker.clock.advance(days=2)
    broker.preload("t", [b"a"])
    ahead = broker.records("t")[0].timestamp / 1000 - time.time()
    assert 2 * 86400 - 100 < ahead <= 2 * 86400 + 1


def test_tombstones_go_when_their_time_is_over(broker):
    settings = {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"}
    broker.create_topic("t", configs={**settings, "delete.retention.ms": str(HOUR_MS)})
    for record in [("a", b"1"), {"key": b"a", "value": None}, ("b", b"2")]:
        broker.preload("t", [record])
    broker.clock.advance(minutes=1)
    assert {record.key for record in broker.records("t")} == {b"a", b"b"}
    broker.clock.advance(hours=2)
    assert {record.key for record in broker.records("t")} == {b"b"}


def test_members_that_were_silent_for_their_session_are_out_and_join_again(broker):
    broker.preload("t", [b"a"])
    one = consumer(broker, session_timeout_ms=30_000, heartbeat_interval_ms=10_000)
    wait_until(lambda: one.poll(100))
    generation = broker.members("g")
    assert generation
    broker.clock.advance(seconds=15)
    assert broker.members("g") == generation
    broker.clock.advance(seconds=31)
    assert broker.members("g") == [] and broker.group_state("g") == "Empty"
    with pytest.raises(KafkaError):
        one.commit()
    assert wait_until(lambda: one.poll(100))  # again: it was not committed
    one.close()


def test_a_transaction_that_takes_too_long_is_aborted(broker):
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers, transactional_id="tx", transaction_timeout_ms=60_000
    ) as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("t", b"a").get(100)
        reader = consumer(broker, isolation_level="read_committed")
        broker.clock.advance(seconds=30)
        broker.preload("t", [b"behind"])
        assert not reader.poll(20)
        broker.clock.advance(seconds=31)
        (records,) = wait_until(lambda: reader.poll(100)).values()
        assert [record.value for record in records] == [b"behind"]
        reader.close()
        with pytest.raises(KafkaError):
            producer.commit_transaction()


def test_the_offsets_of_a_group_that_is_gone_expire(broker):
    broker.preload("t", [b"a"])
    one = consumer(broker)
    wait_until(lambda: one.poll(100))
    one.commit()
    one.close()
    broker.clock.advance(days=6)
    assert broker.committed("g") == {("t", 0): 1}
    broker.clock.advance(days=2)
    assert broker.committed("g") == {}


def test_a_record_that_nobody_acknowledges_is_for_another_member_of_a_share_group(broker):
    broker.preload("t", [b"a"])
    change = ConfigChange("share.auto.offset.reset", 0, "earliest")
    connect(broker.bootstrap_servers, 60.0).call(
        "alter_configs", {Resource(ResourceType.GROUP, "s"): [change]}
    )
    options = {"bootstrap_servers": broker.bootstrap_servers, "group_id": "s"}
    first, second = (
        ShareConsumer("t", share_acknowledgement_mode="explicit", **options),
        ShareConsumer("t", **options),
    )
    wait_until(lambda: first.poll(100))
    broker.clock.advance(seconds=15)  # a record is kept for a member for 30 s
    assert not second.poll(20)
    broker.clock.advance(seconds=31)
    (records,) = wait_until(lambda: second.poll(100)).values()
    assert [record.value for record in records] == [b"a"]
    first.close()
    second.close()


def test_a_broker_that_starts_again_goes_on_with_its_clock_and_one_that_is_stopped_can_be_set(tmp_path):
    broker = TestBroker(tmp_path / "data", retention_ms=HOUR_MS)
    broker.clock.advance(hours=5)
    with broker:
        broker.preload("t", [b"a"])
    broker.clock.advance(hours=2)
    with broker:
        wait_until(lambda: broker.values("t") == [])
        assert broker.clock.ahead == 7 * 3600
        assert repr(broker.clock) == "<clock, 25200 s ahead>"


def test_chaos_has_it_as_well():
    with chaos(3, retention_ms=HOUR_MS) as broker:
        broker.preload("t", [b"a"])
        broker.clock.advance(hours=2)
        assert broker.values("t") == []


@pytest.mark.parametrize("seconds", [-1, float("nan"), 1e12])
def test_a_time_that_cannot_be_is_refused(broker, seconds):
    with pytest.raises(ValueError, match="a clock is set forward"):
        broker.clock.advance(seconds)
    broker.clock.advance(days=3000)
    with pytest.raises(ValueError, match="ten years"):
        broker.clock.advance(days=3000)
    assert broker.clock.ahead == 3000 * 86400


def test_another_broker_keeps_its_own_time(broker):
    broker.clock.advance(days=1)
    with TestBroker() as other:
        assert other.clock.ahead == 0
        assert broker.clock.time() - other.clock.time() > 86000


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # that it was not stopped
def test_a_clock_does_not_keep_a_broker_that_nobody_has_any_more():
    broker = TestBroker().start()
    clock, known = broker.clock, weakref.ref(broker)
    del broker
    wait_until(lambda: gc.collect() is not None and known() is None)
    clock.advance(hours=1)
