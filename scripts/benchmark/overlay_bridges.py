"""Bridges: events of the overlay into a topic, and a topic at another site; one process for each end."""

from __future__ import annotations

import tempfile
from multiprocessing.connection import Connection
from time import perf_counter

from overlay_links import TOPIC, WAIT, event
from processes import Figures

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka import Broker
from dafka.overlay import Bridge, Endpoint, ToKafka

EVENTS = 50_000
RECORDS = 200_000
RECORD = bytes(100)


def publish_events(link: Connection) -> Figures:
    """A sensor, as fast as a thread can."""
    with Endpoint(peers=[link.recv()]) as endpoint:
        link.send(str(endpoint.id))
        link.recv()
        for number in range(EVENTS):
            endpoint.publish(TOPIC, event(number))
        link.recv()
    return ()


def write_events(link: Connection) -> Figures:
    """Events a second that a bridge writes to a broker of its process, until a consumer has the last one."""
    rules = [ToKafka("/zeek/", "zeek.{name}")]
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder) as broker,
        Endpoint("127.0.0.1:0") as endpoint,
        Bridge(endpoint, broker.bootstrap_servers, rules=rules),
    ):
        link.send(endpoint.address)
        assert endpoint.await_peer(link.recv(), timeout=WAIT)
        link.send("go")
        began = perf_counter()
        _consume(broker.bootstrap_servers, "zeek.ping", EVENTS)
        ended = perf_counter()
        link.send("done")
    return (EVENTS / (ended - began),)


def share_records(link: Connection) -> Figures:
    """A site with a topic."""
    with (
        tempfile.TemporaryDirectory() as folder,
        Broker(folder) as broker,
        Endpoint("127.0.0.1:0") as endpoint,
    ):
        with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
            for _ in range(RECORDS):
                producer.send("bench", RECORD)
        with Bridge(endpoint, broker.bootstrap_servers, site="here", share=["bench"]):
            link.send(endpoint.address)
            link.recv()
    return ()


def take_records(link: Connection) -> Figures:
    """Records a second that come to another site, until a consumer there has the last one."""
    address = link.recv()
    with tempfile.TemporaryDirectory() as folder, Broker(folder) as broker:
        with Endpoint(peers=[address]) as endpoint:
            began = perf_counter()
            with Bridge(endpoint, broker.bootstrap_servers, site="there"):
                _consume(broker.bootstrap_servers, "here.bench", RECORDS)
                ended = perf_counter()
        link.send("done")
    return (RECORDS / (ended - began),)


def _consume(broker: str, topic: str, count: int) -> None:
    consumer = KafkaConsumer(topic, bootstrap_servers=broker, auto_offset_reset="earliest", group_id=None)
    try:
        while count > 0:
            count -= sum(map(len, consumer.poll(100).values()))
    finally:
        consumer.close()
