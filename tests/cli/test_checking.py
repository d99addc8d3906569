"""``dafka broker --check`` beside a broker that runs."""

from __future__ import annotations

from pathlib import Path

from cli.tools import LOOPBACK, address_of, refused, running

from dafka import Store


def test_a_broker_that_runs_is_not_disturbed(tmp_path: Path) -> None:
    data = str(tmp_path / "data")
    with running("broker", *LOOPBACK, "--data", data) as process:
        address = address_of(process)
        done = refused("broker", "--listen", address, "--data", data, "--metrics-port", "0", "--check")
        assert done.returncode == 0, done.stderr
        assert process.poll() is None


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    done = refused("broker", "--ssl-password", "very secret", "--check")
    assert done.returncode == 0 and "very secret" not in done.stdout and "(secret)" in done.stdout


def test_the_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with Store(tmp_path / "data"):
        done = refused("broker", "--data", str(tmp_path / "data"), "--check")
    assert done.returncode == 1 and "is the folder of a store of the mesh" in done.stderr


def test_a_damaged_database_is_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    with Store(data):
        pass
    (data / "cache.db").write_bytes(b"no database" * 1000)
    done = refused("broker", "--data", str(data), "--check")
    assert done.returncode == 1 and str(data) in done.stderr and done.stderr.count("\n") == 1, done.stderr
