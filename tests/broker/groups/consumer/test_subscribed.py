"""What members of a consumer group read that subscribe by regular expressions, or to other topics."""

from __future__ import annotations

import pytest
from broker.groups.consumer.group_table import REBALANCE, SESSION, Table
from kafka.errors import FencedMemberEpochError
from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

from dafka.broker.groups.consumer import classic
from dafka.broker.groups.patterns import InvalidRegularExpressionError
from dafka.broker.interface.groups import JoinRequest


@pytest.fixture
def table():
    return Table()


def test_regular_expressions_and_names_add_up(table):
    x = table.join("x", "t", regex="u|v")
    table.topics.create("v", 1)
    table.resolve()
    x = table.send("x", x.epoch)
    assert {one: table.numbers(x, one) for one in "tuv"} == {"t": [0, 1, 2, 3, 4, 5], "u": [0, 1], "v": [0]}
    x = table.send("x", x.epoch, regex="")  # it gives the expression up
    assert x.assignment.keys() == {table.topics.known["t"].topic_id}
    assert table.group.expressions.resolved == {}


def test_a_member_has_what_its_expression_matches_from_a_later_heartbeat_on(table):
    x = table.join("x", "t", regex="u")
    assert (x.epoch, x.assignment.keys()) == (1, {table.topics.known["t"].topic_id})
    table.resolve()
    assert table.group.epoch == 2
    x = table.send("x", x.epoch)
    assert (x.epoch, table.numbers(x, "u")) == (2, [0, 1])


def test_members_with_an_expression_that_is_not_resolved_leave_the_epoch_as_it_is(table):
    before = table.join("x").epoch
    assert table.join("y", topics=[], regex="u").epoch == table.group.epoch == before
    table.resolve()
    assert table.group.epoch == before + 1
    assert table.join("z", topics=[], regex="u").epoch == before + 2  # it is known what that matches


def test_another_expression_takes_the_topics_of_the_one_before_at_once(table):
    x = table.join("x", topics=[], regex="t")
    table.resolve()
    x = table.send("x", x.epoch)
    epoch = table.group.epoch
    told = table.send("x", x.epoch, topics=[], regex="u", owned=table.owned(*range(6)))
    assert (table.numbers(told), told.epoch, table.group.epoch) == ([], x.epoch, epoch)
    table.resolve()
    assert table.group.epoch == epoch + 1
    x = table.send("x", told.epoch, owned={})
    assert (x.epoch, table.numbers(x), table.numbers(x, "u")) == (epoch + 1, [], [0, 1])


def test_a_member_that_has_given_up_already_is_told_at_once(table):
    x = table.join("x", topics=[], regex="t")
    table.resolve()
    x = table.send("x", x.epoch)
    told = table.send("x", x.epoch, topics=[], regex="u", owned={})
    assert table.numbers(told) == []
    (one,) = table.group.described()
    assert one.assigned == {} and table.group.state_name == "Stable"
    table.join("y")
    assert table.numbers(table.send("y", table.group.epoch)) is None  # nothing is left for it to wait for


def test_an_expression_that_matches_nothing_raises_the_epoch_for_what_was_lost(table):
    x = table.join("x", topics=[], regex="t")
    table.resolve()
    x = table.send("x", x.epoch)
    table.send("x", x.epoch, topics=[], regex="nothing", owned={})
    epoch = table.group.epoch
    table.resolve()
    assert table.group.epoch == epoch + 1
    table.send("x", x.epoch)
    table.topics.create("other", 1)
    table.resolve()
    assert table.group.epoch == epoch + 1


def test_partitions_given_up_with_an_expression_are_assigned_again(table):
    """Unlike in Kafka, where they are nobody's if the next expression matches nothing."""
    x, y = (table.join(name, topics=[], regex="t") for name in "xy")
    table.resolve()
    x = table.send("x", x.epoch)
    table.send("x", x.epoch, topics=[], regex="nothing", owned={})
    table.resolve()
    y = table.send("y", y.epoch)
    assert table.numbers(y) == [0, 1, 2, 3, 4, 5]


def test_new_matches_of_an_expression_count_for_all_members_that_have_it(table):
    x, y = (table.join(name, topics=[], regex="v.*") for name in "xy")
    table.resolve()
    table.topics.create("v", 2)
    table.resolve()
    assert table.group.epoch == 1
    assert [table.numbers(table.send(one.member_id, one.epoch), "v") for one in (x, y)] == [[0], [1]]


def test_a_member_that_leaves_while_its_expression_is_resolved_takes_it_along(table):
    table.join("x", topics=[], regex="u")
    table.join("y")
    table.group.expressions.begin(0.0, table.topics, 600.0)
    table.send("x", -1)
    epoch = table.group.epoch
    table.group.resolve({"u": frozenset({"u"})})
    assert (table.group.epoch, table.group.expressions.resolved) == (epoch, {})


def test_an_invalid_expression_is_refused_and_nobody_has_come(table):
    before = table.join("x").epoch
    with pytest.raises(InvalidRegularExpressionError, match=r"`\(` is not a valid regular expression"):
        table.join("y", regex="(")
    assert (table.group.epoch, list(table.group.members)) == (before, ["x"])
    with pytest.raises(FencedMemberEpochError):
        table.send("x", 7, regex="(")  # what is wrong with the member counts first
    with pytest.raises(InvalidRegularExpressionError):
        table.send("x", before, regex="(")


def test_a_classic_member_in_the_place_of_one_with_an_expression_has_none(table):
    table.join("x", "t", regex="u", instance_id="i")
    table.send("x", -2, instance_id="i")
    subscription = bytes(ConsumerProtocolSubscription(1, ["t"], b"", []).encode())
    joining = JoinRequest("", SESSION, REBALANCE, "consumer", [("range", subscription)], instance_id="i")
    assert classic.join(0.0, table.group, joining).error is None
    (one,) = table.group.described()
    assert (one.regex, one.is_classic) == (None, True)


def test_topics_a_member_no_longer_names_are_given_up_before_there_is_another_target(table):
    table.group.interval = 5.0
    x = table.join("x", "t", "u")
    told = table.send("x", x.epoch, topics=["t"], owned=x.assignment)
    assert (told.epoch, told.assignment) == (x.epoch, table.owned(*range(6)))
    assert table.group.needs_target
    (one,) = table.group.described()
    assert one.target.keys() == x.assignment.keys()
