"""Which tasks a process may take."""

from __future__ import annotations

import pytest

from dafka.broker.groups.streams.owned import Owned
from dafka.broker.groups.streams.tasks import NOTHING, Roles

TASK = {"s": frozenset({0})}


def test_an_active_task_is_one_members_alone_and_a_copy_is_in_another_process():
    owned = Owned()
    owned.take("p", Roles(TASK))
    assert owned.free("q", Roles(TASK)) == NOTHING
    assert owned.free("p", Roles({}, TASK)) == NOTHING
    assert owned.free("q", Roles({}, TASK)) == Roles({}, TASK)


def test_a_process_with_a_copy_runs_the_task_when_it_has_given_the_copy_up():
    owned = Owned()
    owned.take("p", Roles({}, TASK))
    assert owned.free("p", Roles(TASK)) == NOTHING and owned.free("q", Roles(TASK)) == Roles(TASK)
    owned.release("p", Roles({}, TASK))
    assert owned.free("p", Roles(TASK)) == Roles(TASK)


def test_nobody_takes_what_is_taken():
    owned = Owned()
    owned.take("p", Roles(TASK))
    with pytest.raises(AssertionError):
        owned.take("q", Roles(TASK))


def test_one_of_two_roles_of_a_task_is_free():
    assert Owned().free("p", Roles(TASK, TASK)) == Roles(TASK)


def test_a_copy_that_two_members_of_a_process_have_is_taken_until_both_have_given_it_up():
    owned = Owned()
    owned.take("p", Roles({}, TASK))
    owned.take("p", Roles({}, TASK))
    owned.release("p", Roles({}, TASK))
    assert owned.free("p", Roles(TASK)) == NOTHING
    owned.release("p", Roles({}, TASK))
    assert owned.free("p", Roles(TASK)) == Roles(TASK)
