"""The events of a Zeek node as records of a topic, and an answer to it as an event.

    python examples/zeek_events.py

The endpoint ``sensor`` stands for Zeek: with a real one it is --peer HOST:9999 --tls of `dafka bridge`.
"""

import json

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.overlay import Bridge, Endpoint, Event, ToKafka, ToOverlay

RULES = [
    ToKafka("/zeek/event/", "zeek.{name}", key="{value[args][0]}"),  # zeek.login, by the first argument
    ToOverlay("verdicts", "/zeek/verdict/{key}"),  # an object {"event": ..., "args": [...]} is that event
]

if __name__ == "__main__":
    with (
        Broker() as broker,
        Endpoint(listen="127.0.0.1:0") as node,
        Bridge(node, broker.bootstrap_servers, rules=RULES),
        Endpoint() as sensor,
    ):
        verdicts = sensor.subscribe("/zeek/verdict/")
        sensor.peer(node.address)
        for attempt in range(3):
            sensor.publish("/zeek/event/login", Event("login", ("10.0.0.7", "root", attempt)))
        logins = KafkaConsumer(
            "zeek.login", bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        for _, record in zip(range(3), logins, strict=False):
            print(record.key, record.value)
        verdict = {"event": "block", "args": ["10.0.0.7"]}
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("verdicts", json.dumps(verdict).encode(), key=b"10.0.0.7").get()
        message = verdicts.get(timeout=100)
        print(message.topic, message.value[2])
