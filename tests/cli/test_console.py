"""The console tools as a user starts them: real processes, real signals, the C quick start's steps."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import forking
import pytest
from cli.tools import DAFKA, environment, mesh, run, running, with_time, without_waiting
from click.testing import CliRunner
from ports import free_port

from dafka import Consumer, Producer, Store, Tower
from dafka.cli import main
from dafka.protocol.batch_writer import encode_batch


def test_lines_produced_are_stored_and_consumed_after_the_producer_is_gone(tmp_path: Path) -> None:
    with Tower() as tower, running("store", str(tmp_path / "storedb"), *mesh(tower)) as store:
        assert store.stderr is not None
        assert store.stderr.readline().startswith("store: ")
        produced = run("produce", "hello", *mesh(tower), stdin="A first event\nA second event\n")
        assert (produced.returncode, without_waiting(produced.stderr)) == (0, "")
        consumed = run("consume", "hello", "--from", "earliest", "--count", "2", *mesh(tower))
        assert consumed.stdout == "A first event\nA second event\n"
        store.send_signal(signal.SIGTERM)
        assert store.wait(200) == 0


def test_a_producer_without_a_store_says_what_is_not_acknowledged() -> None:
    with Tower() as tower:
        done = run("produce", "hello", "--timeout", "0.1", *mesh(tower), stdin="one\ntwo\n")
        assert done.returncode == 1
        assert "2 records of topic 'hello'" in done.stderr
        assert "Traceback" not in done.stderr


def test_errors_are_one_line_that_names_the_value() -> None:
    done = run("tower", "--sub", "nonsense")
    assert done.returncode == 1
    assert done.stderr.strip().startswith("Error: a tower cannot bind 'nonsense'")
    assert run("consume", "hello", "--from", "5").returncode == 2
    assert "neither earliest" in run("consume", "hello", "--from", "soon").stderr


@pytest.mark.parametrize("timeout", ["nan", "-1", "soon"])
def test_an_invalid_timeout_is_refused_before_anything_is_sent(timeout: str) -> None:
    done = run("produce", "hello", "--timeout", timeout, stdin="one\n")
    assert done.returncode == 2
    assert "'--timeout'" in done.stderr
    assert timeout in done.stderr


def test_a_signal_while_a_producer_waits_for_stores_has_it_say_what_is_missing() -> None:
    with Tower() as tower, running("produce", "hello", "--timeout", "200", *mesh(tower)) as producer:
        assert producer.stdin is not None and producer.stderr is not None
        with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
            producer.stdin.write("one\ntwo\n")
            producer.stdin.flush()
            assert [next(consumer).value for _ in range(2)] == [b"one", b"two"]
            producer.stdin.close()
            producer.stdin = None
            assert producer.stderr.readline().startswith("waiting 200 s")  # it no longer reads
            producer.send_signal(signal.SIGTERM)
        assert producer.wait(200) == 1
        said = producer.stderr.read()
        assert "2 records of topic 'hello'" in said
        assert "Traceback" not in said


def test_a_reader_that_goes_away_ends_consume_quietly() -> None:
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        running("consume", "hello", "--from", "earliest", *mesh(tower)) as consumer,
    ):
        assert consumer.stdout is not None and consumer.stderr is not None
        producer.send(b"first")
        assert consumer.stdout.readline() == "first\n"
        consumer.stdout.close()
        deadline = time.monotonic() + 100
        while consumer.poll() is None:
            assert time.monotonic() < deadline
            producer.send(b"more")
            time.sleep(0.05)
        assert consumer.returncode == 1
        assert consumer.stderr.read() == ""
        consumer.stdout = None


def test_topics_and_values_may_be_any_octets(tmp_path: Path) -> None:
    topic = os.fsdecode(b"\xff\xfetopic")
    with Tower() as tower, running("store", str(tmp_path / "db"), *mesh(tower)) as store:
        assert store.stderr is not None
        store.stderr.readline()
        options = {"capture_output": True, "timeout": 200, "env": environment()}
        produced = forking.run(
            [*DAFKA, "produce", topic, *mesh(tower)], input=b"\x00\xff\n", check=True, **options
        )
        assert without_waiting(produced.stderr.decode()) == ""
        consume = ["consume", topic, "--from", "earliest", "--count", "1"]
        consumed = forking.run([*DAFKA, *consume, *mesh(tower)], check=True, **options)
        assert consumed.stdout == b"\x00\xff\n"
        listed = with_time("topics", mesh(tower), lambda done: done.stdout)
        assert listed.stderr == ""
        assert listed.stdout.split("\t")[0] == "\\xff\\xfetopic"


def test_a_sequence_to_start_at_goes_with_a_partition() -> None:
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as producer:
        for number in range(5):
            producer.send(b"%d" % number)
        where = ["--from", "3", "--partition", producer.address, "--count", "2"]
        assert run("consume", "hello", *where, *mesh(tower)).stdout == "3\n4\n"


def test_other_partitions_than_the_one_asked_for_are_not_fetched(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        producers = [Producer("hello", tower=tower) for _ in range(2)]
        for producer in producers:
            for number in range(5):
                producer.send(b"%d" % number)
            producer.close()
        wanted, other = (producer.address for producer in producers)
        where = ["--from", "earliest", "--partition", wanted, "--count", "5", "-v"]
        done = run("consume", "hello", *where, *mesh(tower))
    assert done.stdout == "0\n1\n2\n3\n4\n"
    assert f"out: Fetch(partition=b'{wanted}'" in done.stderr
    assert f"out: Fetch(partition=b'{other}'" not in done.stderr


def test_a_reader_that_goes_away_is_noticed_when_there_is_nothing_to_write() -> None:
    """As in `dafka consume hello | head -1`."""
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        running("consume", "hello", "--from", "earliest", *mesh(tower)) as consumer,
    ):
        assert consumer.stdout is not None and consumer.stderr is not None
        producer.send(b"the only one")
        assert consumer.stdout.readline() == "the only one\n"
        consumer.stdout.close()
        assert consumer.wait(200) == 1
        assert consumer.stderr.read() == ""
        consumer.stdout = None


def test_a_producer_that_has_to_wait_for_stores_says_so(tmp_path: Path) -> None:
    with Tower() as tower, running("produce", "hello", "--timeout", "200", *mesh(tower)) as producer:
        assert producer.stdin is not None and producer.stderr is not None
        producer.stdin.write("one\n")
        producer.stdin.close()
        producer.stdin = None
        assert producer.stderr.readline() == (
            "waiting 200 s for stores to acknowledge 1 of the records; "
            "a broker is written to with `dafka kafka produce`\n"
        )
        with running("store", str(tmp_path / "db"), *mesh(tower)):
            assert producer.wait(200) == 0


def test_batches_are_produced_and_consumed_like_raw_lines(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        produced = run(
            "produce", "hello", "--batch", "--compression", "gzip", *mesh(tower), stdin="one\ntwo\n"
        )
        assert (produced.returncode, without_waiting(produced.stderr)) == (0, "")
        consumed = run("consume", "hello", "--from", "earliest", "--count", "2", *mesh(tower))
        assert consumed.stdout == "one\ntwo\n"
    refused = run("produce", "hello", "--compression", "gzip")
    assert refused.returncode == 2
    assert "--batch" in refused.stderr


def test_verbose_logs_what_passes_and_who_is_met() -> None:
    with Tower() as tower, Producer("hello", tower=tower, min_stores=0) as producer:
        producer.send(b"one")
        done = run("consume", "hello", "--from", "earliest", "--count", "1", "-v", *mesh(tower))
    assert done.stdout == "one\n"
    assert "connected to the peer at tcp://127.0.0.1:" in done.stderr
    assert "out: GetHeads(topic=b'hello'" in done.stderr
    assert "1 records, 3 octets" in done.stderr


def a_batch_in_a_line() -> bytes:
    batches = (encode_batch([(number, None, b"values", ())]) for number in range(100))
    return next(batch for batch in batches if b"\n" not in batch)


def test_records_before_a_line_that_is_refused_are_still_stored(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower) as store:
        done = forking.run(
            [*DAFKA, "produce", "hello", *mesh(tower)],
            input=b"one\ntwo\n" + a_batch_in_a_line() + b"\nlast\n",
            capture_output=True,
            timeout=200,
            env=environment(),
        )
        assert list(store.heads().values()) == [1]
    said = without_waiting(done.stderr.decode())
    assert done.returncode == 1
    assert said.startswith("Error: line 3 and what follows it are not sent: a producer of raw records")


def test_only_the_end_of_a_line_is_cut_off() -> None:
    with Tower() as tower, running("produce", "hello", "--stores", "0", *mesh(tower)) as producer:
        assert producer.stdin is not None
        with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
            producer.stdin.write("one\r\r\n\ntwo\r\n")
            producer.stdin.flush()
            assert [next(consumer).value for _ in range(3)] == [b"one\r", b"", b"two"]


@pytest.mark.parametrize(("tool", "closed"), [("produce", "input <&-"), ("consume", "output >&-")])
def test_a_standard_stream_that_is_closed_is_named(tool: str, closed: str) -> None:
    stream, redirection = closed.split()
    command = f'exec "$@" {redirection}'
    done = subprocess.run(
        ["sh", "-c", command, "sh", *DAFKA, tool, "hello"],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (1, f"Error: standard {stream} is closed\n")


def test_ctrl_c_in_a_pipeline_ends_the_input_and_not_the_wait(tmp_path: Path) -> None:
    """It ends the program before this one as well, so the input ends in the same moment."""
    with Tower() as tower, running("produce", "hello", "--timeout", "200", *mesh(tower)) as producer:
        assert producer.stdin is not None and producer.stderr is not None
        with Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer:
            producer.stdin.write("one\n")
            producer.stdin.flush()
            assert next(consumer).value == b"one"
        producer.send_signal(signal.SIGSTOP)  # so that it finds both
        producer.stdin.close()
        producer.stdin = None
        producer.send_signal(signal.SIGINT)
        producer.send_signal(signal.SIGCONT)
        with Store(tmp_path / "db", tower=tower):
            assert producer.wait(200) == 0
        assert without_waiting(producer.stderr.read()) == ""


INTERRUPTED_AT_AN_IMPORT = """
import os, signal, sys

