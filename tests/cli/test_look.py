"""``dafka topics`` and ``dafka sniff``."""

from __future__ import annotations

import signal
import threading
from pathlib import Path

import pytest
from cli.tools import mesh, refused, run, running, with_time
from mesh.peer import ADDRESS, Peer
from ports import free_port

from dafka import Producer, Store, Tower
from dafka.protocol import commands


def test_topics_lists_the_partitions_of_live_and_dead_producers_with_their_heads(tmp_path: Path) -> None:
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        dead = Producer("gone", tower=tower)
        dead.send(b"value")
        dead.close()
        with Producer("here", tower=tower) as living:
            living.send(b"value")
            living.send(b"value")
            living.flush(100)
            expected = [f"gone\t{dead.address}\t0", f"here\t{living.address}\t1"]
            listed = with_time("topics", mesh(tower), lambda done: done.stdout.splitlines() == expected)
            assert listed.stdout.splitlines() == expected
            only = with_time("topics", ["here", *mesh(tower)], lambda done: done.stdout)
            assert only.stdout == f"here\t{living.address}\t1\n"


def test_sniff_prints_what_is_said_and_nothing_that_steers_a_terminal() -> None:
    with Tower() as tower, Peer(tower.addresses) as peer, running("sniff", *mesh(tower)) as sniff:
        assert sniff.stdout is not None
        peer.meet(b"M", b"H", b"F", b"G", b"K")
        peer.send(commands.Record(ADDRESS, b"hello\x1b[31m\n", 7, b"value\xff"))
        peer.send(commands.Fetch(ADDRESS, ADDRESS, b"hello", 3, 5))
        lines: list[str] = []
        reader = threading.Thread(target=lambda: lines.extend(sniff.stdout.readline() for _ in range(2)))
        reader.start()
        reader.join(200)
        assert not reader.is_alive()
        record, fetch = (line.partition(" ")[2].strip() for line in lines)
        address = ADDRESS.decode()
        assert record == (
            rf"Record address={address} topic=hello\x1b[31m\n sequence=7 size=6 content=b'value\xff'"
        )
        assert fetch == f"Fetch partition={address} address={address} topic=hello sequence=3 count=5"


def test_sniff_says_what_it_could_not_decode() -> None:
    with Tower() as tower, Peer(tower.addresses) as peer, running("sniff", *mesh(tower)) as sniff:
        assert sniff.stdout is not None and sniff.stderr is not None
        peer.meet(b"M", b"H")
        peer.send_frames([b"Mhello\0\x07"])
        peer.send_frames([b"Hhello\0\x07"])
        peer.send(commands.Head(ADDRESS, b"hello", 7))
        assert "Head address=" in sniff.stdout.readline()
        sniff.send_signal(signal.SIGINT)
        assert sniff.wait(200) == 0
        assert sniff.stderr.read() == "not decoded: 1 frame-count, 1 version\n"


def test_sniff_ends_when_its_reader_has_gone() -> None:
    """As in `dafka sniff | head -1`, also in a mesh where nothing is said any more."""
    with Tower() as tower, Peer(tower.addresses) as peer, running("sniff", *mesh(tower)) as sniff:
        assert sniff.stdout is not None and sniff.stderr is not None
        peer.meet(b"H")
        peer.send(commands.Head(ADDRESS, b"hello", 7))
        assert "Head address=" in sniff.stdout.readline()
        sniff.stdout.close()
        assert sniff.wait(200) == 1
        assert sniff.stderr.read() == ""
        sniff.stdout = None


@pytest.mark.parametrize("tool", ["topics", "sniff"])
@pytest.mark.parametrize("seconds", ["nan", "-1", "soon"])
def test_invalid_seconds_are_refused(tool: str, seconds: str) -> None:
    done = refused(tool, "--seconds", seconds)
    assert done.returncode == 2
    assert "'--seconds'" in done.stderr


def test_sniff_ends_after_the_seconds_asked_for() -> None:
    with Tower() as tower:
        done = with_time("sniff", mesh(tower), lambda done: done.returncode == 0)
        assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("tool", ["topics", "sniff"])
def test_a_mesh_without_a_tower_is_not_taken_for_an_empty_one(tool: str) -> None:
    sub, pub = (f"tcp://127.0.0.1:{free_port()}" for _ in range(2))
    done = run(tool, "--seconds", "0.5", "--sub", sub, "--pub", pub, "--bind", "127.0.0.1")
    assert (done.returncode, done.stdout) == (1, "")
    heard = f"nothing was heard from a tower at {pub} in 0.5 s: is one running there?"
    assert done.stderr.startswith(f"Error: {heard}")


def test_a_mesh_that_is_empty_has_no_topics() -> None:
    with Tower() as tower:
        done = with_time("topics", mesh(tower), lambda done: done.returncode == 0)
        assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
