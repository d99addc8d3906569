"""The swap: a program for kafka-python whose broker is in its own process. Only the import was changed.

DAFKA_EMBEDDED=./data python examples/swap.py       # data in that folder; again: five records more
python examples/swap.py HOST:PORT                   # the same on Apache Kafka, or a broker that listens
"""

import sys

from compat.kafka import KafkaConsumer, KafkaProducer  # was: from kafka import ...

SERVERS = sys.argv[1] if len(sys.argv) > 1 else "localhost:9092"

with KafkaProducer(bootstrap_servers=SERVERS) as producer:
    for number, airline in enumerate([b"UA", b"AA", b"UA", b"B6", b"AA"]):
        producer.send("flights", key=airline, value=b'{"delay": %d}' % number)

consumer = KafkaConsumer(
    "flights",
    bootstrap_servers=SERVERS,
    auto_offset_reset="earliest",
    consumer_timeout_ms=3000,  # without it the loop waits for more records
)
for record in consumer:
    print(record.partition, record.offset, record.key, record.value)
