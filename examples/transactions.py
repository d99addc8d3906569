"""Consume, transform, produce, each record exactly once: results and offsets are one transaction.

python examples/transactions.py
"""

from compat.kafka import KafkaConsumer, KafkaProducer
from compat.kafka.structs import OffsetAndMetadata
from dafka import Broker

with Broker() as broker:
    servers = {"bootstrap_servers": broker.bootstrap_servers}
    with KafkaProducer(**servers) as producer:
        for number in range(100):
            producer.send("numbers", b"%d" % number)

    reading = {**servers, "auto_offset_reset": "earliest", "isolation_level": "read_committed"}
    numbers = KafkaConsumer("numbers", group_id="squaring", enable_auto_commit=False, **reading)
    producer = KafkaProducer(transactional_id="squaring-1", **servers)
    producer.init_transactions()  # aborts what an earlier process with this id has left open
    done = 0
    while done < 100:
        polled = numbers.poll(timeout_ms=10_000)
        producer.begin_transaction()
        for record in (record for records in polled.values() for record in records):
            producer.send("squares", b"%d" % int(record.value) ** 2)
            done += 1
        ends = {partition: records[-1].offset + 1 for partition, records in polled.items()}
        producer.send_offsets_to_transaction(
            {partition: OffsetAndMetadata(end, "", -1) for partition, end in ends.items()},
            numbers.group_metadata(),
        )
        producer.commit_transaction()  # both are there, or neither

    squares = KafkaConsumer("squares", **reading)
    first = (next(squares) for _ in range(100))
    print("sum of the squares:", sum(int(record.value) for record in first))
