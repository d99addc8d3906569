"""Nodes as processes: killed, stopped for longer than the beacon timeout, restarted, cut off.

Every time: each partition in order, none twice, none skipped, and what was acknowledged is in the store.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from mesh.children import MESH, TIMEOUT, Child, Children
from ports import free_port
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.log import Log

COUNT = 1000


@pytest.fixture
def children() -> Iterator[Children]:
    with Children() as started:
        yield started


def stored(folder: Path) -> dict[str, list[bytes]]:
    """What a store's folder holds, by producer."""
    log = Log(folder)
    try:
        found: dict[str, list[bytes]] = {}
        for partition in log.partitions():
            contents: list[bytes] = []
            while partition.first_sequence + len(contents) < partition.next_sequence:
                position = partition.first_sequence + len(contents)
                first, more = log.read(partition, position, count=1000, max_bytes=2**20)
                assert first == position
                contents += more
            found[partition.address.decode()] = contents
        return found
    finally:
        log.close()


def numbers(count: int) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def acknowledged(producer: Child) -> int:
    return int(producer.says("acknowledged"))


def stalled(producer: Child) -> int:
    """Wait until a producer says again and again that nothing more is acknowledged; how many are."""

    def repeated(lines: list[str]) -> bool:
        last = [line for line in lines[-30:] if line.startswith("acknowledged")]
        return len(last) >= 20 and len(set(last)) == 1

    producer.until(repeated)
    return acknowledged(producer)


def consumed(consumer: Child) -> list[int]:
    """The sequences a consumer has printed so far; its values are checked against them."""
    records = [line.split() for line in consumer.lines if line.startswith("record")]
    assert all(sequence == value for _, _, sequence, value in records)
    return [int(sequence) for _, _, sequence, _ in records]


