"""The fixtures' brokers under other Kafka clients, in programs that read the address from the environment."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time

import pytest

from dafka.testing import TestBroker

ADDRESS = "KAFKA_BOOTSTRAP_SERVERS"


@pytest.fixture(autouse=True)
def address(dafka_broker: TestBroker, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv(ADDRESS, dafka_broker.bootstrap_servers)
    return dafka_broker.bootstrap_servers


def test_kafka_python_as_it_is(dafka_broker: TestBroker) -> None:
    from kafka import KafkaConsumer, KafkaProducer

    with KafkaProducer(bootstrap_servers=os.environ[ADDRESS]) as producer:
        producer.send("orders", b"one book").get(timeout=100)
    consumer = KafkaConsumer(
        "orders", bootstrap_servers=os.environ[ADDRESS], group_id="billing", auto_offset_reset="earliest"
    )
    assert next(consumer).value == b"one book"
    consumer.close()  # which commits
    dafka_broker.wait_for_lag("billing")


def test_aiokafka(dafka_broker: TestBroker) -> None:
    aiokafka = pytest.importorskip("aiokafka")

    async def bill_orders() -> None:
        address = os.environ[ADDRESS]
        consumer = aiokafka.AIOKafkaConsumer(
            "orders", bootstrap_servers=address, group_id="billing", auto_offset_reset="earliest"
        )
        async with aiokafka.AIOKafkaProducer(bootstrap_servers=address) as producer, consumer:
            async for order in consumer:
                await producer.send_and_wait("bills", b"bill for " + order.value)
                await consumer.commit()

    async def test() -> None:
        dafka_broker.preload("orders", ["one book"])
        billing = asyncio.create_task(bill_orders())
        bills = await dafka_broker.async_wait_for_records("bills", timeout=200)
        assert [bill.value for bill in bills] == [b"bill for one book"]
        await dafka_broker.async_wait_for_lag("billing", timeout=200)
        assert len(await dafka_broker.async_wait_for_members("billing")) == 1
        billing.cancel()
        await asyncio.wait([billing])
        await dafka_broker.async_wait_for_members("billing", 0, timeout=200)

    asyncio.run(test())


def test_confluent_kafka(dafka_broker: TestBroker) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")
    producer = confluent_kafka.Producer({"bootstrap.servers": os.environ[ADDRESS]})
    producer.produce("orders", b"one book")
    producer.flush(100)
    assert dafka_broker.values("orders") == [b"one book"]
    settings = {"group.id": "billing", "auto.offset.reset": "earliest"}
    consumer = confluent_kafka.Consumer({"bootstrap.servers": os.environ[ADDRESS], **settings})
    consumer.subscribe(["orders"])
    message = consumer.poll(100)
    assert (message.error(), message.value()) == (None, b"one book")
    consumer.close()
    dafka_broker.wait_for_lag("billing")


def test_faststream(dafka_broker: TestBroker) -> None:
    pytest.importorskip("faststream", reason="FastStream is not installed: pip install 'faststream[kafka]'")
    from faststream.kafka import KafkaBroker

    broker = KafkaBroker(os.environ[ADDRESS])

    @broker.subscriber("orders", group_id="billing", auto_offset_reset="earliest")
    @broker.publisher("bills")
    async def bill(order: str) -> str:
        return f"bill for {order}"

    async def test() -> None:
        dafka_broker.create_topic("orders")
        async with broker:
            await broker.start()
            await broker.publish("one book", "orders")
            bills = await dafka_broker.async_wait_for_records("bills", timeout=200)
        assert [one.value for one in bills] == [b"bill for one book"]

    asyncio.run(test())


def test_a_program_in_a_process_of_its_own(dafka_broker: TestBroker) -> None:
    program = (
        "import os; from kafka import KafkaProducer\n"
        f"with KafkaProducer(bootstrap_servers=os.environ[{ADDRESS!r}]) as producer:\n"
        "    producer.send('orders', b'one book').get(timeout=200)\n"
    )
    subprocess.run([sys.executable, "-W", "ignore", "-c", program], check=True, timeout=200)
    assert dafka_broker.values("orders") == [b"one book"]


def test_faults_are_for_clients_over_tcp_too(dafka_broker: TestBroker) -> None:
    from kafka import KafkaProducer
    from kafka.errors import TopicAuthorizationFailedError

    dafka_broker.create_topic("orders")
    dafka_broker.fail_next_produce(TopicAuthorizationFailedError)
    with KafkaProducer(bootstrap_servers=os.environ[ADDRESS], enable_idempotence=False) as producer:
        with pytest.raises(TopicAuthorizationFailedError):
            producer.send("orders", b"one").get(timeout=100)
        producer.send("orders", b"two").get(timeout=100)
    assert dafka_broker.values("orders") == [b"two"]


def test_the_broker_of_the_session_listens_too(dafka_broker_session: TestBroker) -> None:
    from kafka import KafkaAdminClient

    admin = KafkaAdminClient(bootstrap_servers=dafka_broker_session.bootstrap_servers)
    assert isinstance(admin.list_topics(), list)
    admin.close()


def test_one_that_is_not_to_listen_says_so(dafka_broker: TestBroker) -> None:
    with TestBroker(listen=None) as broker:
        assert broker._running is not None
        assert broker._running.listener is None


def test_listening_costs_next_to_nothing() -> None:
    def started(listen: str | None) -> float:
        began = time.perf_counter()
        with TestBroker(listen=listen):
            return time.perf_counter() - began

    def costs() -> float:
        pairs = [(started(None), started("127.0.0.1:0")) for _ in range(30)]
        quiet, listening = (min(times) for times in zip(*pairs, strict=True))
        return listening - quiet

    started(None), started("127.0.0.1:0")
    assert any(costs() < 0.005 for _ in range(4))  # a cost is there each time


def test_serializers_of_confluent_kafka_with_its_registry_for_tests(dafka_broker: TestBroker) -> None:
    """Those of JSON, with two versions of a schema; Avro is in the document of dafka.testing."""
    pytest.importorskip("confluent_kafka.schema_registry", exc_type=ImportError)
    serializers = pytest.importorskip("confluent_kafka.schema_registry.json_schema", exc_type=ImportError)
    from confluent_kafka import DeserializingConsumer, SerializingProducer
    from confluent_kafka.schema_registry import SchemaRegistryClient

    registry = SchemaRegistryClient.new_client({"url": "mock://"})
    book = {"book": {"type": "string"}}
    for properties in (book, {**book, "count": {"type": "integer"}}):
        schema = json.dumps({"title": "Order", "type": "object", "properties": properties})
        serializer = serializers.JSONSerializer(schema, registry)
        producer = SerializingProducer(
            {"bootstrap.servers": os.environ[ADDRESS], "value.serializer": serializer}
        )
        producer.produce("orders", value={"book": "one", "count": 2})
        assert producer.flush(100) == 0
    assert sorted(registry.get_versions("orders-value")) == [1, 2]
    framed = dafka_broker.values("orders")
    assert [value[0] for value in framed if value is not None] == [0, 0]

    consumer = DeserializingConsumer(
        {
            "bootstrap.servers": os.environ[ADDRESS],
            "group.id": "billing",
            "auto.offset.reset": "earliest",
            "value.deserializer": serializers.JSONDeserializer(None, schema_registry_client=registry),
        }
    )
    consumer.subscribe(["orders"])
    orders = [consumer.poll(100) for _ in range(2)]
    consumer.close()
    assert [order.value() for order in orders if order is not None] == [{"book": "one", "count": 2}] * 2
