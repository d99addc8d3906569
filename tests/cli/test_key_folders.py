"""``dafka keys``, and daemons that take a folder of keys."""

from __future__ import annotations

from pathlib import Path

from cli.tools import run, running
from click.testing import CliRunner

from dafka.cli import main


def keys(*arguments: object) -> tuple[int, str]:
    answer = CliRunner().invoke(main, ["keys", *map(str, arguments)])
    return answer.exit_code, answer.output


def test_nodes_are_made_listed_and_removed(tmp_path: Path):
    folder = tmp_path / "keys"
    code, said = keys("new", folder, "one", "two")
    assert (
        code == 0 and said.splitlines()[1] == f"{folder}/two.key_secret: the keys of two, which may come in"
    )
    (folder / "two.key_secret").unlink()  # it is another machine's
    assert keys("list", folder) == (0, "one *\ntwo\n")
    assert keys("remove", folder, "two") == (0, "")
    assert keys("list", folder) == (0, "one *\n")
    assert keys("allow", folder, "two", "--store", "--plain") == (0, "")
    assert keys("list", folder) == (0, "one *\ntwo store plain\n")


def test_impossible_changes_of_keys_are_one_line(tmp_path: Path):
    assert keys("new", tmp_path / "keys", "one")[0] == 0
    assert keys("new", tmp_path / "keys", "one") == (1, f"Error: {tmp_path}/keys has keys of one already\n")
    assert keys("remove", tmp_path / "keys", "x") == (1, f"Error: not on the list of {tmp_path}/keys: x\n")
    assert keys("new", tmp_path / "keys", "../x")[0] == 1
    code, said = keys("allow", tmp_path / "keys", "x")
    assert code == 1 and f"{tmp_path}/keys/x.key cannot be read" in said


def test_daemons_with_keys_are_a_mesh_and_others_are_not_in_it(tmp_path: Path):
    folder = tmp_path / "keys"
    keys("new", folder, "one", "two")
    unknown = run("store", str(tmp_path / "data"), "--keys", str(folder), "--node", "one")
    assert unknown.returncode == 1 and f"dafka keys allow {folder} one --store" in unknown.stderr
    assert keys("allow", folder, "one", "--store") == (0, "")
    with running(
        "tower", "--keys", str(folder), "--sub", "tcp://127.0.0.1:*", "--pub", "tcp://127.0.0.1:*"
    ) as tower:
        assert tower.stderr is not None
        said = tower.stderr.readline().split()
        mesh = ["--sub", said[4], "--pub", said[8], "--bind", "127.0.0.1"]
        known = [*mesh, "--keys", str(folder), "--node"]
        with running("store", str(tmp_path / "data"), *known, "one") as store:
            assert store.stderr is not None and store.stderr.readline()
            assert run("produce", "topic", *known, "two", stdin="a value\n").returncode == 0
            found = run("consume", "topic", "--from", "earliest", "--count", "1", *known, "two")
            assert "a value" in found.stdout
            refused = run("topics", *mesh)
            assert "topic" not in refused.stdout


def test_a_folder_that_is_not_there_is_named(tmp_path):
    done = CliRunner().invoke(main, ["keys", "list", str(tmp_path / "nope")])
    assert done.exit_code == 1 and "there is no folder" in done.output
