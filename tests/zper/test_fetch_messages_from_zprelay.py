"""README, "Fetch messages from ZPRelay": DEALER and PULL sockets that say nothing but their identity."""

from __future__ import annotations

import pytest
import zmq
from timing import until
from zper.clients import identity, write

from compat.kafka import KafkaProducer
from dafka.testing import TestBroker
from dafka.zper import ZperOptions


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=5)) as broker:
        yield broker


@pytest.fixture(params=[zmq.DEALER, zmq.PULL], ids=["DEALER", "PULL"])
def kind(request):
    return request.param


def relayed(clients, broker, kind, topic="events", **options):
    """A client of the relay that is known to it."""
    before = broker.metrics()["zper_streams"]
    sock = clients.connect(kind, broker.zper.relay_address, identity(topic), **options)
    until(lambda: broker.metrics()["zper_streams"] > before)
    return sock


def test_a_client_that_connects_gets_new_messages_without_a_word(broker, clients, kind):
    write(clients, broker, "events", [b"old"])
    sock = relayed(clients, broker, kind)
    assert not sock.poll(50)
    messages = [[b"hello"], [b"id", b"body"], [b"a", b"", b"c"], [b""]]
    write(clients, broker, "events", *messages)
    assert [sock.recv_multipart() for _ in messages] == messages


def test_each_client_begins_at_the_end_as_it_is_when_it_connects(broker, clients, kind):
    first = relayed(clients, broker, kind)
    write(clients, broker, "events", [b"1"])
    assert first.recv() == b"1"
    second = relayed(clients, broker, kind)
    write(clients, broker, "events", [b"2"])
    assert first.recv() == second.recv() == b"2"


def test_topics_are_kept_apart(broker, clients, kind):
    one, other = relayed(clients, broker, kind, "one"), relayed(clients, broker, kind, "other")
    write(clients, broker, "one", [b"1"])
    write(clients, broker, "other", [b"2"])
    assert (one.recv(), other.recv()) == (b"1", b"2")
    assert not one.poll(20) and not other.poll(20)


def test_a_client_may_come_before_the_topic(broker, clients, kind):
    sock = relayed(clients, broker, kind)
    assert broker.topics() == []
    write(clients, broker, "events", [b"first"])
    assert sock.recv() == b"first"


def test_after_a_restart_a_client_goes_on_from_the_end_as_it_was_then(tmp_path, clients, kind):
    broker = TestBroker(tmp_path, zper=ZperOptions(flush_interval=5))
    with broker:
        sock = relayed(clients, broker, kind)
        write(clients, broker, "events", [b"1"])
        assert sock.recv() == b"1"
    with broker:
        until(lambda: broker.metrics()["zper_streams"] == 1)  # it has reconnected by itself
        write(clients, broker, "events", [b"2"])
        assert sock.recv() == b"2"


def test_a_client_follows_its_topic_when_it_is_deleted_and_created_again(broker, clients, kind):
    write(clients, broker, "events", [b"old"], [b"old"])
    sock = relayed(clients, broker, kind)
    broker._within(lambda core: core.delete_topics(["events"]))
    write(clients, broker, "events", [b"new"])
    assert sock.recv() == b"new"


def test_a_client_waits_while_its_topic_is_a_compacted_one(broker, clients, kind):
    write(clients, broker, "events", [b"old"], [b"old"])
    sock = relayed(clients, broker, kind)
    broker._within(lambda core: core.delete_topics(["events"]))
    broker.create_topic("events", configs={"cleanup.policy": "compact"})
    assert not sock.poll(300)
    broker._within(lambda core: core.delete_topics(["events"]))
    streams = broker.metrics()["zper_streams"]
    assert streams == 1 and not broker.discarded.get("zper-stream") and not broker.discarded.get("stream")
    broker.create_topic("events")
    until(lambda: _receives(clients, broker, sock))


def _receives(clients, broker, sock):
    write(clients, broker, "events", [b"new"])
    return bool(sock.poll(100)) and sock.recv() == b"new"


def test_a_client_that_retention_overtakes_goes_on_with_what_is_there(broker, clients):
    broker.create_topic("events")
    sock = relayed(clients, broker, zmq.PULL, RCVHWM=1, RCVBUF=4096)
    writer = clients.push(broker.zper.writer_address, "events")
    for number in range(1500):
        writer.send(b"%06d" % number * 2000)
    broker.wait_for_records("events", 1500)
    broker._within(lambda core: core.delete_records({("events", 0): 1400}))
    got = []
    while not got or got[-1] < 1499:
        got.append(int(sock.recv()[:6]))
    assert got == sorted(set(got)) and got[0] == 0 and 1400 in got
    assert len(got) < 1500


def test_messages_of_a_client_are_ignored(broker, clients):
    sock = relayed(clients, broker, zmq.DEALER)
    sock.send_multipart([b"FETCH", b"x"])
    write(clients, broker, "events", [b"a"])
    assert sock.recv() == b"a"


def test_a_client_with_an_unreadable_identity_gets_nothing_and_is_counted(broker, clients, kind):
    sock = clients.connect(kind, broker.zper.relay_address, b"me")
    until(lambda: broker.discarded.get("zper-identity") == 1)
    assert not sock.poll(20)


def test_records_of_kafka_and_of_a_transaction_are_relayed_when_they_are_committed(broker, clients, kind):
    sock = relayed(clients, broker, kind)
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for commit in (False, True):
            producer.begin_transaction()
            producer.send("events", key=b"k", value=b"%d" % commit).get(timeout=100)
            assert not sock.poll(20)
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    assert sock.recv_multipart() == [b"k", b"1"]
    assert not sock.poll(20)


def test_a_socket_that_cannot_receive_is_counted(broker, clients):
    sock = clients.connect(zmq.PUSH, broker.zper.relay_address, identity("events"))
    until(lambda: broker.discarded.get("zper-socket-type") == 1)
    assert broker.metrics()["zper_streams"] == 0
    sock.close()
