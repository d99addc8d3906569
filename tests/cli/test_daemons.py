"""``dafka tower`` and ``dafka store`` as daemons."""

from __future__ import annotations

import re
import signal
import socket
from pathlib import Path

import click
import pytest
from cli.tools import COMMANDS, mesh, running
from click.testing import CliRunner

from dafka import Tower
from dafka.cli import main
from dafka.cli.daemons import TopicBounds
from dafka.log import Log
from dafka.mesh.tower import first_interface


def test_the_bounds_and_the_metrics_of_a_store_come_from_a_file(tmp_path: Path) -> None:
    config = tmp_path / "s.zpl"
    text = (
        'store\n    db = s\n    retention_ms = 5\n    topic_retention = "a:1:2 b::3"\n    metrics_port = 0\n'
    )
    config.write_text(text + "    durability = power\n")
    command = COMMANDS["store"]
    with click.Context(main) as root:
        context = command.make_context("store", ["-c", str(config)], parent=root)
    got = context.params
    assert (got["folder"], got["retention_ms"], got["metrics_port"], got["durability"]) == (
        "s",
        5,
        0,
        "power",
    )
    assert [(topic, *bounds) for topic, bounds in got["topic_retention"]] == [(b"a", 1, 2), (b"b", -1, 3)]


def test_a_tower_that_listens_on_every_interface_says_so_with_an_address_for_other_machines() -> None:
    with running("tower", "--sub", "tcp://*:*", "--pub", "tcp://*:*") as tower:
        assert tower.stderr is not None
        said = tower.stderr.readline()
        host = first_interface()
        assert said.count(f"tcp://{host}:") == 2
        assert "listening on every interface" in said
        ports = [int(port) for port in re.findall(r":(\d+)", said)]
        for port in ports:
            socket.create_connection((host, port), 100).close()


def test_a_tower_says_where_it_is_and_ends_on_a_signal() -> None:
    with running("tower", "--sub", "tcp://127.0.0.1:*", "--pub", "tcp://127.0.0.1:*") as tower:
        assert tower.stderr is not None
        said = tower.stderr.readline()
        assert said.count("tcp://127.0.0.1:") == 2
        assert "every interface" not in said
        tower.send_signal(signal.SIGINT)
        assert tower.wait(200) == 0


@pytest.mark.parametrize(
    ("bounds", "says"),
    [
        ("hello", "'hello' is not TOPIC:MS:BYTES"),
        ("hello:soon:1", "'hello:soon:1' is not TOPIC:MS:BYTES"),
        ("hello:-2:1", "-2"),
        (":1:1", "':1:1' is not TOPIC:MS:BYTES"),
    ],
)
def test_bounds_that_make_no_sense_are_named_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, bounds: str, says: str
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, ["store", "--topic-retention", bounds])
    assert done.exit_code == 2
    assert says in done.output
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("bounds", "expected"),
    [("a:1:2", (b"a", 1, 2)), ("a::3", (b"a", -1, 3)), ("a:1:", (b"a", 1, -1)), ("a:b:1:2", (b"a:b", 1, 2))],
)
def test_without_a_bound_there_is_no_limit_and_topics_may_have_colons(
    bounds: str, expected: tuple[bytes, int, int]
) -> None:
    topic, retention = TopicBounds().convert(bounds, None, None)
    assert (topic, *retention) == expected


def test_a_store_says_its_address_and_its_folder_and_ends_on_a_signal(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    with Tower() as tower, running("store", str(folder), *mesh(tower)) as store:
        assert store.stderr is not None
        assert re.fullmatch(rf"store: [0-9A-F]{{32}} in {re.escape(str(folder))}\n", store.stderr.readline())
        store.send_signal(signal.SIGTERM)
        assert store.wait(200) == 0
    with Log(folder) as log:
        assert log.partitions() == []
