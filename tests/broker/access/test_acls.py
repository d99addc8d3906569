"""Access control lists: stored rules, refused changes, and decisions."""

from __future__ import annotations

import pytest
from broker.server.client import WireClient
from kafka.errors import InvalidRequestError, KafkaStorageError, PolicyViolationError, SecurityDisabledError
from kafka.protocol.admin import DeleteAclsRequest

import dafka.broker
from dafka import Broker
from dafka.broker import limits
from dafka.broker.codec.acls import filter_fields
from dafka.log import LogError
from dafka.security import ServerAcls
from dafka.security.acls.terms import Acl, AclFilter, Operation, PatternType, Permission, ResourceType

READ = Acl(ResourceType.TOPIC, "t", PatternType.LITERAL, "User:a", "*", Operation.READ, Permission.ALLOW)
WRITE = READ._replace(operation=Operation.WRITE)
HOST = ("127.0.0.1",)


def ask_of(broker: Broker):
    return dafka.broker.connect(broker.bootstrap_servers).call


def table(ask):
    return ask.__self__.broker.acls


@pytest.fixture
def ask():
    with Broker(acls=ServerAcls(super_users="User:admin")) as broker:
        yield ask_of(broker)


def may(
    ask, who: str, operation: Operation, name: str = "t", kind: ResourceType = ResourceType.TOPIC
) -> bool:
    return bool(table(ask).operations(who, HOST, kind, name) >> operation & 1)


def test_entries_are_there_after_a_restart(tmp_path):
    for again in (False, True):
        with Broker(tmp_path, acls=ServerAcls()) as broker:
            ask = ask_of(broker)
            if not again:
                assert [one.error for one in ask("create_acls", [READ, WRITE, READ])] == [None] * 3
                (deleted,) = ask("delete_acls", [AclFilter(operation=Operation.WRITE)])
                assert deleted.acls == [WRITE]
            assert ask("describe_acls", AclFilter()) == [READ]
            assert may(ask, "User:a", Operation.READ) and not may(ask, "User:a", Operation.WRITE)


def test_a_broker_without_the_option_has_none(tmp_path):
    with Broker(tmp_path) as broker:
        for method, argument in (
            ("create_acls", [READ]),
            ("describe_acls", AclFilter()),
            ("delete_acls", []),
        ):
            with pytest.raises(SecurityDisabledError):
                ask_of(broker)(method, argument)


def test_decisions_are_kept_until_the_lists_change(ask):
    before = table(ask).version
    assert not may(ask, "User:a", Operation.READ) and may(ask, "User:admin", Operation.READ)
    assert not table(ask).may_any("User:a", HOST, Operation.READ, ResourceType.TOPIC)
    ask("create_acls", [READ])
    assert may(ask, "User:a", Operation.READ) and table(ask).version > before
    ask("delete_acls", [AclFilter()])
    assert not may(ask, "User:a", Operation.READ)


