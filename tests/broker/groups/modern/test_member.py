"""A member of a group of the newer protocols, and its epochs."""

from __future__ import annotations

import pytest
from broker.groups.modern.any_group import AnyMember

from dafka.broker.groups.modern.member import JOIN_EPOCH


def test_the_epoch_before_is_the_last_other_one():
    member = AnyMember("m")
    for epoch in (1, 2, 2):
        member.advance(epoch)
    assert (member.epoch, member.previous_epoch) == (2, 1)


@pytest.mark.parametrize(("given", "before"), [(3, 2), (2, 1)], ids=["a new one", "the same one"])
def test_a_member_that_joins_again_has_no_epoch_until_it_is_given_one_and_then_the_one_before_it(
    given, before
):
    member = AnyMember("m")
    member.advance(1)
    member.advance(2)
    member.join_again()
    assert (member.epoch, member.previous_epoch) == (JOIN_EPOCH, JOIN_EPOCH)
    member.advance(given)
    assert (member.epoch, member.previous_epoch) == (given, before)
