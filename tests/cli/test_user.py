"""``dafka user``: accounts in a folder and over the wire."""

from __future__ import annotations

import pytest
from cli.tools import run, running


@pytest.fixture
def password(tmp_path) -> str:
    path = tmp_path / "password"
    path.write_text("secret\nand what stands below it\n")
    return str(path)


def test_the_first_account_is_made_in_the_folder_and_the_next_one_over_the_wire(tmp_path, password):
    data = str(tmp_path / "data")
    made = run("user", "add", "alice", "--data", data, "--password-file", password)
    assert (made.returncode, made.stdout) == (0, "")
    with running("broker", "--listen", "SASL_PLAINTEXT://127.0.0.1:0", "--data", data) as daemon:
        address = daemon.stderr.readline().split("SASL_PLAINTEXT://")[1].split(" ")[0]
        login = ["--bootstrap-server", address, "--security-protocol", "SASL_PLAINTEXT"]
        login += ["--sasl-username", "alice", "--sasl-password-file", password]
        more = ["--mechanism", "SCRAM-SHA-512", "--iterations", "5000", "--password-file", "-"]
        assert run("user", "add", "bob", *more, *login, stdin="other\n").returncode == 0
        assert run("user", "list", *login).stdout == "alice\tSCRAM-SHA-256\t4096\nbob\tSCRAM-SHA-512\t5000\n"
        assert run("user", "add", "bob", "--password-file", password, *login).returncode == 0
        assert run("user", "remove", "bob", *login).returncode == 0  # both mechanisms
        refused = run("user", "list", "--data", data)
        assert refused.returncode == 1 and "Error:" in refused.stderr
    assert run("user", "list", "--data", data).stdout == "alice\tSCRAM-SHA-256\t4096\n"


def test_options_that_do_not_go_together_are_one_line(tmp_path, password):
    data = str(tmp_path / "data")
    (tmp_path / "data").mkdir()
    (tmp_path / "empty").write_text("")
    for arguments, words in (
        (["list"], "--bootstrap-server"),
        (["list", "--bootstrap-server", "a:1", "--security-protocol", "SASL_SSL"], "--sasl-username"),
        (["add", "a", "--data", data, "--password-file", str(tmp_path / "empty")], "no password"),
        (["remove", "nobody", "--data", data], "there is no user 'nobody'"),
    ):
        ended = run("user", *arguments)
        assert ended.returncode and words in ended.stderr and "Traceback" not in ended.stderr
