"""Ports that are handed out are no other process's, whatever the system chooses from."""

from __future__ import annotations

import multiprocessing
import os
import socket
import subprocess
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from ports import free_port

from scripts.apache import ports
from scripts.apache.ports import Ports

ROOT = Path(__file__).parents[1]
TAKER = """
import sys
from scripts.apache.ports import free_port
print(*(free_port() for _ in range(300)), flush=True)
sys.stdin.read()
"""


def test_processes_that_take_ports_at_once_get_different_ones() -> None:
    own = {free_port() for _ in range(30)}
    with ExitStack() as stack:
        takers = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", TAKER],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                    env=dict(os.environ, PYTHONPATH=str(ROOT)),
                )
            )
            for _ in range(4)
        ]
        taken = [int(port) for taker in takers for port in taker.stdout.readline().split()]
        assert len(own) == 30 and len(set(taken)) == 1200
        assert own.isdisjoint(taken)
        for taker in takers:
            taker.communicate("")


def test_a_forked_process_gets_others_than_its_parent() -> None:
    own = {free_port() for _ in range(30)}
    child = multiprocessing.get_context("fork")
    receiving, sending = child.Pipe(duplex=False)
    process = child.Process(target=lambda: sending.send([free_port() for _ in range(30)]))
    process.start()
    theirs = receiving.recv()
    process.join()
    assert own.isdisjoint(theirs)
    assert not own & {free_port() for _ in range(30)}


def test_ports_of_a_process_that_has_died_are_given_to_others(tmp_path: Path) -> None:
    span = range(*_room(2))
    code = (
        "import os, sys; from pathlib import Path; from scripts.apache.ports import Ports\n"
        "ports = Ports(Path(sys.argv[1]), range(int(sys.argv[2]), int(sys.argv[3])))\n"
        "print(ports.take(), ports.take(), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "locks"), str(span.start), str(span.stop)]
    with (
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=dict(os.environ, PYTHONPATH=str(ROOT)),
        ) as other,
        closing(Ports(tmp_path / "locks", span)) as mine,
    ):
        assert other.stdout is not None
        assert {int(port) for port in other.stdout.readline().split()} == set(span)
        with pytest.raises(OSError, match="all ports are taken"):
            mine.take()
    with closing(Ports(tmp_path / "locks", span)) as mine:
        assert {mine.take(), mine.take()} == set(span)


def test_a_port_that_a_socket_has_is_not_handed_out(tmp_path: Path) -> None:
    span = range(*_room(3))
    with closing(Ports(tmp_path / "locks", span)) as mine, socket.socket() as taken:
        taken.bind(("127.0.0.1", span[1]))
        assert {mine.take(), mine.take()} == {span[0], span[2]}


def test_ports_are_handed_out_again_when_all_have_been_the_oldest_first(tmp_path: Path) -> None:
    span = range(*_room(4))
    with closing(Ports(tmp_path / "locks", span)) as mine:
        first = [mine.take() for _ in span]
        assert sorted(first) == list(span)
        assert [mine.take() for _ in span] == first
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", first[0]))
            assert [mine.take() for _ in range(3)] == first[1:]


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [
        ((32_768, 60_999), range(10_000, 32_768)),
        ((16_000, 65_535), range(10_000, 16_000)),
        ((49_152, 65_535), range(10_000, 49_152)),
        ((1_024, 32_767), range(32_768, 65_536)),
        ((10_240, 65_535), range(1_024, 10_240)),
        ((1_024, 65_535), range(10_000, 65_536)),
    ],
)
def test_ports_for_servers_are_outside_those_of_the_system(chosen: tuple[int, int], expected: range) -> None:
    assert ports.span(chosen) == expected


def test_the_range_of_this_system_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first, last = ports.chosen_by_the_system()
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert first <= server.getsockname()[1] <= last
    for text in ("", "many\tof them\n"):
        (tmp_path / "range").write_text(text)
        monkeypatch.setattr(ports, "CHOSEN", tmp_path / "range")
        assert ports.chosen_by_the_system() == (16_000, 65_535)


def _room(count: int) -> tuple[int, int]:
    """The first of so many neighbouring ports that are this process's, and the one after the last."""
    while True:
        taken = [free_port() for _ in range(count)]
        if taken[-1] - taken[0] == count - 1:
            return taken[0], taken[-1] + 1
