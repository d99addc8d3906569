"""A producer that is given its address: it goes on where its partition ends, and is the only one."""

from __future__ import annotations

import sys
import textwrap
import time
from contextlib import suppress

import forking
import pytest
from mesh.peer import Peer
from timing import until

from dafka import Broker, Consumer, Producer, Store, Tower
from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.mesh.producer import (
    AddressInUseError,
    MessageKindError,
    PartitionEndError,
    SendTimeoutError,
    UnacknowledgedError,
)
from dafka.protocol.commands import Ack, Claim, DirectHead
from dafka.protocol.runs import topic_of

ADDRESS = "AB" * 16
PATIENT = {"end_timeout": 100.0}  # stores may be slow to say where a partition ends


def taken(consumer: Consumer, count: int) -> list[tuple[int, bytes | None]]:
    records: list[tuple[int, bytes | None]] = []
    deadline = time.monotonic() + 100
    while len(records) < count and time.monotonic() < deadline:
        records += [(record.offset, record.value) for record in consumer.poll(0.5)]
    return records


@pytest.mark.parametrize("batch", [False, True])
def test_three_producers_one_after_another_write_one_partition(batch, tmp_path):
    with Tower() as tower:
        for run in range(3):
            with (
                Store(tmp_path / "db", tower=tower) as store,
                Producer("pose", tower=tower, address=ADDRESS, batch=batch, **PATIENT) as producer,
            ):
                assert [producer.send(b"%d" % number) for number in range(3)] == [
                    3 * run + number for number in range(3)
                ]
                producer.flush(100)
                assert producer.unacknowledged == 0
                assert producer.metrics()["records_out"] == 3
        with (
            Store(tmp_path / "db", tower=tower) as store,
            Consumer(["pose"], tower=tower, offset_reset="earliest") as consumer,
        ):
            assert taken(consumer, 9) == [(offset, b"%d" % (offset % 3)) for offset in range(9)]
            assert list(store.heads()) == [(b"pose", ADDRESS)]


def test_without_stores_the_consumers_say_what_they_have_seen(tmp_path):
    alone = {"min_stores": 0, "end_timeout": 1.0, "end_unknown": "begin"}
    with Tower() as tower, Consumer(["pose"], tower=tower, offset_reset="earliest") as consumer:
        for run in range(2):
            with Producer("pose", tower=tower, address=ADDRESS, **alone) as producer:
                assert producer.send(b"a") == 2 * run
                assert producer.send(b"b") == 2 * run + 1
                assert len(taken(consumer, 2)) == 2


def test_without_a_store_to_ask_naming_fails_until_a_store_comes(tmp_path):
    with Tower() as tower, Producer("pose", tower=tower, address=ADDRESS, end_timeout=0.6) as producer:
        with pytest.raises(PartitionEndError, match=r"0 stores of 1 have said within 0\.6 s"):
            producer.send(b"a")
        with pytest.raises(SendTimeoutError):
            producer.send(b"a", timeout=0.1)
        with Store(tmp_path / "db", tower=tower):
            while True:
                try:
                    assert producer.send(b"a", timeout=100) == 0
                    break
                except PartitionEndError:
                    continue
            producer.flush(100)


def test_beginning_all_the_same_is_a_choice_and_is_logged(caplog):
    options = {"min_stores": 0, "end_timeout": 0.3, "end_unknown": "begin"}
    with Tower() as tower, Producer("pose", tower=tower, address=ADDRESS, **options) as producer:
        assert producer.send(b"a") == 0
    assert "this one begins at 0" in caplog.text


