"""``dafka kafka topics``."""

from __future__ import annotations

import json
import time

import click
import pytest

from dafka.cli.kafka.at_cluster import Cluster
from dafka.cli.kafka.copying import copy_topic
from dafka.cli.kafka.read_topics import ReadTopics


def partitions(terminal, topic):
    (row,) = terminal.rows("topics", "describe", topic)
    return [(one["partition"], one["first"], one["end"]) for one in row["partitions"]]


def test_a_topic_is_created_listed_described_and_deleted(terminal, topic):
    create = ["topics", "create", topic, "--partitions", "3", "--config", "retention.ms=3600000"]
    assert terminal.run(*create) == ""
    (row,) = terminal.rows("topics", "list", topic[:-3] + "*")
    assert (row["topic"], row["partitions"]) == (topic, 3)
    assert terminal.run("topics", "list", topic).splitlines()[1].split() == [topic, "3"]
    (row,) = terminal.rows("topics", "describe", topic)
    assert row["configs"] == {"retention.ms": "3600000"}
    assert partitions(terminal, topic) == [(0, 0, 0), (1, 0, 0), (2, 0, 0)]
    shown = terminal.run("topics", "describe", topic).splitlines()
    assert shown[:2] == [topic, "  retention.ms=3600000"]
    assert terminal.run("topics", "delete", topic) == ""
    assert terminal.rows("topics", "list", topic) == []
    assert "UnknownTopicOrPartitionError" in terminal.refused("topics", "delete", topic)
    assert terminal.run("topics", "delete", topic, "--if-exists") == ""


def test_a_topic_that_is_there_is_an_error_unless_that_is_said(terminal, topic):
    terminal.run("topics", "create", topic)
    assert "TopicAlreadyExistsError" in terminal.refused("topics", "create", topic)
    assert terminal.run("topics", "create", topic, "--if-not-exists") == ""
    assert "InvalidTopicError" in terminal.refused("topics", "create", "no/name")
    assert "no.such.setting" in terminal.refused(
        "topics", "create", topic + "b", "--config", "no.such.setting=1"
    )


def test_partitions_are_added_and_settings_changed(terminal, topic):
    terminal.run("topics", "create", topic, "--config", "retention.ms=5000")
    terminal.run(
        "topics",
        "alter",
        topic,
        "--partitions",
        "2",
        "--set",
        "retention.bytes=1000",
        "--unset",
        "retention.ms",
    )
    (row,) = terminal.rows("topics", "describe", topic)
    assert (len(row["partitions"]), row["configs"]) == (2, {"retention.bytes": "1000"})
    assert "InvalidPartitionsError" in terminal.refused("topics", "alter", topic, "--partitions", "1")
    assert "say what" in terminal.misused("topics", "alter", topic)


def test_a_topic_is_emptied_whole_or_up_to_a_place(terminal, topic):
    terminal.run("topics", "create", topic, "--partitions", "2")
    for partition in ("0", "1"):
        terminal.run("produce", topic, "--partition", partition, stdin="a\nb\nc\n")
    assert terminal.rows("topics", "empty", topic, "--partition", "0", "--before", "-1") == [
        {"partition": 0, "first": 2}
    ]
    assert partitions(terminal, topic) == [(0, 2, 3), (1, 0, 3)]
    terminal.run("topics", "empty", topic)
    assert partitions(terminal, topic) == [(0, 3, 3), (1, 3, 3)]
    assert "has no partition 7" in terminal.misused("topics", "empty", topic, "--partition", "7")


