"""Importing a topic: messages keep their positions, and an import that was interrupted goes on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from zper.takeover.folders import segments

from compat.kafka import KafkaProducer
from dafka.broker.connecting import connect
from dafka.protocol.raw import encode_message, encode_messages
from dafka.testing import TestBroker
from dafka.zper import Reader, ZperOptions, frames
from dafka.zper.takeover import importing
from dafka.zper.takeover.importing import Imported, ImportRefusedError, import_topic
from dafka.zper.takeover.java_folder import JavaTopic

MESSAGES = [[b"%d" % number] * (1 + number % 3) for number in range(1000)]
JAVA = b"\x00\xff" + b"x" * 255  # the Java server keeps frames as they came
WHOLE = encode_messages(MESSAGES) + JAVA + encode_message([b"last"])
BASE = 123_456


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[TestBroker]:
    with TestBroker(tmp_path / "data", zper=ZperOptions(retain_hours=-1)) as running:
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    segments(tmp_path / "events", WHOLE, [5000, 6000], BASE)
    return tmp_path / "events"


def import_(broker: TestBroker, folder: Path) -> Imported:
    return import_topic(connect(broker.bootstrap_servers), JavaTopic(folder), ZperOptions(retain_hours=-1))


def read(broker: TestBroker) -> bytes:
    with Reader("events", broker.zper.reader_address, timeout=100) as reader:
        octets, position = b"", reader.earliest()
        assert position == BASE
        while fetched := reader.fetch(position + len(octets)):
            octets += fetched
        return octets


def test_all_octets_are_at_the_positions_that_they_had(broker: TestBroker, folder: Path):
    assert import_(broker, folder) == Imported("events", 1002, BASE, BASE + len(WHOLE), 0)
    assert read(broker) == WHOLE
    with Reader("events", broker.zper.reader_address, timeout=100) as reader:
        messages = list(reader)
    assert messages == list(frames.iterate(WHOLE, BASE))
    assert [message.frames for message in messages] == [*MESSAGES, [b"x" * 255], [b"last"]]


def test_kafka_clients_read_the_records(broker: TestBroker, folder: Path):
    import_(broker, folder)
    values = broker.values("events")
    assert values[:2] == [b"0", b"1"]
    assert values[-1] == b"last"


def test_imported_topics_are_there_after_a_restart_and_can_be_added_to(
    broker: TestBroker, folder: Path, tmp_path: Path
):
    import_(broker, folder)
    broker.stop()
    broker.start()
    assert read(broker) == WHOLE


def test_importing_again_does_nothing(broker: TestBroker, folder: Path):
    import_(broker, folder)
    assert import_(broker, folder).messages == 0
    assert read(broker) == WHOLE


@pytest.mark.parametrize("after", [0, 1, 3])
def test_an_import_that_was_interrupted_goes_on(
    broker: TestBroker, folder: Path, monkeypatch: pytest.MonkeyPatch, after: int
):
    monkeypatch.setattr(importing, "_BATCH_MESSAGES", 100)
    written = []
    real = importing._Import._write

    def interrupted(self: object, *args: object) -> None:
        if len(written) == after:
            raise KeyboardInterrupt
        written.append(args)
        real(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(importing._Import, "_write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        import_(broker, folder)
    monkeypatch.setattr(importing._Import, "_write", real)
    assert import_(broker, folder).messages == 1002 - 100 * after
    assert read(broker) == WHOLE


def test_a_torn_end_is_left_out_and_said(broker: TestBroker, folder: Path):
    with (folder / f"{BASE + 6000:020d}.dat").open("ab") as file:
        file.write(b"\x00\x10torn")
    assert import_(broker, folder).left_out == 6
    assert read(broker) == WHOLE


def test_a_topic_with_other_messages_is_not_touched(broker: TestBroker, folder: Path):
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
        producer.send("events", b"kafka").get(timeout=100)
    with pytest.raises(ImportRefusedError, match="topic events cannot be imported: it exists"):
        import_(broker, folder)
    assert broker.values("events") == [b"kafka"]


def test_a_topic_that_was_imported_from_another_folder_is_not_touched(
    broker: TestBroker, folder: Path, tmp_path: Path
):
    import_(broker, folder)
    (tmp_path / "other").mkdir()
    for base, octets, why in (
        (7, WHOLE, f"began at {BASE} and not at 7"),
        (BASE, WHOLE[:2] + b"z" + WHOLE[3:], f"other messages at position {BASE}"),
        (BASE, WHOLE[: len(encode_messages(MESSAGES))], "messages behind position"),
    ):
        path = tmp_path / "other" / "events"
        made = segments(path, octets, [], base)
        with pytest.raises(ImportRefusedError, match=why):
            import_(broker, path)
        made[0].unlink()
        path.rmdir()
    assert read(broker) == WHOLE


def test_a_folder_without_messages_makes_an_empty_topic(broker: TestBroker, tmp_path: Path):
    segments(tmp_path / "events", b"", [], BASE)
    assert import_(broker, tmp_path / "events") == Imported("events", 0, BASE, BASE, 0)
    assert read(broker) == b""
