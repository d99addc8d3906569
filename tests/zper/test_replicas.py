"""``writer.replica.N``: messages go to other ZPWriters, in order, and copying goes on where it was."""

from __future__ import annotations

import time

import gevent
import pytest
import zmq
from ports import LOOPBACK, free_port
from timing import until
from zper.clients import Clients, fetch, raw, write
from zper.servers import Server

from compat.kafka import KafkaProducer
from dafka.broker.interface.broker import TopicSpec
from dafka.protocol.raw import decode_messages
from dafka.testing import TestBroker
from dafka.zper import ZperOptions, limits


def free_address():
    """Where nobody else listens, now or later."""
    return f"tcp://{LOOPBACK}:{free_port()}"


def node(path=None, *replicas, sync=0, **options):
    options = {"flush_interval": 5, **options}
    return TestBroker(path, zper=ZperOptions(writer_replica=replicas, writer_replica_sync=sync, **options))


@pytest.fixture
def target():
    with node() as target:
        yield target


@pytest.fixture
def source(target):
    with node(None, target.zper.writer_address) as source:
        yield source


MESSAGES = [[b"hello"], [b"id", b"body"], [b"a", b"", b"c" * 300], [b""], [b"x" * 255]]


def octets(broker, topic="events"):
    """A topic in RAW form."""
    with Clients() as clients:
        reader = clients.dealer(broker.zper.reader_address, topic)
        position, found = 0, b""
        while frame := fetch(reader, position, 10**7)[1]:
            found += frame
            position += len(frame)
        return found


def lag(broker):
    return sum(broker.zper.metrics()["zper_replica_lag"].values())


def test_messages_go_to_the_replica_as_they_are_and_in_order(source, target, clients):
    messages = [*MESSAGES, *([b"%d" % number] for number in range(3000))]
    write(clients, source, "events", *messages)
    target.wait_for_records("events", len(messages))
    assert octets(target) == octets(source) == b"".join(raw(*message) for message in messages)
    until(lambda: lag(source) == 0)


def test_a_message_with_an_empty_first_frame_is_not_taken_for_one_with_a_delimiter(source, target, clients):
    write(clients, source, "events", [b"", b"", b"a"])  # the first one is the delimiter
    target.wait_for_records("events", 1)
    assert octets(target) == octets(source) == raw(b"", b"a")


def test_committed_records_of_kafka_clients_go_to_the_replica_too(source, target, clients):
    write(clients, source, "events", [b"1"])
    with KafkaProducer(bootstrap_servers=source.bootstrap_servers, transactional_id="t") as producer:
        producer.init_transactions()
        for commit in (True, False):
            producer.begin_transaction()
            producer.send("events", b"2" if commit else b"aborted")
            if commit:
                producer.commit_transaction()
            else:
                producer.abort_transaction()
    write(clients, source, "events", [b"3"])
    target.wait_for_records("events", 3)
    assert target.values("events") == [b"1", b"2", b"3"]


def test_each_topic_and_partition_goes_to_its_own(source, target, clients):
    for broker in (source, target):
        broker.create_topic("events", partitions=3)
    for topic, value in (("events:2", b"two"), ("events", b"zero"), ("other", b"other")):
        write(clients, source, topic, [value])
    target.wait_for_records("events", 2)
    target.wait_for_records("other", 1)
    assert [target.values("events", number) for number in range(3)] == [[b"zero"], [], [b"two"]]
    assert target.values("other") == [b"other"]


def test_a_replica_that_is_away_gets_everything_when_it_comes(clients):
    address = free_address()
    with node(None, address) as source:
        for number in range(5):
            write(clients, source, "events", [b"%d" % number])
        assert source.zper.metrics()["zper_replica_lag"] == {address: 5}
        with node(writer_bind=address) as target:
            target.wait_for_records("events", 5)
            assert target.values("events") == [b"%d" % number for number in range(5)]
            until(lambda: lag(source) == 0)