def test_offsets_at_a_place_are_shown(terminal, topic):
    terminal.run("topics", "create", topic, "--partitions", "2")
    records = "".join(f'{{"value": "v", "timestamp": {1000 * n}, "partition": 0}}\n' for n in range(5))
    terminal.run("produce", topic, "--json", stdin=records)

    def offsets(*arguments):
        return [
            (one["topic"], one["partition"], one["offset"])
            for one in terminal.rows("topics", "offsets", topic, *arguments)
        ]

    assert offsets() == offsets("--at", "latest") == [(topic, 0, 5), (topic, 1, 0)]
    assert offsets("--at", "1970-01-01T00:00:02.5Z") == [(topic, 0, 3), (topic, 1, 0)]
    assert offsets("--at", "-2") == [(topic, 0, 3), (topic, 1, 0)]
    assert offsets("--at", "2h") == [(topic, 0, 5), (topic, 1, 0)]
    assert terminal.run("topics", "offsets", topic).splitlines()[1].split() == [topic, "0", "5"]
    assert "UnknownTopicOrPartitionError" in terminal.refused("topics", "offsets", topic, "no-such-topic")


def test_a_copy_has_records_that_kafka_python_refuses(terminal, topic):
    """Clients in other languages write null as a header's value, and records without key and value."""
    rows = [
        {"key": "k", "value": "v", "headers": [{"name": "a", "value": None}, {"name": "b", "value": ""}]},
        {"key": None, "value": None, "headers": []},
        {"key": None, "value": None, "headers": [{"name": "a", "value": None}]},
    ]
    terminal.run("produce", topic, "--json", stdin="\n".join(json.dumps(row) for row in rows))
    terminal.run("topics", "copy", topic, topic + "-copy")
    for name in (topic, topic + "-copy"):
        found = terminal.rows("consume", name, "--exit")
        assert [{key: row[key] for key in rows[0]} for row in found] == rows


def test_a_copy_has_the_records_partitions_and_settings(terminal, topic):
    terminal.run("topics", "create", topic, "--partitions", "2", "--config", "retention.ms=3600000")
    given = '{"key":"k","value":"v","headers":{"h":"1"},"partition":1,"timestamp":%d}\n'
    now = int(time.time() * 1000)
    terminal.run("produce", topic, "--json", stdin=given % now + given % (now + 1))
    terminal.run("topics", "copy", topic, f"{topic}-copy")
    (row,) = terminal.rows("topics", "describe", f"{topic}-copy")
    assert row["configs"] == {"retention.ms": "3600000"}
    rows = [terminal.rows("consume", name, "--exit") for name in (topic, f"{topic}-copy")]
    assert [{**one, "topic": f"{topic}-copy"} for one in rows[0]] == rows[1]
    assert [one["timestamp"] for one in rows[1]] == [now, now + 1]
    terminal.run("topics", "create", f"{topic}-small")
    assert "--partitions 2" in terminal.refused("topics", "copy", topic, f"{topic}-small")
    assert "same topic" in terminal.misused("topics", "copy", topic, topic)


def test_a_topic_that_is_not_there_is_named(terminal, topic):
    for command in (["describe", topic], ["empty", topic], ["copy", topic, "b"]):
        assert f"topic {topic}: UnknownTopicOrPartitionError" in terminal.refused("topics", *command)


def test_a_number_of_partitions_that_no_request_holds_is_misuse(terminal, topic):
    for command in ("create", "alter"):
        said = terminal.misused("topics", command, topic, "--partitions", str(2**31))
        assert "1<=x<=2147483647" in said


def test_a_source_that_is_deleted_meanwhile_ends_the_copy(terminal, topic):
    terminal.run("topics", "create", f"{topic}-copy")
    cluster = Cluster(terminal.servers, {})
    with cluster.connect() as connection:
        read = ReadTopics(connection, [topic], patient=False)
        with pytest.raises(click.ClickException, match=f"topic {topic} was deleted"):
            copy_topic(cluster, read, {(topic, 0): 0}, {(topic, 0): 5}, f"{topic}-copy")


def test_records_that_cannot_be_deleted_leave_only_the_error(terminal, topic):
    terminal.run("topics", "create", topic, "--config", "cleanup.policy=compact")
    done = terminal._invoke("topics", "empty", topic, stdin="")
    assert done.exit_code == 1 and "PolicyViolationError" in done.stderr and done.stdout == ""