@pytest.mark.parametrize(
    "wrong", [{"end_timeout": 0}, {"end_timeout": float("inf")}, {"end_unknown": "zero"}]
)
def test_settings_that_cannot_be_are_named(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Producer("pose", address=ADDRESS, **wrong)


@pytest.mark.parametrize("batch", [False, True])
def test_a_producer_of_another_kind_does_not_go_on_with_a_partition(batch, tmp_path):
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        with Producer("pose", tower=tower, address=ADDRESS, batch=batch, **PATIENT) as producer:
            producer.send(b"a")
            producer.flush(100)
        with (
            Producer("pose", tower=tower, address=ADDRESS, batch=not batch, **PATIENT) as producer,
            pytest.raises(MessageKindError, match=ADDRESS),
        ):
            producer.send(b"b")


TWIN = """
    import sys
    from dafka import Producer
    producer = Producer("pose", tower=(sys.argv[1], sys.argv[2]), address=sys.argv[3], end_timeout=100)
    try:
        print("sent", producer.send(b"x"), flush=True)
    except Exception as error:
        print(type(error).__name__, error, flush=True)
"""


def test_a_second_process_with_the_address_of_a_living_producer_is_refused(tmp_path, caplog):
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower),
        Producer("pose", tower=tower, address=ADDRESS, **PATIENT) as producer,
    ):
        producer.send(b"a")
        twin = forking.run(
            [sys.executable, "-c", textwrap.dedent(TWIN), *tower.addresses, ADDRESS],
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert twin.stdout.startswith("AddressInUseError")
        assert ADDRESS in twin.stdout
        assert producer.send(b"b") == 1
        producer.flush(100)
    assert "there is another producer with this address" in caplog.text


def test_two_that_met_too_late_are_both_told(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower),
        Peer(tower.addresses) as peer,
    ):
        producer = Producer("pose", tower=tower, address=ADDRESS, **PATIENT)
        producer.send(b"a")
        producer.flush(100)
        peer.meet(b"C" + ADDRESS.encode())
        deadline = time.monotonic() + 100
        with pytest.raises(AddressInUseError, match="9" * 32):
            while time.monotonic() < deadline:
                peer.send(Claim(ADDRESS.encode(), b"9" * 32, b"pose", 0, numbering=True))
                peer.pump(0.2)
                producer.send(b"more")
        with pytest.raises(AddressInUseError):
            producer.send(b"more")
        with suppress(AddressInUseError):  # if what it sent last was not acknowledged any more
            producer.close(20)


def test_the_address_of_a_brokers_leader_is_taken(tmp_path):
    with Broker(tmp_path) as broker:
        client = connect(broker.bootstrap_servers, 100.0)
        client.call("create_topics", {"t": TopicSpec(1)})
        address = client.call("metadata", ["t"]).topics["t"].partitions[0].address
        with (
            Producer("t", tower=broker.tower, address=address, **PATIENT) as producer,
            pytest.raises(AddressInUseError, match=address),
        ):
            producer.send(b"x")


def test_a_store_that_was_away_with_other_records_is_named_and_not_believed(tmp_path, caplog):
    with Tower() as tower:
        with (
            Store(tmp_path / "most", tower=tower),
            Producer("pose", tower=tower, address=ADDRESS, **PATIENT) as producer,
        ):
            for _ in range(3):
                producer.send(b"first")
            producer.flush(100)
        producer = Producer("pose", tower=tower, address=ADDRESS, **PATIENT)
        with Store(tmp_path / "empty", tower=tower):
            until(lambda: not producer._node.asking)
        for number in range(5):
            assert producer.send(b"second") == number
        with Store(tmp_path / "most", tower=tower):
            until(lambda: "are not this producer's" in caplog.text)
            with pytest.raises(UnacknowledgedError, match="offsets 0 to 4"):
                producer.flush(2.0)
        with Store(tmp_path / "empty", tower=tower):
            producer.close(20)


def test_a_store_that_knows_no_claim_is_asked_as_c_nodes_ask(tmp_path):
    """A peer that does what a C store does: CONSUMER-HELLO is answered with the heads, FETCH with records."""
    store = b"7" * 32
    with (
        Tower() as tower,
        Peer(tower.addresses) as peer,
        Producer("pose", tower=tower, address=ADDRESS, **PATIENT) as producer,
    ):
        peer._subscriber.subscribe(b"W" + store)
        peer.meet(b"C" + ADDRESS.encode())
        hello = peer.receive(type_of("ConsumerHello"))
        head = DirectHead(hello.address, ADDRESS.encode(), b"pose", 41)
        peer.meet(topic_of(head))  # it hears answers by another connection
        peer.send(head)
        fetch = peer.receive(type_of("Fetch"))
        assert (fetch.partition, fetch.sequence, fetch.count) == (ADDRESS.encode(), 41, 1)
        peer.send(type_of("DirectRecord")(fetch.address, ADDRESS.encode(), b"pose", 41, b"the last one"))
        deadline = time.monotonic() + 100
        while producer._node.asking and time.monotonic() < deadline:
            peer.pump(0.1)
        assert producer.send(b"a") == 42
        assert peer.receive(type_of("Record")).sequence == 42  # nobody acknowledges what has not come
        peer.send(Ack(ADDRESS.encode(), b"pose", 42))
        producer.flush(100)


def type_of(name: str) -> type:
    from dafka.protocol import commands

    return getattr(commands, name)