class Finder:
    @staticmethod
    def find_spec(name, path, target=None):
        if name == "dafka.mesh.store":
            os.kill(os.getpid(), signal.SIGINT)

sys.meta_path.insert(0, Finder)
signal.signal(signal.SIGINT, signal.default_int_handler)
from dafka.cli import main
main(sys.argv[1:])
"""


def test_ctrl_c_while_a_tool_is_loaded_ends_it_without_a_word(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_AT_AN_IMPORT, "store", str(tmp_path / "db")],
        capture_output=True,
        text=True,
        timeout=200,
        env=environment(),
    )
    assert (done.returncode, done.stderr) == (-signal.SIGINT, "")


def test_ctrl_c_while_options_are_read_ends_a_tool_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("dafka.cli.options.parse_zpl", interrupted)
    done = CliRunner().invoke(main, ["tower", "-c", __file__])
    assert (done.exit_code, done.output) == (130, "")


def test_consume_says_which_command_is_for_brokers_where_there_is_no_mesh() -> None:
    nowhere = f"tcp://127.0.0.1:{free_port()}"
    with running("consume", "topic", "--sub", nowhere, "--pub", nowhere) as consumer:
        assert consumer.stderr is not None
        while "`dafka kafka consume`" not in (line := consumer.stderr.readline()):
            assert line  # it has ended


def test_consume_goes_on_where_it_was(tmp_path: Path) -> None:
    positions = ["--from", "earliest", "--positions", str(tmp_path / "positions.json")]
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        run("produce", "hello", *mesh(tower), stdin="a\nb\nc\n")
        for count, said in ((2, "a\nb\n"), (1, "c\n")):
            done = run("consume", "hello", *mesh(tower), *positions, "--count", str(count))
            assert (done.stdout, done.stderr) == (said, "")


def test_a_malformed_file_of_positions_is_an_error_of_one_line(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[]")
    missing = tmp_path / "no" / "file"
    for path, why in ((wrong, "does not say that it has version 1"), (missing, "No such file")):
        done = CliRunner().invoke(main, ["consume", "hello", "--positions", str(path)])
        assert done.exit_code == 1
        assert done.output.startswith("Error: --positions: ") and why in done.output
        assert done.output.count("\n") == 1
    both = ["--positions", str(wrong), "--partition", "AB" * 16]
    assert CliRunner().invoke(main, ["consume", "hello", *both]).exit_code == 2


def test_consume_prints_only_the_newest_and_ends_with_the_last_one(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        lines = "".join(f"{number}\n" for number in range(1000))
        assert run("produce", "pose", *mesh(tower), stdin=lines).returncode == 0
        with running("consume", "pose", "--from", "earliest", "--latest-only", *mesh(tower)) as consumer:
            assert consumer.stdout is not None
            printed = [-1]
            while printed[-1] != 999:
                printed.append(int(consumer.stdout.readline()))
            assert printed == sorted(set(printed))
