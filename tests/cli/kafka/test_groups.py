"""``dafka kafka groups``."""

from __future__ import annotations

from contextlib import closing, contextmanager

import pytest
from cli.kafka.terminal import Terminal
from timing import until

from compat.kafka import KafkaConsumer
from compat.kafka.share import ShareConsumer
from dafka.broker import connect
from dafka.broker.interface.admin import ConfigChange, ConfigOperation, Resource, ResourceType
from dafka.broker.interface.streams_groups import StreamsHeartbeat, Subtopology, Topology
from dafka.testing import TestBroker


@pytest.fixture
def read(terminal, topic):
    """A topic of two partitions with five records each, of which a group of its name has read two each."""
    terminal.run("topics", "create", topic, "--partitions", "2")
    for partition in ("0", "1"):
        terminal.run("produce", topic, "--partition", partition, stdin="1\n2\n3\n4\n5\n")
    reset = ["groups", "reset", topic, "--topic", topic]
    assert len(terminal.rows(*reset, "--to", "2")) == 2  # a preview
    assert topic not in [row["group"] for row in terminal.rows("groups", "list", "--state", "Empty")]
    terminal.run(*reset, "--to", "2", "--execute")
    return topic


def offsets(terminal, group):
    (row,) = terminal.rows("groups", "describe", group)
    return [(one["partition"], one["offset"], one["lag"]) for one in row["partitions"]]


def test_offsets_lag_and_state_are_shown(terminal, read):
    assert offsets(terminal, read) == [(0, 2, 3), (1, 2, 3)]
    head, lag, _, row, _ = terminal.run("groups", "describe", read).splitlines()
    assert (head, lag) == (f"{read}: classic, Empty, 0 members", "lag: 6 in 2 partitions")
    assert row.split() == [read, "0", "2", "5", "3", "-", "-", "-"]
    assert f"no group '{read}x'" in terminal.refused("groups", "describe", f"{read}x")


def test_offsets_are_reset_to_places_by_distances_and_from_a_file(terminal, read, tmp_path):
    def reset(*how):
        terminal.run("groups", "reset", read, *how, "--execute")
        return [offset for _, offset, _ in offsets(terminal, read)]

    assert reset("--all-topics", "--by", "-1") == [1, 1]
    assert reset("--topic", f"{read}:1", "--to", "latest") == [1, 5]
    assert reset("--all-topics", "--by", "3") == [4, 5]  # not beyond the end
    assert reset("--topic", read, "--to", "1h") == [0, 0]
    file = tmp_path / "offsets.csv"
    file.write_text(terminal.run("groups", "reset", read, "--all-topics", "--to", "-2", "--export"))
    assert file.read_text() == f"{read},0,3\n{read},1,3\n"
    assert reset("--from-file", str(file)) == [3, 3]
    file.write_text("a,b\n")
    said = terminal.refused("groups", "reset", read, "--from-file", str(file))
    assert "line 1: it is not TOPIC,PARTITION,OFFSET" in said


@pytest.mark.parametrize(
    "how",
    [
        [],
        ["--to", "1", "--by", "2", "--all-topics"],
        ["--to", "1"],
        ["--to", "1", "--all-topics", "--topic", "t"],
        ["--to", "1", "--all-topics", "--execute", "--export"],
        ["--to", "1", "--topic", "t:x"],
    ],
)
def test_a_reset_that_says_too_little_or_too_much_is_refused(terminal, how):
    terminal.misused("groups", "reset", "g", *how)


def test_a_group_is_forgotten_in_a_topic_and_deleted(terminal, read):
    terminal.run("groups", "forget", read, "--topic", f"{read}:0")
    assert offsets(terminal, read) == [(1, 2, 3)]
    terminal.run("groups", "delete", read)
    assert read not in [row["group"] for row in terminal.rows("groups", "list")]
    assert "GroupIdNotFoundError" in terminal.refused("groups", "delete", read)


@contextmanager
def member(terminal, kind, group, topic):
    configs = {"bootstrap_servers": terminal.servers, "group_id": group, "client_id": "billing"}
    if kind == "share":
        consumer = ShareConsumer(topic, **configs)
    else:
        consumer = KafkaConsumer(topic, **configs, group_protocol=kind, auto_offset_reset="earliest")
    with closing(consumer):
        yield consumer


