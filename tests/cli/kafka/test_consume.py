"""``dafka kafka consume``."""

from __future__ import annotations

import threading

import pytest
from cli.tools import running
from kafka.errors import CoordinatorLoadInProgressError, CoordinatorNotAvailableError, NotCoordinatorError
from timing import until

from compat.kafka import KafkaAdminClient, KafkaConsumer

_NO_COORDINATOR = (CoordinatorNotAvailableError, CoordinatorLoadInProgressError, NotCoordinatorError)


@pytest.fixture
def numbers(terminal, topic):
    """A topic with the numbers 0 to 9 in partition 0, a second apart, and a to c in partition 1."""
    terminal.run("topics", "create", topic, "--partitions", "2", "--config", "retention.ms=-1")
    lines = "".join(
        f'{{"value":"{n}","key":"k{n}","partition":0,"timestamp":{10**12 + n * 1000}}}\n' for n in range(10)
    )
    terminal.run("produce", topic, "--json", stdin=lines)
    terminal.run("produce", topic, "--partition", "1", stdin="a\nb\nc\n")
    return topic


def lines(terminal, topic, *options):
    return terminal.run("consume", topic, "--exit", *options).split()


def test_each_value_is_a_line(terminal, numbers):
    assert sorted(lines(terminal, numbers)) == [*"0123456789", *"abc"]
    assert lines(terminal, numbers, "--partition", "1") == [*"abc"]
    assert "has no partition 2" in terminal.misused("consume", numbers, "--partition", "2")


def test_places_are_offsets_times_and_distances_from_the_end(terminal, numbers):
    only = ["--partition", "0"]
    assert lines(terminal, numbers, *only, "--from", "7") == [*"789"]
    assert lines(terminal, numbers, *only, "--from", "-2") == [*"89"]
    assert lines(terminal, numbers, *only, "--from", "2", "--to", "4") == [*"23"]
    assert lines(terminal, numbers, *only, "--to", "-8") == [*"01"]
    moment = "2001-09-09T01:46:4{}Z"  # 10**12 milliseconds
    assert lines(terminal, numbers, *only, "--from", moment.format(3), "--to", moment.format(6)) == [*"345"]
    assert lines(terminal, numbers, *only, "--from", "1h") == []
    assert lines(terminal, numbers, *only, "--from", "latest") == []
    assert "is not one of earliest, latest" in terminal.misused("consume", numbers, "--from", "yesterday")


def test_a_count_ends_it_before_the_end(terminal, numbers):
    done = terminal.run("consume", numbers, "--partition", "0", "--count", "4")  # it would follow
    assert done.split() == [*"0123"]


def test_an_end_ends_it_even_if_it_follows(terminal, numbers):
    assert terminal.run("consume", numbers, "--partition", "0", "--to", "3").split() == [*"012"]


def test_formats_are_those_of_kcat(terminal, numbers):
    options = ["--partition", "0", "--from", "9", "--exit", "-f", r"%t/%p/%o %T %k:%K %s:%S %h%%\t\x41\n"]
    assert terminal.run("consume", numbers, *options) == f"{numbers}/0/9 1000000009000 k9:2 9:1 %\tA\n"
    assert "%x is not a field" in terminal.misused("consume", numbers, "-f", "%x")


def test_a_group_goes_on_where_it_was(terminal, numbers):
    group = ["--group", f"g-{numbers}", "--from", "earliest"]
    first = terminal.run("consume", numbers, *group, "--count", "5").split()
    rest = terminal.run("consume", numbers, *group, "--exit").split()
    assert sorted(first + rest) == [*"0123456789", *"abc"]
    assert terminal.run("consume", numbers, *group, "--exit") == ""
    assert "the group has the partitions" in terminal.misused("consume", numbers, *group[:2], "--to", "3")


def test_records_printed_as_json_can_be_produced_again(terminal, topic):
    terminal.run("topics", "create", topic)
    terminal.run("topics", "create", f"{topic}-2")
    header = b'[{"name":"h","value_base64":"/g=="}]'
    given = b'{"key_base64":"/w==","value":null,"headers":%b}\n{"value":"\xc3\xa9"}\n' % header
    terminal.run("produce", topic, "--json", stdin=given)
    shown = terminal.run("consume", topic, "--exit", "--json")
    terminal.run("produce", f"{topic}-2", "--json", stdin=shown)
    assert terminal.run("consume", f"{topic}-2", "--exit", "--json") == shown.replace(topic, f"{topic}-2")
    first, second = terminal.rows("consume", topic, "--exit")
    assert (first["key_base64"], first["value"], first["headers"]) == (
        "/w==",
        None,
        [{"name": "h", "value_base64": "/g=="}],
    )
    assert (second["key"], second["value"]) == (None, "é")


def test_a_broker_that_is_not_there_is_one_line(terminal, monkeypatch):
    monkeypatch.setattr("dafka.cli.where.PATIENCE", 0.3)
    said = terminal.refused("consume", "t", "--bootstrap-server", "127.0.0.1:1")
    assert "no broker answers" in said and "Traceback" not in said


def test_a_topic_that_is_not_there_is_not_made_by_a_group(terminal, topic):
    said = terminal.refused("consume", topic, "--exit", "--group", topic)
    assert f"topic {topic}: UnknownTopicOrPartitionError" in said
    assert terminal.rows("topics", "list", topic) == []


def test_a_member_without_partitions_exits(terminal, topic):
    terminal.run("topics", "create", topic)
    member = KafkaConsumer(topic, bootstrap_servers=terminal.servers, group_id=topic)
    stopped = threading.Event()

    def stay() -> None:
        while not stopped.is_set():
            member.poll(100)

    staying = threading.Thread(target=stay)
    staying.start()
    try:
        until(member.assignment)
        assert terminal.run("consume", topic, "--group", topic, "--exit") == ""
    finally:
        stopped.set()
        staying.join()
        member.close()


def test_a_service_that_is_stopped_leaves_its_group(terminal, topic):
    terminal.run("produce", topic, stdin="a\n")
    words = ["kafka", "consume", topic, "--group", topic, "-b", terminal.servers]
    with running(*words) as consuming:
        assert consuming.stdout.readline() == "a\n"
        consuming.terminate()
        assert consuming.wait(100) == 0
    states = {row["group"]: row["state"] for row in terminal.rows("groups", "list")}
    assert states[topic] == "Empty"  # and no member that is waited for


def test_a_deleted_topic_ends_those_who_follow_it(terminal, topic):
    terminal.run("topics", "create", topic)
    terminal.run("produce", topic, stdin="a\n")
    admin = KafkaAdminClient(bootstrap_servers=terminal.servers)

    def was_printed() -> bool:
        try:
            return bool(admin.list_group_offsets(topic)[topic])
        except _NO_COORDINATOR:  # Apache Kafka makes its topic of offsets for the first group
            return False

    def delete() -> None:
        until(was_printed)
        admin.delete_topics([topic])

    deleting = threading.Thread(target=delete)
    deleting.start()
    said = terminal.refused("consume", topic, "--group", topic, "--follow")
    deleting.join()
    admin.close()
    assert f"topic {topic} was deleted" in said
