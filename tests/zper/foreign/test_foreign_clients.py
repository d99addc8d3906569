"""JeroMQ of ZPER's time, a current one, and C on libzmq: each against every server, as the README shows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from documents.markdown import blocks
from timing import until
from zper.foreign.programs import NAMES, Program, build, java

from dafka.protocol.raw import message_sizes
from dafka.testing import TestBroker
from dafka.zper import Writer, ZperOptions

pytestmark = pytest.mark.xdist_group("foreign")

README = Path(__file__).parents[3] / "dafka" / "zper" / "README.md"
MESSAGES = [
    message
    for number in range(50)
    for message in ([b"hello %d" % number], [b"id %d" % number, b"body %d" % number])
]
LONG = [b"long", b"x" * 300, b"", b"y" * 255, b"z" * 254]
SHOWN = [b"|".join(message).decode() for message in MESSAGES]


@pytest.fixture(scope="module", params=NAMES)
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    return build(request.param, tmp_path_factory.mktemp("program"))


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Iterator[TestBroker]:
    # On a machine that starts Java and Spark beside it a client may need more than ten seconds.
    monkeypatch.setattr("dafka.sockets.limits.HANDSHAKE_SECONDS", 100.0)
    with TestBroker(zper=ZperOptions(flush_interval=50, segment_size=500)) as running:
        yield running


@pytest.fixture
def filled(broker: TestBroker) -> TestBroker:
    write(broker, MESSAGES)
    return broker


def write(broker: TestBroker, messages: list[list[bytes]]) -> None:
    with Writer("events", broker.zper.writer_address, timeout=100) as writer:
        for message in messages:
            writer.send(*message)


def stored(broker: TestBroker) -> list[list[bytes]]:
    return [
        [record.value] if record.key is None else [record.key, record.value]
        for record in broker.wait_for_records("events", len(MESSAGES), timeout=100)
    ]


@pytest.mark.parametrize(
    ("kind", "mode"), [("DEALER", 0), ("PUSH", 0), ("DEALER", 1), ("DEALER", 2), ("REQ", 2)]
)
def test_writes_in_each_mode(program: Program, broker: TestBroker, kind: str, mode: int) -> None:
    answers = program.run("write", broker.zper.writer_address, "events", kind, mode, 50)
    last_frames = [message[-1].decode() for message in MESSAGES]
    assert answers == last_frames if mode == 2 else set(answers) <= set(last_frames)
    assert len(answers) == (0, 1, 100)[mode]
    assert stored(broker) == MESSAGES


def test_asks_for_offsets(program: Program, filled: TestBroker) -> None:
    address = filled.zper.reader_address
    end = sum(message_sizes(MESSAGES))
    assert program.run("offset", address, "events", -2) == ["status 100", "0"]
    status, start, latest = program.run("offset", address, "events", -1)
    assert (status, latest) == ("status 100", str(end))
    every = program.run("offset", address, "events", 9_999_999_999_999)
    assert every[1] == "0" and every[-2:] == [start, latest]
    assert program.run("offset", address, "events", 9_999_999_999_999, 1) == ["status 100", start, latest]
    assert program.run("offset", address, "events", 1000) == ["status 101"]


@pytest.mark.parametrize("size", [60, 1000, 1 << 31])
def test_fetches_super_frames_and_iterates(program: Program, filled: TestBroker, size: int) -> None:
    lines = program.run("fetch", filled.zper.reader_address, "events", 0, size)
    assert lines == [*SHOWN, f"offset {sum(message_sizes(MESSAGES))}"]


def test_fetches_long_and_empty_frames(program: Program, broker: TestBroker) -> None:
    write(broker, [LONG, [b""], LONG])
    shown = b"|".join(LONG).decode()
    lines = program.run("fetch", broker.zper.reader_address, "events", 0, 1 << 20)
    assert lines == [shown, "", shown, f"offset {sum(message_sizes([LONG, [b''], LONG]))}"]


def test_an_offset_beyond_the_end_is_status_101(program: Program, filled: TestBroker) -> None:
    assert program.run("fetch", filled.zper.reader_address, "events", 10**9, 100) == ["status 101"]


def test_streams(program: Program, filled: TestBroker) -> None:
    start = sum(message_sizes(MESSAGES[:90]))
    with program.running("stream", filled.zper.reader_address, "events", start, 12) as lines:
        assert lines.readline() == "status 100\n"
        assert [lines.readline() for _ in range(10)] == [f"{line}\n" for line in SHOWN[90:]]
        write(filled, [[b"new"], LONG])
        assert lines.readline() == "new\n"
        assert lines.readline() == b"|".join(LONG).decode() + "\n"
        assert lines.readline() == "ok\n"


@pytest.mark.parametrize("kind", ["DEALER", "PULL"])
def test_gets_new_messages_from_the_relay(program: Program, filled: TestBroker, kind: str) -> None:
    with program.running("relay", filled.zper.relay_address, "events", kind, 2) as lines:
        until(lambda: filled.metrics()["zper_streams"] == 1)
        write(filled, [[b"new"], LONG])
        assert lines.readline() == "new\n"
        assert lines.readline() == b"|".join(LONG).decode() + "\n"
        assert lines.readline() == "ok\n"


def test_listens_to_acks(program: Program, filled: TestBroker) -> None:
    end = sum(message_sizes(MESSAGES))
    with program.running("acks", filled.zper.ack_address, "events", 2) as lines:
        until(lambda: filled.zper._publisher.metrics()["subscriptions"] == 1)
        write(filled, [[b"id-1", b"x"], [b"id-2"]])
        assert lines.readline() == f"events|id-1|{end}\n"
        assert lines.readline() == f"events|id-2|{end + 9}\n"
        assert lines.readline() == "ok\n"


def test_asks_a_controller_for_nodes(program: Program, filled: TestBroker) -> None:
    status, document = program.run("nodes", filled.zper.controller_address, "events")
    assert status == "status 100"
    assert json.loads(document)["nodes"][0]["binds"] == dict(filled.zper.addresses)


@pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("jeromq")])
def test_the_java_in_the_document_runs(name: str, tmp_path: Path, broker: TestBroker) -> None:
    (block,) = (one for one in blocks(README) if one.language == "java")
    code = re.sub(r"tcp://127\.0\.0\.1:5555", broker.zper.writer_address, block.text)
    imports = "import java.nio.ByteBuffer; import java.util.UUID; import org.zeromq.ZMQ;"
    source = tmp_path / "Document.java"
    end = 'writer.close(); System.out.println("ok"); System.exit(0);'
    source.write_text(
        f"{imports}\npublic class Document {{ public static void main(String[] given) {{\n{code}{end} }} }}\n"
    )
    assert Program(name, java(name, tmp_path, source)).run() == ["departed"]
    (record,) = broker.wait_for_records("flights")
    assert (record.key, record.value) == (b"UA-1545", b"departed")
