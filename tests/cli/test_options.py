"""Options from the command line, the environment and the C daemons' ZPL files."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from cli.tools import mesh, refused, run, running, without_waiting

from dafka import Store, Tower
from dafka.cli import keys, main
from dafka.cli.zpl import ZplError, parse_zpl

# Every path of the C daemons' files, by the commands that read it.
NODES = ("store", "produce", "consume")
C_PATHS = {
    **dict.fromkeys(
        ["beacon/interval", "beacon/timeout", "beacon/address", "beacon/pub_address", "beacon/sub_address"],
        NODES,
    ),
    **dict.fromkeys(["tower/pub_address", "tower/sub_address", "tower/verbose"], ("tower",)),
    **dict.fromkeys(["store/db", "store/high_watermark", "store/verbose"], ("store",)),
    **dict.fromkeys(
        [
            "producer/head_interval",
            "producer/high_watermark",
            "producer/terminate_unacked",
            "producer/verbose",
        ],
        ("produce",),
    ),
    **dict.fromkeys(["consumer/offset/reset", "consumer/high_watermark", "consumer/verbose"], ("consume",)),
}


@pytest.mark.parametrize("path", C_PATHS)
def test_each_path_of_a_c_daemons_file_is_read(path: str) -> None:
    for name in C_PATHS[path]:
        command = main.get_command(click.Context(main), name)  # type: ignore[attr-defined]
        assert path in [one.key for one in keys.settings(command, (name,))]


def test_a_store_takes_all_it_needs_from_a_file(tmp_path: Path) -> None:
    folder = tmp_path / "from the file"
    with Tower() as tower:
        config = tmp_path / "store.zpl"
        config.write_text(
            f"""
# a comment
beacon
    interval = 200
    timeout = 900
    address = 127.0.0.1
    sub_address = {tower.addresses[0]}
    pub_address = "{tower.addresses[1]}"
store
    db = "{folder}"
    high_watermark = 5000
    verbose = 1
"""
        )
        with running("store", "-c", str(config), "--bind", "127.0.0.1") as store:
            assert store.stderr is not None
            # it is verbose, so others may come before
            assert any(line.strip().endswith(f"in {folder}") for line in iter(store.stderr.readline, ""))
            produced = run("produce", "hello", *mesh(tower), stdin="one\n")
            assert (produced.returncode, without_waiting(produced.stderr)) == (0, "")
        assert folder.is_dir()


@pytest.mark.parametrize(("value", "lines"), [("1", True), ("0", False)])
def test_verbose_comes_from_a_file_too(tmp_path: Path, value: str, lines: bool) -> None:
    import logging

    from click.testing import CliRunner

    config = tmp_path / "c.zpl"
    config.write_text(f"consumer\n    verbose = {value}\n")
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        root.handlers.clear()
        # --from SEQUENCE without --partition ends it before there is any node, behind the set-up.
        done = CliRunner().invoke(main, ["consume", "hello", "-c", str(config), "--from", "5"])
        assert done.exit_code == 2
        assert (root.level == logging.DEBUG) is lines
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def test_the_command_line_goes_before_the_environment_and_that_before_the_file(tmp_path: Path) -> None:
    config = tmp_path / "t.zpl"
    config.write_text("tower\n    sub_address = nonsense-of-the-file\n")
    arguments = ["tower", "-c", str(config), "--pub", "tcp://127.0.0.1:*"]
    assert "nonsense-of-the-file" in run(*arguments).stderr
    assert "of-the-environment" in run(*arguments, DAFKA_TOWER_SUB="of-the-environment").stderr
    both = run(*arguments, "--sub", "of-the-line", DAFKA_TOWER_SUB="of-the-environment")
    assert "of-the-line" in both.stderr


def test_a_file_is_utf_8_with_a_mark_or_without_whatever_the_locale(tmp_path: Path) -> None:
    config = tmp_path / "t.zpl"
    for mark in (b"", b"\xef\xbb\xbf"):
        config.write_bytes(mark + "tower\n    sub_address = t\u00fcrm\n".encode())
        said = run("tower", "-c", str(config), PYTHONUTF8="0", LC_ALL="C", PYTHONCOERCECLOCALE="0").stderr
        assert "a tower cannot bind 't\u00fcrm'" in said


def test_a_file_that_is_not_zpl_is_named_with_the_line(tmp_path: Path) -> None:
    config = tmp_path / "c.zpl"
    config.write_text("tower\n   odd = 1\n")
    done = run("tower", "-c", str(config))
    assert done.returncode == 2
    assert "line 2 is indented by 3 blanks" in done.stderr
    with pytest.raises(ZplError):
        parse_zpl("= 5")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["store", ""], "'[FOLDER]': a folder has a name"),
        (["consume", "hello", "--partition", "abc"], "'--partition': 'abc' is not a node address"),
        (["consume", "hello", "--from", "\u00b2"], "'--from': '\u00b2' is neither earliest"),
        (["consume", "hello", "--from", str(2**63)], "is neither earliest"),
        (["perf", "producer", "1", "1", "--hold", "nan"], "'--hold'"),
        (["consume", "hello", "--high-watermark", str(2**31)], "high_water_mark is a number of messages"),
        (["consume", "hello", "--pub", "tcp://127.0.0.1:99999"], "'tcp://127.0.0.1:99999' is not an address"),
    ],
)
def test_values_that_cannot_be_are_named_before_anything_starts(arguments: list[str], says: str) -> None:
    done = refused(*arguments)
    assert done.returncode in (1, 2)
    assert says in done.stderr
    assert "Traceback" not in done.stderr


def test_a_store_has_a_folder_with_a_name_in_a_file_too(tmp_path: Path) -> None:
    config = tmp_path / "store.zpl"
    config.write_text('store\n    db = ""\n')
    done = refused("store", "-c", str(config))
    assert (done.returncode, "a folder has a name" in done.stderr) == (2, True)


SEVERAL = "the option", "the environment", "the file"


@pytest.mark.parametrize("source", SEVERAL)
def test_several_towers_are_given_with_commas(tmp_path: Path, source: str) -> None:
    """One of the two is not there, and the other is enough."""
    with Tower() as gone:
        takes, gives = gone.addresses
    with Tower() as tower, Store(tmp_path / "db", tower=tower):
        sub, pub = f"{takes},{tower.addresses[0]}", f"{gives}, {tower.addresses[1]}"
        arguments, variables = ["--bind", "127.0.0.1"], {}
        if source == "the option":
            arguments += ["--sub", sub, "--pub", pub]
        elif source == "the environment":
            variables = {"DAFKA_PRODUCE_SUB": sub, "DAFKA_PRODUCE_PUB": pub}
        else:
            config = tmp_path / "producer.zpl"
            config.write_text(f'beacon\n    sub_address = {sub}\n    pub_address = "{pub}"\n')
            arguments += ["-c", str(config)]
        done = run("produce", "hello", *arguments, stdin="one\n", **variables)
        assert (done.returncode, without_waiting(done.stderr)) == (0, "")


def test_each_tower_has_two_addresses() -> None:
    done = run("consume", "hello", "--sub", "tcp://a:1,tcp://b:1")
    assert done.returncode == 2
    assert "every tower has an address in --sub and one in --pub: there are 2 and 1" in done.stderr
