"""``dafka log verify`` and ``dafka log dump``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from log.messages import ADDRESS, batch, chunk_rows, database, numbered

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import TopicSpec
from dafka.cli import main
from dafka.cli.log import log as command
from dafka.log import Log, NotALogError
from dafka.protocol.batch_writer import encode_batch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "log"


@pytest.fixture
def filled(folder: Path) -> Path:
    with Log(folder, clock=lambda: 1000.0) as log:
        raw, batches = log.partition(b"raw", ADDRESS), log.partition(b"batches", ADDRESS)
        for first in (0, 3):
            log.write([(raw, numbered(first, 3, 10_000))], {("table", "key"): first})
        log.write([(batches, [batch(0, 5, 7), batch(2, 9)])])
        log.trim(batches, before_offset=1)
    return folder


def run(*arguments: object) -> Result:
    return CliRunner().invoke(command, [str(argument) for argument in arguments])


def test_partitions_are_listed(filled: Path) -> None:
    lines = run("dump", filled, "--json").output.splitlines()
    raw, batches = map(json.loads, lines)
    assert (raw["topic"], raw["kind"], raw["next_sequence"], raw["values"]) == ("raw", "raw", 6, 2)
    assert (batches["first_offset"], batches["next_offset"]) == (1, 3)
    assert "topic=raw" in run("dump", filled).output


def test_records_are_shown_decoded(filled: Path) -> None:
    shown = run("dump", filled, "batches").output
    assert "offset=1 timestamp=1970-01-01T00:00:00.007Z key='key' value='value at 7'" in shown
    assert "offset=0" not in shown
    rows = [
        json.loads(line) for line in run("dump", filled, "raw", "--json", "--limit", 2).output.splitlines()
    ]
    assert [row["offset"] for row in rows] == [0, 1]
    assert rows[0]["value"].startswith("message 0")
    assert run("dump", filled, "missing").exit_code == 1


def test_a_brokers_partitions_have_their_numbers(folder: Path) -> None:
    with Broker(folder) as broker:
        connection = connect(broker.bootstrap_servers)
        connection.call("create_topics", {"orders": TopicSpec(2)})
        for number in (1, 0):
            content = encode_batch([(0, None, b"in %d" % number, ())])
            connection.call("produce", {("orders", number): [content]})
    listed = [json.loads(line) for line in run("dump", folder, "--json").output.splitlines()]
    assert [(row["topic"], row["partition"]) for row in listed] == [("orders", 0), ("orders", 1)]
    records = [json.loads(line) for line in run("dump", folder, "orders", "--json").output.splitlines()]
    assert [(row["partition"], row["value"]) for row in records] == [(0, "in 0"), (1, "in 1")]
    with database(folder) as rows:
        rows.execute("UPDATE Cache SET value = x'00' WHERE key = ?", (b"t\6topicsorders",))
    shown = run("dump", folder)
    assert "partitions have no numbers here" in shown.output and "topic=orders" in shown.output


def test_dump_goes_on_behind_damage(filled: Path) -> None:
    row, _, value = chunk_rows(filled)[0]
    with database(filled) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value[:-1] + b"?", row))
    shown = run("dump", filled, "raw", "--json")
    assert "damaged: sequences 0 to 2 of topic b'raw'" in shown.output
    assert '"offset": 3' in shown.output
    assert shown.exit_code == 1  # as that of verify


def test_names_are_shown_without_what_a_terminal_would_do(folder: Path) -> None:
    with Log(folder) as log:
        log.write([(log.partition(b"\x1b[2J\n", b"\x1b]0;"), [b"\x1b[2J"])])
    for arguments in ([], ["\x1b[2J\n"]):
        shown = CliRunner().invoke(main, ["log", "dump", str(folder), *arguments])
        assert shown.exit_code == 0
        assert "\\x1b" in shown.output
        assert "\x1b" not in shown.output
        assert shown.output.count("\n") == 1


def test_a_good_log_is_counted(filled: Path) -> None:
    shown = run("verify", filled)
    assert shown.exit_code == 0
    assert "2 partitions, 3 values, 8 messages" in shown.output
    assert "no damage" in shown.output


def test_each_damage_is_a_line_and_the_exit_status_is_1(filled: Path) -> None:
    row, _, value = chunk_rows(filled)[0]
    with database(filled) as rows:
        rows.execute("UPDATE Cache SET value = ? WHERE rowid = ?", (value[:-1] + b"?", row))
        rows.execute("UPDATE Cache SET value = x'00' WHERE key = ?", (b"t\5tablekey",))
    shown = run("verify", filled)
    assert shown.exit_code == 1
    *damages, total = shown.output.splitlines()
    assert [line.partition(":")[0] for line in damages] == [
        f"sequences 0 to 2 of topic b'raw' of {ADDRESS!r}",
        "key 'key' of table 'table'",
    ]
    assert total.endswith("2 damaged places")


def test_an_empty_folder_is_not_a_log_and_stays_empty(tmp_path: Path) -> None:
    assert isinstance(run("dump", tmp_path).exception, NotALogError)
    assert isinstance(run("verify", tmp_path).exception, NotALogError)
    assert list(tmp_path.iterdir()) == []
