"""dafka zper import."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli.tools import run, running
from timing import until
from zper.takeover.folders import segments

from dafka import Broker
from dafka.protocol.raw import encode_messages
from dafka.zper import Reader, ZperOptions

WHOLE = encode_messages([[b"id", b"%d" % number] for number in range(100)])


@pytest.fixture
def config(tmp_path: Path) -> str:
    (tmp_path / "java").mkdir()
    segments(tmp_path / "java" / "events", WHOLE + b"\x00\x09torn", [300], 1000)
    segments(tmp_path / "java" / "alarms", b"\x00\x01x", [])
    file = tmp_path / "server.properties"
    file.write_text(f"base_dir = {tmp_path}/data\nretain_hours = -1\n")
    return str(file)


def test_imports_all_topics_and_says_their_positions(config: str, tmp_path: Path) -> None:
    done = run("zper", "import", str(tmp_path / "java"), config)
    assert (done.returncode, done.stderr) == (0, "")
    end = 1000 + len(WHOLE)
    assert done.stdout.splitlines() == [
        "alarms: 1 messages, positions 0 to 3",
        f"events: 100 messages, positions 1000 to {end}, 6 octets at its end left out",
    ]
    with (
        Broker(tmp_path / "data", zper=ZperOptions(retain_hours=-1)) as broker,
        Reader("events", broker.zper.reader_address, position=1000, timeout=100) as reader,
    ):
        assert len(list(reader)) == 100
        assert (reader.earliest(), reader.latest()) == (1000, end)


def test_an_import_that_was_killed_goes_on(config: str, tmp_path: Path) -> None:
    whole = encode_messages([[b"id", b"%06d" % number + bytes(300)] for number in range(100_000)])
    segments(tmp_path / "java" / "big", whole, [7_000_000, 20_000_000])

    def written() -> int:
        return sum(path.stat().st_size for path in (tmp_path / "data").rglob("*") if path.is_file())

    with running("zper", "import", str(tmp_path / "java"), config) as process:
        until(lambda: process.poll() is not None or written() > 5_000_000)
        process.kill()
    done = run("zper", "import", str(tmp_path / "java"), config)
    assert done.returncode == 0
    with (
        Broker(tmp_path / "data", zper=ZperOptions(retain_hours=-1)) as broker,
        Reader("big", broker.zper.reader_address, timeout=200) as reader,
    ):
        position = 0
        while fetched := reader.fetch(position, 1 << 23):
            assert whole.startswith(fetched, position)
            position += len(fetched)
        assert position == len(whole)


def test_warns_of_messages_that_retention_will_delete(config: str, tmp_path: Path) -> None:
    Path(config).write_text(f"base_dir = {tmp_path}/data\n")
    for path in (tmp_path / "java" / "events").iterdir():
        os.utime(path, (10**9, 10**9))
    done = run("zper", "import", str(tmp_path / "java"), config)
    assert done.returncode == 0
    assert "warning: events has messages older than retain_hours (168)" in done.stderr
    assert "alarms has" not in done.stderr


def test_the_folder_of_the_java_server_itself_is_not_written_to(config: str, tmp_path: Path) -> None:
    Path(config).write_text(f"base_dir = {tmp_path}/java")
    done = run("zper", "import", str(tmp_path / "java"), config)
    assert done.returncode == 2
    assert "give another base_dir" in done.stderr


def test_a_folder_without_topics_is_an_error(config: str, tmp_path: Path) -> None:
    (tmp_path / "nothing").mkdir()
    done = run("zper", "import", str(tmp_path / "nothing"), config)
    assert done.returncode == 1
    assert "has no folder TOPIC" in done.stderr
