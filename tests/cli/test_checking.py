"""``dafka broker --check`` beside a broker that runs."""

from __future__ import annotations

from pathlib import Path

from cli.tools import LOOPBACK, address_of, refused, running


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
