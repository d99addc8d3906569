"""Accounts: stored credentials, refused changes, and answers to unknown users."""

from __future__ import annotations

from pathlib import Path

import pytest
from kafka.errors import (
    DuplicateResourceError,
    KafkaStorageError,
    ResourceNotFoundError,
    UnacceptableCredentialError,
    UnsupportedSaslMechanismError,
)

import dafka.broker
from dafka import Broker
from dafka.broker.interface.access import CredentialDeletion, CredentialUpsertion
from dafka.log import LogError
from dafka.security import credentials

SALT = b"s" * 32


def upsertion(user: str, password: str = "secret", mechanism: int = 1, **more) -> CredentialUpsertion:
    label = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}[mechanism]
    given = {"iterations": 4096, "salt": SALT, **more}
    salted = credentials.salted_password(label, password, SALT, 4096)
    return CredentialUpsertion(user, mechanism, **{"salted_password": salted, **given})


@pytest.fixture
def ask():
    with Broker() as broker:
        connection = dafka.broker.connect(broker.bootstrap_servers)
        yield connection.call


def accounts(ask):
    return ask.__self__.broker.accounts


def test_accounts_are_there_after_a_restart_and_no_password_is_in_the_folder(tmp_path):
    for again in (False, True):
        with Broker(tmp_path) as broker:
            ask = dafka.broker.connect(broker.bootstrap_servers).call
            if not again:
                assert ask("alter_accounts", [], [upsertion("alice"), upsertion("bob", mechanism=2)])
            assert {user: dict(one.iterations) for user, one in ask("describe_accounts").items()} == {
                "alice": {1: 4096},
                "bob": {2: 4096},
            }
            known = accounts(ask).credential("SCRAM-SHA-256", "alice")
            assert credentials.is_password("SCRAM-SHA-256", known, "secret")
    salted = upsertion("alice").salted_password
    for path in Path(tmp_path).rglob("*"):
        content = path.read_bytes() if path.is_file() else b""
        assert b"secret" not in content.replace(b"accounts.secret", b"") and salted not in content
        assert salted.hex().encode() not in content


@pytest.mark.parametrize(
    ("deletions", "upsertions", "error"),
    [
        ([], [upsertion("")], UnacceptableCredentialError),
        ([], [upsertion("x" * 256)], UnacceptableCredentialError),
        ([], [upsertion("a", iterations=4095)], UnacceptableCredentialError),
        ([], [upsertion("a", iterations=16385)], UnacceptableCredentialError),
        ([], [upsertion("a", salt=b"")], UnacceptableCredentialError),
        ([], [upsertion("a", salted_password=b"p")], UnacceptableCredentialError),
        ([], [upsertion("a")._replace(mechanism=3)], UnsupportedSaslMechanismError),
        ([], [upsertion("a"), upsertion("a")], DuplicateResourceError),
        ([], [upsertion("a"), upsertion("a", mechanism=2)], DuplicateResourceError),
        ([], [upsertion("a"), upsertion("a")._replace(mechanism=9)], DuplicateResourceError),
        ([], [upsertion("a")._replace(mechanism=9), upsertion("a")], UnsupportedSaslMechanismError),
        ([CredentialDeletion("a", 2)], [upsertion("a")], ResourceNotFoundError),
        ([CredentialDeletion("a", 1)], [upsertion("a")], ResourceNotFoundError),
        ([CredentialDeletion("a", 1)], [], ResourceNotFoundError),
        ([CredentialDeletion("a", 0)], [], UnsupportedSaslMechanismError),
    ],
)
def test_changes_of_a_user_are_all_or_nothing(ask, deletions, upsertions, error):
    outcomes = ask("alter_accounts", deletions, [*upsertions, upsertion("b")])
    (refused,) = (outcomes[user] for user in outcomes if user != "b")
    assert refused.error is error and refused.detail
    assert outcomes["b"].error is None
    assert list(ask("describe_accounts")) == ["b"]


def test_there_is_a_most(ask, monkeypatch):
    monkeypatch.setattr("dafka.broker.access.accounts.ACCOUNTS_KEPT", 1)
    assert ask("alter_accounts", [], [upsertion("a")])["a"].error is None
    assert ask("alter_accounts", [], [upsertion("b")])["b"].error is not None
    assert ask("alter_accounts", [], [upsertion("a", "other")])["a"].error is None


def test_a_credential_is_deleted(ask):
    for mechanism in (1, 2):
        assert ask("alter_accounts", [], [upsertion("a", mechanism=mechanism)])["a"].error is None
    both = ask("alter_accounts", [CredentialDeletion("a", 1), CredentialDeletion("a", 2)], [])
    assert both["a"].error is DuplicateResourceError
    instead = ask("alter_accounts", [CredentialDeletion("a", 1)], [upsertion("a", mechanism=2)])
    assert instead["a"].error is DuplicateResourceError
    assert dict(ask("describe_accounts", ["a"])["a"].iterations) == {1: 4096, 2: 4096}
    assert ask("alter_accounts", [CredentialDeletion("a", 1)], [])["a"].error is None
    assert dict(ask("describe_accounts", ["a"])["a"].iterations) == {2: 4096}


def test_an_unknown_user_looks_like_the_known_ones(ask):
    def form(user: str) -> tuple[int, int]:
        hub = ask.__self__.hub
        found = hub.run(accounts(ask).credential, "SCRAM-SHA-256", user)
        return found.iterations, len(found.salt)

    assert form("nobody") == (4096, 32)
    ask("alter_accounts", [], [upsertion("a", iterations=9000, salt=b"t" * 20)])
    assert form("nobody") == form("a") == (9000, 20)
    ask("alter_accounts", [CredentialDeletion("a", 1)], [])
    assert form("nobody")[0] in (4096, 9000)
    assert "secret" not in repr(upsertion("a"))


def test_many_are_changed_in_rounds_and_one_that_fails_takes_no_other_with_it(ask, monkeypatch):
    monkeypatch.setattr("dafka.broker.access.accounts.ACL_ROUND", 2)
    writer, commits = accounts(ask)._writer, []

    class FullNow:
        def put_and_wait(self, rows):
            commits.append(len(rows))
            if len(commits) == 2:
                raise LogError("folder", "the disk is full")
            writer.put_and_wait(rows)

    monkeypatch.setattr(accounts(ask), "_writer", FullNow())
    outcomes = ask("alter_accounts", [], [upsertion(name) for name in "abcde"])
    assert commits == [2, 2, 1]
    assert [name for name, one in outcomes.items() if one.error is KafkaStorageError] == ["c", "d"]
    assert sorted(ask("describe_accounts")) == ["a", "b", "e"]
