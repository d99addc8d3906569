"""``dafka kafka top`` as its user starts it: for a program, and at a terminal."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cli.pseudo_terminal import PseudoTerminal
from cli.tools import DAFKA, LOOPBACK, address_of, produce, refused, running
from ports import free_port

QUIT = "\x03"  # Ctrl-C


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[subprocess.Popen[str]]:
    with running("broker", *LOOPBACK, "--data", str(tmp_path / "data")) as process:
        yield process


def test_one_look_is_a_table_or_an_object(terminal, topic) -> None:
    group = topic + "-group"
    terminal.run("topics", "create", topic, "--partitions", "2")
    terminal.run("produce", topic, stdin="a\nb\nc\n")
    terminal.run("consume", topic, "--group", group, "--count", "1")
    options = ("top", "--topic", topic, "--group", group, "--interval", "0.1")
    (look,) = terminal.rows(*options, "--once")
    (row,) = look["topics"]
    assert (row["topic"], row["partitions"], row["records"], row["written"]) == (topic, 2, 3, 0.0)
    assert row["octets"] > 0 and row["growth"] == 0.0
    (row,) = look["groups"]
    assert row["group"] == group and row["lag"] >= 1 and row["read"] == 0.0 and row["delay"] > 0
    assert {"Metadata", "ListOffsets", "ListGroups", "OffsetFetch"} <= {
        one["request"] for one in look["answers"]
    }
    shown = terminal.run(*options, "--once")
    assert re.search(rf"^{topic} +2 +3 +0 +0$", shown, re.M) and group in shown


def test_looks_go_on_until_there_are_enough(terminal, topic) -> None:
    terminal.run("topics", "create", topic)
    looks = terminal.rows("top", "--topic", topic, "--count", "3", "--interval", "0.1")
    assert [one["topics"][0]["written"] for one in looks] == [None, 0.0, 0.0]


def test_options_that_mean_nothing_are_refused_with_the_reason(terminal) -> None:
    assert "needs a terminal" in terminal.misused("top")
    assert "--json" in terminal.misused("top", "--count", "3")
    assert "give no --count" in terminal.misused("top", "--count", "3", "--json", "--once")
    assert "0.1<=x<=3600" in terminal.misused("top", "--json", "--interval", "0")


def test_without_textual_it_says_what_to_install_and_what_works_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "textual", None)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    said = refused("kafka", "top", TERM="xterm").stderr
    assert said == "Error: the screen needs textual: pip install 'dafka[top]', or use --once or --json\n"


def test_it_is_watched_while_a_broker_goes_away_and_comes_back(tmp_path: Path) -> None:
    data = ["--data", str(tmp_path / "data")]
    address = f"127.0.0.1:{free_port()}"
    with running("broker", "--listen", address, *data) as first:
        assert address_of(first) == address
        produce(address, "orders", b"one")
        command = [*DAFKA, "kafka", "top", "-b", address, "--interval", "0.1"]
        with PseudoTerminal(command) as terminal:
            terminal.wait(lambda shown: "orders" in shown and "WRITTEN/S" in shown and "GROUP" in shown)
            terminal.resize(50, 12)
            terminal.wait(lambda shown: "q Quit" in shown and len(shown.splitlines()) == 12)
            first.kill()
            first.wait()
            terminal.wait("no answer for")
            with running("broker", "--listen", address, *data) as second:
                assert address_of(second) == address
                terminal.wait(lambda shown: "no answer" not in shown and "orders" in shown)
                produce(address, "bills", b"one")
                terminal.wait("bills")
                terminal.press("q")
                assert terminal.ended() == 0 and terminal.after == terminal.before
                assert b"\x1b[?1049l" in terminal.written and b"Traceback" not in terminal.written


@pytest.mark.parametrize("how", [QUIT, signal.SIGTERM, signal.SIGHUP], ids=["ctrl-c", "term", "hangup"])
def test_the_terminal_is_given_back_however_it_ends(broker: subprocess.Popen[str], how: str | int) -> None:
    with PseudoTerminal([*DAFKA, "kafka", "top", "-b", address_of(broker)]) as terminal:
        terminal.wait("cluster")
        if isinstance(how, str):
            terminal.press(how)
        else:
            os.kill(terminal.process.pid, how)
        assert terminal.ended() == 0 and terminal.after == terminal.before
        assert b"\x1b[?1049l" in terminal.written and b"Traceback" not in terminal.written


def test_it_ends_while_nobody_answers(broker: subprocess.Popen[str]) -> None:
    command = [*DAFKA, "kafka", "top", "-b", address_of(broker), "--interval", "0.1"]
    with PseudoTerminal(command) as terminal:
        terminal.wait("cluster")
        broker.send_signal(signal.SIGSTOP)
        try:
            time.sleep(0.3)  # so that a look waits, which is what may go wrong
            terminal.press(QUIT)
            assert terminal.ended() == 0
        finally:
            broker.send_signal(signal.SIGCONT)