def test_a_node_that_starts_again_goes_on_where_it_was(tmp_path, clients):
    address = free_address()
    source = node(tmp_path, address)
    with source:
        write(clients, source, "events", [b"1"], [b"2"])
        with node(writer_bind=address) as target:
            target.wait_for_records("events", 2)
            until(lambda: lag(source) == 0)
        write(clients, source, "events", [b"3"])
    with source, node(writer_bind=address) as target:
        target.wait_for_records("events", 1)
        until(lambda: lag(source) == 0)
        assert target.values("events") == [b"3"]


def test_a_replica_that_comes_and_goes_has_every_message_in_order(tmp_path, clients):
    address = free_address()
    with node(None, address) as source:
        sock = clients.push(source.zper.writer_address, "events")
        for turn in range(4):
            with node(tmp_path, writer_bind=address) as target:
                for number in range(500):
                    sock.send(b"%06d" % (500 * turn + number))
                until(lambda turn=turn: len(target.values("events")) > 500 * turn)
        with node(tmp_path, writer_bind=address) as target:
            until(lambda: source.zper.metrics()["zper_messages_in"] == 2000 and lag(source) == 0)
            got = target.values("events")
    first = list(dict.fromkeys(got))
    assert first == [b"%06d" % number for number in range(2000)]  # once at least, and none before another


def test_nodes_may_be_each_others_replicas(clients):
    one_address, other_address = free_address(), free_address()
    with (
        node(None, other_address, writer_bind=one_address) as one,
        node(None, one_address, writer_bind=other_address) as other,
    ):
        write(clients, one, "events", [b"1"])
        write(clients, other, "events", [b"2"], [b"a", b"b", b"c"])
        for broker in (one, other):
            broker.wait_for_records("events", 3)
        for broker in (one, other):
            until(lambda broker=broker: lag(broker) == 0)
        write(clients, one, "events", [b"end"])
        other.wait_for_records("events", 4)
        assert sorted(one.values("events")) == sorted(other.values("events"))
        assert len(one.values("events")) == 4


def test_answers_in_mode_2_wait_for_no_replica_unless_told_so(clients):
    with node(None, free_address()) as source:
        write(clients, source, "events", [b"a"])


def test_answers_in_mode_2_wait_for_as_many_replicas_as_wanted(clients):
    away = free_address()
    with node() as target, node(None, target.zper.writer_address, away, sync=2) as source:
        every, flush = (clients.dealer(source.zper.writer_address, "events", mode) for mode in (2, 1))
        every.send(b"2")
        flush.send(b"1")
        assert flush.recv() == b"1"  # mode 1 waits for none
        target.wait_for_records("events", 2)
        assert not every.poll(100)
        with node(writer_bind=away) as late:
            assert every.recv() == b"2"
            late.wait_for_records("events", 2)  # "1" may be behind it, and nobody waits for its copy
            assert sorted(late.values("events")) == [b"1", b"2"]
            for number in range(100):
                every.send(b"%d" % number)
            assert [every.recv() for _ in range(100)] == [b"%d" % number for number in range(100)]


def test_messages_waiting_for_replicas_are_bounded(clients, monkeypatch):
    monkeypatch.setattr(limits, "UNFLUSHED_OCTETS", 100_000)
    with node(None, free_address(), sync=1) as source:
        options = {"SNDHWM": 10, "SNDBUF": 65536, "SNDTIMEO": 500, "LINGER": 0}
        sock = clients.dealer(source.zper.writer_address, "events", 2, **options)
        sent = 0
        with pytest.raises(zmq.Again):
            while sent < 100_000:
                sock.send(bytes(1000))
                sent += 1
        assert source.zper.metrics()["zper_unflushed_bytes"] < 2_000_000


def test_a_topic_that_is_deleted_and_written_again_is_copied_from_its_beginning(source, target, clients):
    write(clients, source, "events", [b"1"], [b"2"])
    target.wait_for_records("events", 2)
    source._within(lambda core: core.delete_topics(["events"]))
    write(clients, source, "events", [b"3"])
    target.wait_for_records("events", 3)
    assert target.values("events") == [b"1", b"2", b"3"]


