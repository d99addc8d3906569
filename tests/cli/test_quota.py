"""``dafka quota``: quotas in a folder and over the wire."""

from __future__ import annotations

import pytest
from cli.tools import address_of, run, running


def test_quotas_are_set_in_the_folder_and_over_the_wire(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    rates = ["--producer-byte-rate", "1000", "--request-percentage", "12.5"]
    assert run("quota", "set", "--user", "alice", *rates, *data).returncode == 0
    with running("broker", "--listen", "127.0.0.1:0", *data) as daemon:
        there = ["--bootstrap-server", address_of(daemon)]
        both = ["--user-default", "--client-id", "c"]
        assert run("quota", "set", *both, "--consumer-byte-rate", "5", *there).returncode == 0
        expected = "user=* client-id=c\tconsumer_byte_rate=5\n"
        expected += "user=alice\tproducer_byte_rate=1000\trequest_percentage=12.5\n"
        assert run("quota", "list", *there).stdout == expected
        assert run("quota", "list", "--client-id", "c", *there).stdout == expected.splitlines(True)[0]
        assert (
            run("quota", "remove", "--user", "alice", "--key", "producer_byte_rate", *there).returncode == 0
        )
        assert run("quota", "remove", *both, *there).returncode == 0
    assert run("quota", "list", *data).stdout == "user=alice\trequest_percentage=12.5\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["set", "--user", "a"], "give a rate"),
        (["set", "--request-percentage", "1"], "name its clients"),
        (["set", "--user", "a", "--user-default", "--request-percentage", "1"], "--user or --user-default"),
        (["set", "--user", "a", "--producer-byte-rate", "0"], "--producer-byte-rate"),
        (["remove"], "name its clients"),
    ],
)
def test_options_that_do_not_go_together_are_one_line(tmp_path, arguments, words):
    ended = run("quota", *arguments, "--data", str(tmp_path / "data"))
    assert ended.returncode and words in ended.stderr and "Traceback" not in ended.stderr
