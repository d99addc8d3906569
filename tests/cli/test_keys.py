"""Every option has a variable and a key of a file, all are listed, and what no option has is an error."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest
from cli.tools import COMMANDS, refused, run, running

from dafka.cli import keys, main


def load(name: str) -> click.Command | None:
    return main.get_command(click.Context(main), name)  # type: ignore[attr-defined, no-any-return]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_a_variable_and_a_key_of_its_own(name: str) -> None:
    found = list(keys.settings(COMMANDS[name], tuple(name.split())))
    # A TOPIC is said each time; the folder of a store is an argument, and a setting all the same.
    assert [one.parameter for one in found] == [
        one for one in COMMANDS[name].params if isinstance(one, click.Option) or one.name == "folder"
    ]
    with_file = [one.key for one in found if one.parameter.name != "config"]
    assert None not in with_file
    assert len(set(with_file)) == len(with_file)
    assert len({one.variable for one in found}) == len(found)


@pytest.mark.parametrize(
    ("written", "wrong", "near"),
    [
        ("broker\n    lissten = 127.0.0.1:0", "broker/lissten", "broker/listen"),
        ("broker\n    retention-ms = 5", "broker/retention-ms", "broker/retention_ms"),
        ("brokr\n    listen = 127.0.0.1:0", "brokr/listen", "broker/listen"),
        ("listen = 127.0.0.1:0", "listen", "broker/listen"),
        ("broker\n    lissten", "broker/lissten", "broker/listen"),
        ("beacon\n    intervall = 5", "beacon/intervall", "beacon/interval"),
        ("store\n    dbs = x\nbroker\n    db = y", "store/dbs", "store/db"),
    ],
)
def test_a_key_that_no_option_has_is_named_with_the_nearest_one(
    tmp_path: Path, written: str, wrong: str, near: str
) -> None:
    config = tmp_path / "b.zpl"
    config.write_text(written + "\n")
    done = refused("broker", "-c", str(config))
    assert done.returncode == 2
    assert f"{config}: keys that are unknown: {wrong!r} (the nearest known one is {near!r})" in done.stderr
    assert "`dafka config broker` lists them all" in done.stderr


def test_a_key_without_a_value_and_one_with_two_are_named(tmp_path: Path) -> None:
    config = tmp_path / "b.zpl"
    config.write_text("broker\n    db\n")
    assert "broker/db has no value" in run("broker", "-c", str(config)).stderr
    config.write_text("broker\n    db = a\nbroker\n    db = b\n")
    assert "line 4 gives broker/db a second value" in run("broker", "-c", str(config)).stderr


def test_nodes_share_a_file_as_the_c_daemons_do(tmp_path: Path) -> None:
    config = tmp_path / "all.zpl"
    config.write_text(
        "beacon\n    interval = 200\n    verbose = 0\n"
        "tower\n    sub_address = tcp://127.0.0.1:*\n    pub_address = tcp://127.0.0.1:*\n"
        "store\n    db = storedb\n    retention_ms = 1000\n"
        "producer\n    head_interval = 500\n"
        "consumer\n    offset\n        reset = earliest\n"
        f"broker\n    listen = 127.0.0.1:0\n    db = {tmp_path / 'data'}\n"
    )
    for name in ("tower", "broker"):
        with running(name, "-c", str(config)) as daemon:
            assert daemon.stderr is not None
            assert daemon.stderr.readline().startswith(f"{name}: ")


@pytest.mark.parametrize(
    ("variable", "near"),
    [
        ("DAFKA_TOWER_SUBB", "DAFKA_TOWER_SUB"),
        ("DAFKA_TOWR_SUB", "DAFKA_TOWER_SUB"),
        ("DAFKA_EMBEDED", "DAFKA_EMBEDDED"),
        ("DAFKA_VERSION", "DAFKA_TOWER_CONFIG"),
    ],
)
def test_a_variable_that_no_option_has_is_named_with_the_nearest_one(variable: str, near: str) -> None:
    done = refused("tower", "--sub", "tcp://127.0.0.1:*", "--pub", "nonsense", **{variable: "1"})
    assert done.returncode == 2
    assert f"unknown: {variable!r} (the nearest known one is {near!r})" in done.stderr
    assert refused("tower", "--help", **{variable: "1"}).returncode == 0
    assert refused("config", "tower", **{variable: "1"}).returncode == 0


def test_variables_of_other_commands_and_of_a_container_s_services_are_ignored() -> None:
    environment = {
        "DAFKA_STORE_PUB": "tcp://tower:5557",
        "DAFKA_PIPELINE_ARCHIVE_TOPICS": "orders",
        "DAFKA_EMBEDDED": "data",
        "DAFKA_SERVICE_HOST": "10.0.0.1",
        "DAFKA_SERVICE_PORT": "9092",
        "DAFKA_SERVICE_PORT_KAFKA": "9092",
        "DAFKA_PORT": "tcp://10.0.0.1:9092",
        "DAFKA_TOWER_PORT": "tcp://10.0.0.1:5556",
        "DAFKA_TOWER_PORT_5556_TCP": "tcp://10.0.0.1:5556",
        "DAFKA_TOWER_PORT_5556_TCP_ADDR": "10.0.0.1",
    }
    command = COMMANDS["tower"]
    names = main.list_commands(click.Context(main))  # type: ignore[attr-defined]
    keys.check_variables(environment, "tower", command, names)
    with pytest.raises(keys.UnknownNameError, match="'DAFKA_TOWER_PORT'"):
        keys.check_variables({"DAFKA_TOWER_PORT": "5556"}, "tower", command, names)


def test_the_variables_of_scripts_and_tests_stop_no_command() -> None:
    root = Path(__file__).parent.parent.parent
    sources = [*(root / "tests").rglob("*.py"), *(root / "scripts").rglob("*")]
    read = re.compile(r"environ(?:\.get\(|\[)\"(DAFKA_\w+)")
    found = {
        name
        for source in sources
        if source.is_file() and source.suffix in ("", ".py")
        for name in read.findall(source.read_text(errors="replace"))
    }
    assert found
    keys.check_variables(dict.fromkeys(found, "1"), "tower", COMMANDS["tower"], ["tower"])