@pytest.mark.parametrize("kind", ["classic", "consumer", "share"])
def test_members_of_every_protocol_are_shown_with_their_partitions(terminal, topic, kind):
    terminal.run("topics", "create", topic, "--partitions", "2")
    terminal.run("produce", topic, "--partition", "0", stdin="1\n2\n3\n4\n5\n")
    group = f"{kind}-{topic}"
    with member(terminal, kind, group, topic) as consumer:
        found = []

        def joined():
            consumer.poll(100)
            found[:] = terminal.rows("groups", "describe", group)
            return sum(len(one["partitions"]) for one in found[0]["members"]) == 2

        until(
            lambda: (
                group in [row["group"] for row in terminal.rows("groups", "list")] or not consumer.poll(100)
            )
        )
        until(joined)
        (row,) = found
        assert (row["type"], [one["client"] for one in row["members"]]) == (kind, ["billing"])
        assert {one["client"] for one in row["partitions"]} == {"billing"}
        assert "billing" in terminal.run("groups", "describe", group)
        reset = ["groups", "reset", group, "--topic", topic, "--to", "latest", "--execute"]
        assert "has members" in terminal.refused(*reset)
    terminal.run(*reset)
    (row,) = terminal.rows("groups", "describe", group)
    assert [one["lag"] for one in row["partitions"]] == [0, 0]


def test_names_of_strangers_do_not_control_the_terminal(terminal, topic):
    terminal.run("topics", "create", topic)
    group = f"{topic}\x1b[2J"
    with (
        closing(KafkaConsumer(bootstrap_servers=terminal.servers, group_id=group)) as one,
        closing(
            KafkaConsumer(bootstrap_servers=terminal.servers, group_id=group, client_id="c\x1b]0;x")
        ) as two,
    ):
        for member in (one, two):
            member.subscribe([topic])
        until(lambda: [member.poll(100) for member in (one, two)] and one.assignment() | two.assignment())
        said = terminal.run("groups", "describe", group)
        said += terminal.refused("groups", "reset", group, "--topic", topic, "--to", "0", "--execute")
    said += terminal.refused("groups", "forget", group, "--topic", f"{topic}-2")
    assert "\x1b" not in said and "\\x1b[2J has members" in said


def test_members_of_a_group_of_kafka_streams_have_the_partitions_that_their_tasks_read(topic):
    with TestBroker() as broker:
        broker.create_topic(topic, 2)
        delay = ConfigChange("streams.initial.rebalance.delay.ms", ConfigOperation.SET, "0")
        topology = Topology(0, [Subtopology("0", [topic])])
        joining = StreamsHeartbeat("m", 0, -1, None, None, 9.0, topology, {}, {}, {}, "p", client_id="app")
        connection = connect(broker.bootstrap_servers)
        connection.call("alter_configs", {Resource(ResourceType.GROUP, "g"): [delay]})
        assert connection.call("streams_group_heartbeat", "g", joining).error is None
        (row,) = Terminal(broker.bootstrap_servers).rows("groups", "describe", "g")
        (member,) = row["members"]
        assert (row["type"], member["client"]) == ("streams", "app")
        assert member["partitions"] == [[topic, 0], [topic, 1]]


def test_a_file_of_offsets_that_is_not_text_is_named(terminal, tmp_path):
    path = tmp_path / "offsets.csv"
    path.write_bytes(b"topic,0,\xff\n")
    said = terminal.refused("groups", "reset", "group", "--from-file", str(path))
    assert "offsets.csv: it is not TOPIC,PARTITION,OFFSET in UTF-8" in said


def test_a_file_of_offsets_names_no_partition_twice_and_may_begin_as_files_of_windows_do(
    terminal, read, tmp_path
):
    path = tmp_path / "offsets.csv"
    path.write_text(f"{read},0,1\n{read},0,2\n")
    said = terminal.refused("groups", "reset", read, "--from-file", str(path))
    assert f"offsets.csv, line 2: {read}-0 has another offset in a line above" in said
    path.write_bytes(b"\xef\xbb\xbf" + f"{read},0,1\r\n\r\n".encode())
    assert terminal.run("groups", "reset", read, "--from-file", str(path))


def test_a_group_without_a_name_is_not_made(terminal, read):
    said = terminal.misused("groups", "reset", "", "--topic", read, "--to", "earliest", "--execute")
    assert "a group has a name" in said
    assert "" not in [row["group"] for row in terminal.rows("groups", "list")]


def test_a_file_with_nothing_in_it_is_told(terminal, tmp_path):
    path = tmp_path / "offsets.csv"
    path.write_text("\n\n")
    said = terminal.refused("groups", "reset", "group", "--from-file", str(path))
    assert said == f"Error: {path}: there is no TOPIC,PARTITION,OFFSET in it\n"


def test_a_group_is_reset_in_a_topic_without_records(terminal, topic):
    terminal.run("topics", "create", topic, "--partitions", "2")
    group = topic + "-group"
    new = [{"topic": topic, "partition": number, "offset": None, "new_offset": 0} for number in range(2)]
    assert terminal.rows("groups", "reset", group, "--topic", topic, "--to", "latest") == new
    assert terminal.rows("groups", "reset", group, "--topic", topic, "--to", "latest", "--execute") == new
    (told,) = terminal.rows("groups", "describe", group)
    assert [(one["offset"], one["lag"]) for one in told["partitions"]] == [(0, 0), (0, 0)]