def test_a_store_killed_and_restarted_has_all_it_acknowledged_and_gets_the_rest(children, tmp_path):
    folder = tmp_path / "storedb"
    with Tower() as tower, Consumer(["hello"], tower=tower, offset_reset="earliest", **MESH) as consumer:
        towers = [tower.addresses]
        store = children.store(folder, towers)
        producer = children.node("producer", towers, "hello", count=COUNT)
        until(lambda: acknowledged(producer) >= COUNT // 4)
        store.end(signal.SIGKILL)
        promised = acknowledged(producer)
        (partition,) = stored(folder).values()
        assert len(partition) >= promised
        assert partition == numbers(len(partition))

        store = children.store(folder, towers)
        producer.says("flushed")
        assert [int(next(consumer).value) for _ in range(COUNT)] == list(range(COUNT))
        assert consumer.gaps == []
        assert store.end() == 0
        assert stored(folder) == {producer.says("producer"): numbers(COUNT)}


def test_a_producer_stopped_for_longer_than_the_beacon_timeout_is_followed_again(children, tmp_path):
    folder = tmp_path / "storedb"
    with Tower() as tower, Consumer(["hello"], tower=tower, offset_reset="earliest", **MESH) as consumer:
        towers = [tower.addresses]
        store = children.store(folder, towers)
        producer = children.node("producer", towers, "hello", count=COUNT, stay=1)
        until(lambda: acknowledged(producer) >= COUNT // 4)
        until(lambda: consumer.metrics()["endpoint_peers"] == 2)
        producer.send(signal.SIGSTOP)
        until(lambda: consumer.metrics()["endpoint_peers"] == 1, "the stopped producer is given up")
        producer.send(signal.SIGCONT)
        producer.says("flushed")
        assert [int(next(consumer).value) for _ in range(COUNT)] == list(range(COUNT))
        assert store.end() == 0
        assert stored(folder) == {producer.says("producer"): numbers(COUNT)}


def test_the_queue_of_a_stopped_consumer_is_given_up_and_fetched_later(children):
    """Else a producer of large records keeps as many as the water mark says, until TCP gives up."""
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0, **MESH) as producer:
        consumer = children.node("consumer", [tower.addresses], "hello")
        producer.send(b"0")
        until(lambda: consumed(consumer) == [0])
        before = 7  # it has three connections: for records and heads, for answers, and for all the rest
        until(lambda: producer.metrics()["endpoint_heard_subscriptions"] == before)
        consumer.send(signal.SIGSTOP)
        for number in range(1, 300):  # more than the system keeps for both ends
            producer.send(b"%-100000d" % number)
        until(lambda: producer.metrics()["endpoint_heard_subscriptions"] == before - 2)  # records and heads
        consumer.send(signal.SIGCONT)
        until(lambda: consumed(consumer) == list(range(300)))


def test_a_stopped_store_catches_up_with_what_was_published_meanwhile(children, tmp_path):
    folder = tmp_path / "storedb"
    with Tower() as tower:
        towers = [tower.addresses]
        store = children.store(folder, towers)
        producer = children.node("producer", towers, "hello", count=COUNT)
        until(lambda: acknowledged(producer) >= COUNT // 4)
        store.send(signal.SIGSTOP)
        before = stalled(producer)
        time.sleep(3 * TIMEOUT)  # what is tested is a time: it has to be longer than the timeout
        assert acknowledged(producer) <= before + 100
        store.send(signal.SIGCONT)
        producer.says("flushed")
        assert store.end() == 0
        assert stored(folder) == {producer.says("producer"): numbers(COUNT)}


def test_a_consumer_killed_and_restarted_where_it_was_misses_and_repeats_nothing(children, tmp_path):
    with Tower() as tower:
        towers = [tower.addresses]
        children.store(tmp_path / "storedb", towers)
        producer = children.node("producer", towers, "hello", count=COUNT)
        address = producer.says("producer")
        first = children.node("consumer", towers, "hello")
        until(lambda: len(consumed(first)) >= COUNT // 4)
        first.end(signal.SIGKILL)
        before = consumed(first)
        second = children.node("consumer", towers, "hello", start=[address, str(len(before))])
        until(lambda: len(before) + len(consumed(second)) >= COUNT)
        assert before + consumed(second) == list(range(COUNT))


def test_nodes_that_come_after_a_tower_was_killed_and_restarted_find_the_others(children, tmp_path):
    pair = f"tcp://127.0.0.1:{free_port()}", f"tcp://127.0.0.1:{free_port()}"
    tower = children.tower(*pair)
    store = children.store(tmp_path / "storedb", [pair])
    first = children.node("producer", [pair], "hello", count=50)
    first.says("flushed")
    tower.end(signal.SIGKILL)
    children.tower(*pair)
    second = children.node("producer", [pair], "hello", count=50)
    second.says("flushed")
    consumer = children.node("consumer", [pair], "hello")
    until(lambda: len(consumed(consumer)) == 100)
    assert store.end() == 0


def test_with_two_towers_nodes_find_each_other_by_the_one_that_is_left(children, tmp_path):
    with Tower() as staying, Tower() as going:
        towers = [staying.addresses, going.addresses]
        store = children.store(tmp_path / "storedb", towers)
        children.node("producer", towers, "hello", count=50).says("flushed")
        going.close()
        late = children.node("producer", towers, "hello", count=50)
        late.says("flushed")
        assert store.end() == 0
        assert len(stored(tmp_path / "storedb")) == 2


def test_a_late_store_gets_the_history_of_dead_and_of_living_producers(children, tmp_path):
    with Tower() as tower:
        towers = [tower.addresses]
        early = children.store(tmp_path / "early", towers)
        dead = children.node("producer", towers, "hello", count=COUNT, pause=0)
        dead.says("flushed")
        assert dead.process.wait(120) == 0
        living = children.node("producer", towers, "other", count=COUNT, stay=1)
        until(lambda: acknowledged(living) > 100)
        addresses = {dead.says("producer"), living.says("producer")}
        with Store(tmp_path / "late", tower=tower, **MESH) as late:
            complete = {
                (b"hello", dead.says("producer")): COUNT - 1,
                (b"other", living.says("producer")): COUNT - 1,
            }
            until(lambda: late.heads() == complete, "the late store has everything")
        assert early.end() == 0
        assert stored(tmp_path / "late") == stored(tmp_path / "early")
        assert stored(tmp_path / "late") == dict.fromkeys(addresses, numbers(COUNT))


# -- network namespaces -------------------------------------------------------------------------


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, timeout=100)


@pytest.fixture
def namespaces() -> Iterator[tuple[str, str, str]]:
    """Two network namespaces joined by a link, 10.77.0.1 and 10.77.0.2, and the name of the first end."""
    if shutil.which("ip") is None:
        pytest.skip("there is no ip command here")
    tag = f"{os.getpid() % 100000}"
    names, ends = (f"dafka-a{tag}", f"dafka-b{tag}"), (f"dka{tag}", f"dkb{tag}")
    try:
        for name in names:
            ip("netns", "add", name)
        ip("link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for number, (name, end) in enumerate(zip(names, ends, strict=True), 1):
            ip("link", "set", end, "netns", name)
            ip("-n", name, "addr", "add", f"10.77.0.{number}/24", "dev", end)
            ip("-n", name, "link", "set", end, "up")
            ip("-n", name, "link", "set", "lo", "up")
        yield names[0], names[1], ends[0]
    except (subprocess.SubprocessError, OSError) as error:
        detail = getattr(error, "stderr", b"") or str(error)
        pytest.skip(f"this machine allows no network namespaces: {detail!r}")
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, timeout=100, check=False)


def test_a_cut_link_between_machines_is_repaired_by_fetching(children, tmp_path, namespaces):
    first, second, end = namespaces
    inside = {name: ["ip", "netns", "exec", name] for name in (first, second)}
    pair = "tcp://10.77.0.1:5556", "tcp://10.77.0.1:5557"
    children.tower(*pair, prefix=inside[first])
    store = children.store(tmp_path / "storedb", [pair], bind="10.77.0.1", prefix=inside[first])
    producer = children.node(
        "producer", [pair], "hello", count=COUNT, bind="10.77.0.2", prefix=inside[second]
    )
    until(lambda: acknowledged(producer) >= COUNT // 10)
    ip("-n", first, "link", "set", end, "down")
    before = stalled(producer)
    time.sleep(3 * TIMEOUT)  # what is tested is a time: long enough for both sides to give the other up
    assert acknowledged(producer) <= before + 100
    ip("-n", first, "link", "set", end, "up")
    producer.says("flushed")
    assert store.end() == 0
    assert stored(tmp_path / "storedb") == {producer.says("producer"): numbers(COUNT)}


def test_a_connection_that_only_the_publishers_side_has_given_up_is_made_anew(children, tmp_path, namespaces):
    # The store still counts on the producer's connection: no beacon tells it to connect again.
    first, second, end = namespaces
    inside = {name: ["ip", "netns", "exec", name] for name in (first, second)}
    pair = "tcp://10.77.0.1:5556", "tcp://10.77.0.1:5557"
    children.tower(*pair, prefix=inside[first])
    store = children.store(
        tmp_path / "storedb", [pair], bind="10.77.0.1", prefix=inside[first], timeout=600.0
    )
    producer = children.node(
        "producer", [pair], "hello", count=COUNT, bind="10.77.0.2", prefix=inside[second]
    )
    until(lambda: acknowledged(producer) >= COUNT // 10)
    ip("-n", first, "link", "set", end, "down")
    time.sleep(7)  # what is tested is a time: the producer's side has given up, and no packet is left to tell
    ip("-n", first, "link", "set", end, "up")
    producer.says("flushed")
    assert store.end() == 0
    assert stored(tmp_path / "storedb") == {producer.says("producer"): numbers(COUNT)}
