"""A member of a group of the newer protocols, and its epochs."""

from __future__ import annotations

from broker.groups.modern.any_group import AnyMember

from dafka.broker.groups.modern.member import JOIN_EPOCH


def test_the_epoch_before_is_the_last_other_one():
    member = AnyMember("m")
    for epoch in (1, 2, 2):
        member.advance(epoch)
    assert (member.epoch, member.previous_epoch) == (2, 1)


def test_a_member_that_joins_again_has_no_epoch_until_it_is_given_one_and_then_the_last_one_before():
    member = AnyMember("m")
    member.advance(1)
    member.advance(2)
    member.join_again()
    assert (member.epoch, member.previous_epoch) == (JOIN_EPOCH, JOIN_EPOCH)
    member.advance(3)
    assert (member.epoch, member.previous_epoch) == (3, 2)


def test_a_member_that_joins_again_and_has_the_same_epoch_as_before_has_the_same_one_before_it():
    member = AnyMember("m")
    member.advance(1)
    member.advance(2)
    member.join_again()
    member.advance(2)
    assert (member.epoch, member.previous_epoch) == (2, 1)
