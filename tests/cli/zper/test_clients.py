"""dafka zper produce, fetch, offsets, relay, acks, nodes and count, against a server of this process."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator

import pytest
from cli.tools import run, running
from timing import until

from dafka.testing import TestBroker
from dafka.zper import Writer, ZperOptions


@pytest.fixture
def broker() -> Iterator[TestBroker]:
    with TestBroker(zper=ZperOptions(flush_interval=1, segment_size=20)) as running_:
        yield running_


def zper(
    broker: TestBroker, role: str, command: str, *options: str, stdin: str = ""
) -> subprocess.CompletedProcess[str]:
    return run("zper", command, *options, "--address", broker.zper.addresses[role], stdin=stdin)


def written(broker: TestBroker, *messages: list[bytes]) -> None:
    with Writer("events", broker.zper.writer_address, timeout=100) as writer:
        for message in messages:
            writer.send(*message)


@pytest.mark.parametrize("mode", ["0", "1", "2"])
def test_produce_writes_each_line_as_a_message(broker: TestBroker, mode: str) -> None:
    done = zper(broker, "writer", "produce", "events", "--mode", mode, stdin="a\n\nlast")
    assert (done.returncode, done.stderr) == (0, "")
    until(lambda: broker.values("events") == [b"a", b"", b"last"])


def test_produce_splits_lines_into_frames(broker: TestBroker) -> None:
    zper(broker, "writer", "produce", "events", "--separator", ",", stdin="id,value\n,x,y\n")
    fetched = zper(broker, "reader", "fetch", "events", "--separator", "|")
    assert fetched.stdout == "id|value\n|x|y\n"


def test_fetch_prints_what_there_is(broker: TestBroker) -> None:
    written(broker, [b"a"], [b"id", b"b"], [b"c"])
    assert zper(broker, "reader", "fetch", "events").stdout == "a\nid\tb\nc\n"
    assert zper(broker, "reader", "fetch", "events", "--positions").stdout == "0\ta\n3\tid\tb\n10\tc\n"
    assert zper(broker, "reader", "fetch", "events", "--from", "10").stdout == "c\n"
    assert zper(broker, "reader", "fetch", "events", "--from", "latest").stdout == ""
    assert zper(broker, "reader", "fetch", "events", "--count", "1").stdout == "a\n"
    followed = zper(broker, "reader", "fetch", "events", "--follow", "--count", "3")
    assert followed.stdout == "a\nid\tb\nc\n"
    idle = ("--follow", "--idle", "0.1")  # a busy machine may not have read anything by then
    until(lambda: zper(broker, "reader", "fetch", "events", *idle).stdout == followed.stdout)


def test_fetch_from_a_position_that_does_not_exist_is_an_error(broker: TestBroker) -> None:
    failed = zper(broker, "reader", "fetch", "events", "--from", "999")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: INVALID_OFFSET (101): FETCH: there are no messages")


def test_offsets_prints_positions(broker: TestBroker) -> None:
    written(broker, *[[b"%04d" % number] for number in range(10)])
    assert zper(broker, "reader", "offsets", "events").stdout == "42\n60\n"
    assert zper(broker, "reader", "offsets", "events", "--time", "earliest").stdout == "0\n"
    later = zper(broker, "reader", "offsets", "events", "--time", "9999999999999", "--entries", "1")
    assert later.stdout == "42\n60\n"


def test_count_counts_each_segment_and_all(broker: TestBroker) -> None:
    written(broker, *[[b"%04d" % number] for number in range(10)])
    lines = zper(broker, "reader", "count", "events").stdout.splitlines()
    assert lines[0] == "00000000000000000000 : 4"
    assert sum(int(line.split(" : ")[1]) for line in lines[:-1]) == 10
    assert lines[-1] == "Total : 10"
    assert zper(broker, "reader", "count", "nothing").stdout == "Total : 0\n"


def test_relay_and_acks_print_what_is_written_from_then_on(broker: TestBroker) -> None:
    relay, acks = broker.zper.relay_address, broker.zper.ack_address
    with (
        running("zper", "relay", "events", "--address", relay, "--count", "2") as relayed,
        running("zper", "acks", "events", "--address", acks, "--count", "2") as acked,
    ):

        def connected() -> bool:
            return broker.metrics()["zper_connections"] >= 2 and broker.metrics()["zper_streams"] >= 1

        until(connected, by=relayed)

        def ended() -> bool:
            written(broker, [b"id", b"value"])
            return relayed.poll() is not None and acked.poll() is not None

        until(ended)
        assert relayed.communicate()[0] == "id\tvalue\nid\tvalue\n"
        assert acked.communicate()[0].splitlines()[0].split("\t")[0::2] == ["events", "id"]


def test_nodes_prints_nodes_peers_and_topics(broker: TestBroker) -> None:
    written(broker, [b"a"])
    (node,) = zper(broker, "controller", "nodes").stdout.splitlines()
    assert json.loads(node)["binds"] == dict(broker.zper.addresses)
    assert zper(broker, "controller", "nodes", "--peers").stdout == ""
    listed = until(lambda: zper(broker, "controller", "nodes", "--topics").stdout)
    assert json.loads(listed)["topic"] == "events"
    assert zper(broker, "controller", "nodes", "--topic", "events").stdout == listed
    assert zper(broker, "controller", "nodes", "--topics", "--peers").returncode == 2


@pytest.mark.parametrize("command", ["fetch", "offsets", "count"])
def test_without_a_server_a_command_ends_after_its_timeout(command: str) -> None:
    failed = run("zper", command, "events", "--timeout", "0.1", "--address", "tcp://127.0.0.1:1")
    assert failed.returncode == 1
    assert "no response to" in failed.stderr
    assert "Traceback" not in failed.stderr


@pytest.mark.parametrize("command", [["fetch", "t"], ["relay", "t"], ["acks"], ["nodes"], ["produce", "t"]])
def test_a_malformed_address_is_an_error_that_names_it(command: list[str]) -> None:
    failed = run("zper", *command, "--address", "nonsense")
    assert failed.returncode == 1
    assert failed.stderr.startswith("Error: cannot connect to 'nonsense', an address is tcp://host:port")


@pytest.mark.parametrize("topic", ["", "a b", "a" * 65])
def test_a_topic_that_no_server_takes_is_refused(topic: str) -> None:
    failed = run("zper", "fetch", topic)
    assert failed.returncode == 2
    assert "Invalid value for 'TOPIC'" in failed.stderr
