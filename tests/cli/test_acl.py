"""``dafka acl``: access control lists in a folder and over the wire."""

from __future__ import annotations

from cli.tools import run, running
from click.testing import CliRunner, Result

from dafka.cli import main


def acl(*arguments: str) -> Result:
    """The command in this process, which is quicker."""
    return CliRunner().invoke(main, ["acl", *arguments])


def test_the_first_entries_are_made_in_the_folder_and_the_next_ones_over_the_wire(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    who = ["--allow-principal", "User:ANONYMOUS"]
    made = run("acl", "add", *who, "--operation", "Alter", "--operation", "Describe", "--cluster", *data)
    assert (made.returncode, made.stdout) == (0, ""), made.stderr
    with running("broker", "--listen", "127.0.0.1:0", "--authorizer", *data) as daemon:
        wire = ["--bootstrap-server", daemon.stderr.readline().split(" ")[1]]
        more = ["--consumer", "--topic", "t", "--group", "g", "--resource-pattern-type", "prefixed"]
        assert acl("add", "--allow-principal", "User:bob", *more, *wire).exit_code == 0
        denied = [
            "--deny-principal",
            "User:bob",
            "--deny-host",
            "127.0.0.9",
            "--operation",
            "IdempotentWrite",
        ]
        assert acl("add", *denied, "--cluster", *wire).exit_code == 0
        assert acl("list", "--principal", "User:bob", *wire).output.splitlines() == [
            "User:bob\tALLOW\tDESCRIBE\tTOPIC\tPREFIXED\tt\t*",
            "User:bob\tALLOW\tREAD\tGROUP\tPREFIXED\tg\t*",
            "User:bob\tALLOW\tREAD\tTOPIC\tPREFIXED\tt\t*",
            "User:bob\tDENY\tIDEMPOTENT_WRITE\tCLUSTER\tLITERAL\tkafka-cluster\t127.0.0.9",
        ]
        matching = ["--topic", "tea", "--resource-pattern-type", "match"]
        assert len(acl("list", *matching, *wire).output.splitlines()) == 2
        removed = acl("remove", "--operation", "Read", *matching, *wire)
        assert removed.output == "User:bob\tALLOW\tREAD\tTOPIC\tPREFIXED\tt\t*\n"
        assert acl("remove", *who, "--operation", "Alter", "--cluster", *wire).exit_code == 0
    assert len(acl("list", *data).output.splitlines()) == 4


def test_a_producer_needs_what_kafka_acls_gives_it(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    more = ["--producer", "--idempotent", "--topic", "t", "--transactional-id", "x"]
    assert acl("add", "--allow-principal", "User:bob", *more, *data).exit_code == 0
    found = [line.split("\t")[2:4] for line in acl("list", *data).output.splitlines()]
    assert found == [
        ["CREATE", "TOPIC"],
        ["DESCRIBE", "TOPIC"],
        ["DESCRIBE", "TRANSACTIONAL_ID"],
        ["IDEMPOTENT_WRITE", "CLUSTER"],
        ["WRITE", "TOPIC"],
        ["WRITE", "TRANSACTIONAL_ID"],
    ]
    assert len(acl("remove", *more, *data).output.splitlines()) == 6


def test_options_that_do_not_go_together_are_one_line(tmp_path):
    data = ["--data", str(tmp_path / "data")]
    bob = ["--allow-principal", "User:bob"]
    for arguments, words in (
        (["list"], "--bootstrap-server"),
        (["add", *bob, *data], "say of what"),
        (["add", "--topic", "t", *data], "name a principal"),
        (["add", *bob, "--topic", "t", "--consumer", *data], "--consumer needs --group"),
        (["add", *bob, "--group", "t", "--producer", *data], "need --topic"),
        (["add", *bob, "--topic", "t", "--operation", "Read", "--producer", *data], "give no --operation"),
        (["add", *bob, "--group", "t", "--operation", "Write", *data], "there is no WRITE on a GROUP"),
        (["add", "--allow-principal", "bob", "--topic", "t", *data], "principalType:principalName"),
        (["add", *bob, "--topic", "t", "--deny-host", "h", *data], "--deny-host"),
        (["add", *bob, "--topic", "t", "--idempotent", *data], "--idempotent needs --producer"),
    ):
        ended = acl(*arguments)
        assert ended.exit_code and words in ended.output and "Traceback" not in ended.output, ended