def test_kept_decisions_have_a_bound(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACL_DECISIONS", 10)
    for number in range(100):
        assert not may(ask, f"User:{number}", Operation.READ)
        assert len(table(ask)._decisions) <= 10


def test_decisions_about_very_long_names_are_not_kept(ask):
    assert not may(ask, "User:a", Operation.READ, "t" * 1_000_000)
    assert may(ask, "User:admin", Operation.READ, "t" * 1_000_000)
    assert not table(ask)._decisions


def test_resources_without_an_entry_may_be_open_to_everybody():
    with Broker(acls=ServerAcls(allow_everyone_if_no_acl_found=True)) as broker:
        ask = ask_of(broker)
        assert may(ask, "User:b", Operation.READ)
        ask("create_acls", [READ])
        assert not may(ask, "User:b", Operation.READ) and may(ask, "User:b", Operation.READ, "other")


def test_entries_that_cannot_be_are_refused_one_by_one(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACLS_KEPT", 2)
    third = READ._replace(name="u")
    outcomes = ask(
        "create_acls", [READ._replace(name=""), READ, READ._replace(host="h" * 1025), WRITE, third]
    )
    errors = [one.error for one in outcomes]
    assert errors == [InvalidRequestError, None, InvalidRequestError, None, PolicyViolationError]
    assert "1024 octets" in outcomes[2].detail
    assert set(ask("describe_acls", AclFilter())) == {READ, WRITE}
    unknown = AclFilter(operation=Operation.UNKNOWN)
    assert ask("delete_acls", [unknown])[0].error is InvalidRequestError
    with pytest.raises(InvalidRequestError):
        ask("describe_acls", unknown)


def test_rows_that_are_not_entries_are_damage(tmp_path):
    from dafka.broker.access import acls

    row = acls._row(READ)
    key = acls._key(READ)
    assert acls._is_acl(key, row)
    for damaged in (row[:-1], [*row[:-1], 9], ["TOPIC", *row[1:]], [2, "", *row[2:]], {}, None):
        assert not acls._is_acl(key, damaged)
    assert not acls._is_acl(key[::-1], row)


class FillsUp:
    """A writer whose disk is full from the second commit on."""

    def __init__(self, writer):
        self.put_and_wait_before = writer.put_and_wait
        self.commits = 0

    def put_and_wait(self, rows):
        self.commits += 1
        if self.commits > 1:
            raise LogError("folder", "the disk is full")
        self.put_and_wait_before(rows)


def test_a_deletion_that_fails_half_way_tells_which_rules_are_gone_and_which_are_left(monkeypatch):
    monkeypatch.setattr(limits, "ACL_ROUND", 2)
    entries = [READ._replace(name=f"t{number}") for number in range(5)]
    with Broker(listen="127.0.0.1:0", acls=ServerAcls(super_users="User:ANONYMOUS")) as broker:
        ask = ask_of(broker)
        ask("create_acls", entries)
        acls = table(ask)
        monkeypatch.setattr(acls, "_writer", FillsUp(acls._writer))
        (outcome,) = ask("delete_acls", [AclFilter(operation=Operation.READ)])
        assert outcome.error is KafkaStorageError and "the disk is full" in outcome.detail
        assert (list(outcome.acls), list(outcome.left)) == (entries[:2], entries[2:])
        assert ask("describe_acls", AclFilter()) == entries[2:]
        request = DeleteAclsRequest(
            filters=[DeleteAclsRequest.DeleteAclsFilter(**filter_fields(AclFilter(name="t3")))]
        )
        with WireClient(broker) as wire:
            (found,) = wire.ask(request, 3).filter_results
        (left,) = found.matching_acls
        assert (found.error_code, left.error_code) == (0, KafkaStorageError.errno)
        assert left.resource_name == "t3" and "the disk is full" in left.error_message


def test_a_request_deletes_by_a_bounded_number_of_filters_that_have_to_look_at_all_entries(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACL_FILTERS", 2)
    ask("create_acls", [READ, WRITE])
    exact = [AclFilter(*READ._replace(name=f"t{number}")) for number in range(3)]
    refused = ask("delete_acls", [*exact, AclFilter(), AclFilter(name="t"), AclFilter(host="*")])
    assert {one.error for one in refused} == {PolicyViolationError} and len(refused) == 6
    assert ask("describe_acls", AclFilter()) == [READ, WRITE]
    found = ask("delete_acls", [*exact, AclFilter(*READ), AclFilter(name="t")])
    assert [list(one.acls) for one in found] == [[], [], [], [READ], [READ, WRITE]]


def test_many_filters_of_a_deletion_are_not_compared_with_each_entry(ask, monkeypatch):
    """A thousand of them and 20 000 entries took a minute."""
    prefixed = READ._replace(pattern=PatternType.PREFIXED)
    ask("create_acls", [READ, WRITE, prefixed])
    monkeypatch.setattr(AclFilter, "takes", lambda *_: pytest.fail("each entry is compared"))
    match = AclFilter(name="tea", pattern=PatternType.MATCH)
    found = ask("delete_acls", [match, AclFilter(name="t", operation=Operation.WRITE), AclFilter(*READ)])
    assert [list(one.acls) for one in found] == [[prefixed], [WRITE], [READ]]
    assert ask("describe_acls", AclFilter(*READ)) == []


def test_a_request_deletes_a_bounded_number_of_entries_or_none(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACLS_DELETED", 2)
    third = READ._replace(name="u")
    ask("create_acls", [READ, WRITE, third])
    for filters in ([AclFilter()], [AclFilter(name="u"), AclFilter(name="t")]):
        refused = ask("delete_acls", filters)
        assert {one.error for one in refused} == {InvalidRequestError} and len(refused) == len(filters)
    assert set(ask("describe_acls", AclFilter())) == {READ, WRITE, third}
    found = ask("delete_acls", [AclFilter(name="t"), AclFilter(name="t")])
    assert [set(one.acls) for one in found] == [{READ, WRITE}] * 2


def test_an_entry_that_several_filters_take_is_in_the_outcome_of_each(ask):
    ask("create_acls", [READ, WRITE])
    unknown = AclFilter(operation=Operation.UNKNOWN)
    filters = [AclFilter(name="t"), unknown, AclFilter(operation=Operation.WRITE), AclFilter(*READ)]
    found = ask("delete_acls", filters)
    assert [list(one.acls) for one in found] == [[READ, WRITE], [], [WRITE], [READ]]
    assert [one.error for one in found] == [None, InvalidRequestError, None, None]
    assert ask("describe_acls", AclFilter()) == []


def test_the_outcomes_of_a_deletion_name_a_bounded_number_of_entries(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACLS_LISTED", 5)
    ask("create_acls", [READ, WRITE])
    refused = ask("delete_acls", [AclFilter()] * 3)
    assert {one.error for one in refused} == {PolicyViolationError} and len(refused) == 3
    assert set(ask("describe_acls", AclFilter())) == {READ, WRITE}
    assert [len(one.acls) for one in ask("delete_acls", [AclFilter(), AclFilter()])] == [2, 2]


def test_a_deletion_that_fails_half_way_is_told_to_the_filters_of_what_is_left(ask, monkeypatch):
    monkeypatch.setattr(limits, "ACL_ROUND", 1)
    ask("create_acls", [READ, WRITE])
    monkeypatch.setattr(table(ask), "_writer", FillsUp(table(ask)._writer))
    found = ask("delete_acls", [AclFilter(*READ), AclFilter(name="t"), AclFilter(name="other")])
    assert [one.error for one in found] == [None, KafkaStorageError, None]
    assert [(list(one.acls), list(one.left)) for one in found] == [([READ], []), ([READ], [WRITE]), ([], [])]
