"""What a client may do, and which refusals are in the audit log."""

from __future__ import annotations

import logging

import pytest

import dafka.broker
from dafka import Broker
from dafka.broker import limits
from dafka.broker.access.rights import SECONDS, Denials, Rights
from dafka.security import ServerAcls
from dafka.security.acls.terms import Acl, Operation, PatternType, Permission, ResourceType

READ = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "::1", Operation.READ, Permission.ALLOW)


@pytest.fixture
def told(caplog):
    caplog.set_level(logging.WARNING, "dafka.audit")

    def lines() -> list[str]:
        return [one.getMessage() for one in caplog.records if one.name == "dafka.audit"]

    return lines


def test_a_refusal_is_told_once_in_a_minute_and_many_different_ones_are_counted(told, monkeypatch):
    monkeypatch.setattr(limits, "DENIALS", 3)
    now = 100.0
    denials = Denials(lambda: now)
    for _ in range(2):
        for number in range(5):
            denials.tell("User:a", "127.0.0.1:1", "Fetch", "READ", "TOPIC", f"t{number}")
    assert told()[0] == "User:a from 127.0.0.1:1 is refused Fetch: READ on TOPIC 't0'"
    assert len(told()) == 3
    now += SECONDS
    denials.tell("User:a", "127.0.0.1:1", "Fetch", "READ", "TOPIC", "t0")
    assert told()[3:] == ["4 refusals were left out before", told()[0]]


def test_a_name_in_the_log_is_one_line_of_some_length(told):
    Denials().tell("User:a", "here", "Fetch", "READ", "TOPIC", "x\n" * 1000)
    (line,) = told()
    assert "\n" not in line and len(line) < 400


def test_only_the_beginning_of_a_long_name_is_remembered():
    denials = Denials()
    denials.tell("User:a", "here", "Fetch", "READ", "TOPIC", "x" * 1_000_000)
    assert [len(line[-1]) for line in denials._told] == [255]


def test_rights_are_of_a_principal_at_a_host(told):
    with Broker(acls=ServerAcls()) as broker:
        connection = dafka.broker.connect(broker.bootstrap_servers)
        connection.call("create_acls", [READ])
        table = connection.broker.acls
        topic = ResourceType.TOPIC
        here = Rights(table, Denials(), "User:a", "::1")
        there = Rights(table, Denials(), "User:a", "::2")
        assert here.may("Fetch", Operation.READ, topic, "t") and not told()
        assert connection.hub.run(here.allowed, "Fetch", Operation.READ, topic, ["t", "u"], True) == {"t"}
        assert not told()
        assert not there.may("Fetch", Operation.READ, topic, "t") and len(told()) == 1
        found = connection.hub.run(here.operations, topic, ["t", "u"])
        assert found == {"t": {Operation.READ, Operation.DESCRIBE}, "u": set()}
        assert here.may_any(Operation.READ, topic) and not there.may_any(Operation.READ, topic)