def create_anew(broker, topic="events"):
    """What an administrator does, and no client of ZPER notices."""
    broker._within(lambda core: core.delete_topics([topic]))
    broker._within(lambda core: core.create_topics({topic: TopicSpec(1)}))


def test_a_topic_that_others_delete_and_create_is_copied_from_the_first_message_written_to_it(
    source, target, clients
):
    sock = clients.dealer(source.zper.writer_address, "events", 2)
    for message in (b"1", b"2", b"3"):
        sock.send(message)
        assert sock.recv() == message
    target.wait_for_records("events", 3)
    create_anew(source)
    sock.send(b"4")
    assert sock.recv() == b"4"
    target.wait_for_records("events", 4)
    assert target.values("events") == [b"1", b"2", b"3", b"4"]


def test_the_copy_of_a_topic_that_others_delete_and_create_ends_and_holds_up_nobody(source, target, clients):
    write(clients, source, "events", *([b"%d" % number] for number in range(5)))
    target.wait_for_records("events", 5)
    until(lambda: lag(source) == 0)
    (replica,) = source.zper._replicas._targets

    def go_too_far(core):
        copy = replica._copies["events", 0]
        copy._next = copy.in_flight.acknowledged = 7  # as of a topic that was longer
        copy.wake()

    source._within(go_too_far)
    until(lambda: not replica._copies)
    write(clients, source, "events", [b"5"])
    target.wait_for_records("events", 6)


def test_a_late_answer_about_a_deleted_topic_says_nothing_about_its_successor(source, target, clients):
    write(clients, source, "events", *([b"%d" % number] for number in range(5)))
    target.wait_for_records("events", 5)
    until(lambda: lag(source) == 0)
    (replica,) = source.zper._replicas._targets
    copy = replica._copies["events", 0]
    source._within(lambda core: core.delete_topics(["events"]))
    write(clients, source, "events", [b"5"])
    source._within(lambda core: copy._acknowledged(copy))
    until(lambda: lag(source) == 0)
    assert replica.acknowledged(("events", 0)) == 1


def test_answers_in_mode_2_do_not_wait_for_replicas_of_a_topic_that_is_deleted(clients):
    address = free_address()
    with node(None, address, sync=1) as source:
        sock = clients.dealer(source.zper.writer_address, "events", 2)
        for number in range(5):
            sock.send(b"%d" % number)
        source.wait_for_records("events", 5)
        create_anew(source)
        sock.send(b"5")
        assert [sock.recv() for _ in range(5)] == [b"%d" % number for number in range(5)]
        assert not sock.poll(100)
        with node(writer_bind=address) as target:
            assert sock.recv() == b"5"
            assert target.values("events") == [b"5"]


def test_callbacks_waiting_for_replicas_run_in_order_also_if_one_pauses(source):
    def ordered(core):
        replicas, called = source.zper._replicas, []

        def first():
            gevent.sleep(0.01)
            called.append("first")

        green = gevent.spawn(replicas.when_copied, ("events", 0), 0, first)
        gevent.sleep(0)
        replicas.when_copied(("events", 0), 0, lambda: called.append("second"))
        green.join()
        return called

    assert source._within(ordered) == ["first", "second"]


def test_messages_removed_by_retention_before_a_replica_has_them_are_counted_and_passed_over(clients, caplog):
    address = free_address()
    with node(None, address) as source:
        write(clients, source, "events", *([b"%d" % number] for number in range(10)))
        source._within(lambda core: core.delete_records({("events", 0): 7}))
        with node(writer_bind=address) as target:
            target.wait_for_records("events", 3)
            assert target.values("events") == [b"7", b"8", b"9"]
    assert "7 messages of events were removed" in caplog.text


def test_connections_are_closed_when_nothing_comes_and_made_again(source, target, clients, monkeypatch):
    monkeypatch.setattr(limits, "COPY_IDLE_SECONDS", 0.1)
    write(clients, source, "events", [b"1"])
    target.wait_for_records("events", 1)
    until(lambda: target.metrics()["zper_connections"] == 0)
    write(clients, source, "events", [b"2"])
    target.wait_for_records("events", 2)


def test_many_topics_are_copied_some_at_a_time(clients, monkeypatch):
    monkeypatch.setattr(limits, "COPIES_AT_ONCE", 3)
    address = free_address()
    with node(None, address) as source:
        for number in range(20):
            write(clients, source, f"t{number}", [b"%d" % number])
        with node(writer_bind=address) as target:
            most = 0
            deadline = time.monotonic() + 100
            while lag(source):
                assert time.monotonic() < deadline
                most = max(most, target.metrics()["zper_connections"])
            assert most <= 3 + 7  # those that are closing count until that is noticed
            assert [target.values(f"t{number}") for number in range(20)] == [[b"%d" % n] for n in range(20)]


class Flushing:
    """A ZPWriter that answers at its flushes only, as the Java server does: after ``every`` messages, or when
    a message comes ``interval`` seconds after the last flush."""

    def __init__(self, context, every, interval):
        self.socket = context.socket(zmq.ROUTER)
        self.port = self.socket.bind_to_random_port("tcp://127.0.0.1")
        self.every, self.interval = every, interval
        self.taken = []
        self.pending, self.flushed = 0, time.monotonic()

    def serve(self, until):
        deadline = time.monotonic() + 100
        while not until():
            assert time.monotonic() < deadline
            if self.socket.poll(20):
                identity, *frames = self.socket.recv_multipart()
                self.taken.append(frames)
                self.pending += 1
                now = time.monotonic()
                if self.pending >= self.every or now >= self.flushed + self.interval:
                    self.pending, self.flushed = 0, now
                    self.socket.send_multipart([identity, frames[-1]])


def test_a_replica_that_answers_at_its_flushes_only_gets_everything_once(clients, monkeypatch):
    monkeypatch.setattr(limits, "COPIES_IN_FLIGHT", 10)
    target = Flushing(clients.context, every=25, interval=0.5)
    with node(None, f"tcp://127.0.0.1:{target.port}") as source:
        write(clients, source, "events", *([b"%d" % number] for number in range(40)))
        target.serve(until=lambda: len(target.taken) == 40)
        assert target.taken == [[b"%d" % number] for number in range(40)]


def test_a_replica_goes_on_where_it_was_when_the_node_is_killed(tmp_path, clients):
    with (
        node() as target,
        Server(tmp_path / "data", flush_interval=2, writer_replica=target.zper.writer_address) as source,
    ):
        writer = clients.dealer(source.addresses["writer"], "events", 2, SNDHWM=100)
        answered = []
        for turn in range(3):
            for number in range(1000 * turn, 1000 * (turn + 1)):
                writer.send(b"%06d" % number)
                while writer.poll(0):
                    answered.append(writer.recv())
            source.kill()
            source.start()
        writer.send(b"end")
        while (answer := writer.recv()) != b"end":
            answered.append(answer)
        until(lambda: b"end" in target.values("events"))
        copied = list(dict.fromkeys(target.values("events")))  # some come twice
        stored, _ = decode_messages(octets_at(clients, source.addresses["reader"]))
        assert copied == [message for (message,) in stored]
        assert set(answered) <= set(copied)


def octets_at(clients, address):
    reader = clients.dealer(address, "events")
    return fetch(reader, 0, 2**40)[1]


def test_the_progress_of_a_replica_does_not_expire_while_the_node_runs(clients, monkeypatch):
    monkeypatch.setattr(limits, "COPY_NOTE_SECONDS", 0.02)
    monkeypatch.setattr(limits, "COPY_REFRESH_SECONDS", 0.05)
    address = free_address()
    with TestBroker(
        zper=ZperOptions(writer_replica=(address,), flush_interval=5), offsets_retention=1.0
    ) as source:
        write(clients, source, "events", [b"a"])
        group = "zper-replica-" + address.removeprefix("tcp://")
        began = time.monotonic()
        while time.monotonic() < began + 2.5:
            assert list(source.committed(group).values()) == [0]
            time.sleep(0.02)
