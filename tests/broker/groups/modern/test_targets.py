"""Targets of large groups are computed beside the hub, as long as one is due."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from broker.pausing import at_pause, counted_pauses
from timing import until

from dafka.broker.groups.modern.targets import ASIDE, Targets, computed
from dafka.hub.hub import get_hub, is_hub_here
from dafka.hub.turns import in_later_turn


class Many:
    """A group whose target is due so many times more."""

    def __init__(self, due: int) -> None:
        self.due = due
        self.began = 0
        self.told_at: list[int] = []
        self.computed_by_the_hub: list[bool] = []


def compute(group: Any) -> None:
    group.began += 1
    group.computed_by_the_hub.append(ASIDE.run(is_hub_here))
    group.due -= 1


def made(compute: Callable[[Any], None]) -> Targets[Any]:
    def changed(name: str, group: Many) -> None:
        group.told_at.append(group.due)

    return Targets(get_hub(), lambda name, group: group.due > 0, compute, changed)


@pytest.fixture
def targets() -> Targets[Any]:
    return made(compute)


def renew(targets: Targets[Any], group: Many, times: int = 1) -> None:
    get_hub().run(lambda: [targets.renew("g", group) for _ in range(times)])


def finish(targets: Targets[Any], group: Many) -> None:
    until(lambda: not get_hub().run(targets.is_running, group), "no target is being computed")


def test_a_target_is_computed_outside_of_the_hub_and_again_while_one_is_due(targets):
    group = Many(3)
    renew(targets, group)
    finish(targets, group)
    assert group.computed_by_the_hub == [False] * 3
    assert group.told_at == [2, 1, 0]  # each target is told, so that it is kept and the next one has its time


def test_a_target_is_begun_and_installed_in_turns_with_room(monkeypatch):
    pauses = counted_pauses(monkeypatch)  # each turn has been long
    begun, installed = list[int](), list[int]()

    def compute(group: Any) -> None:
        begun.append(pauses())
        computed(get_hub(), is_hub_here)
        installed.append(pauses())
        group.due -= 1

    group, targets = Many(2), made(compute)
    renew(targets, group)
    finish(targets, group)
    assert begun == [1, 3]
    assert installed == [2, 4]


def test_a_target_that_is_due_no_more_when_there_is_room_is_not_begun(monkeypatch):
    group, targets = Many(1), made(compute)
    happened = at_pause(monkeypatch, "_run", lambda: setattr(group, "due", 0))
    renew(targets, group)
    finish(targets, group)
    assert (happened(), group.began) == (1, 0)


def test_a_group_has_one_computation_at_a_time(targets):
    group = Many(2)
    renew(targets, group, times=5)
    finish(targets, group)
    assert group.began == 2


def test_nothing_is_computed_that_is_not_due(targets):
    group = Many(0)
    renew(targets, group)
    assert not get_hub().run(targets.is_running, group)
    assert group.began == 0


def test_others_have_a_turn_between_a_target_and_the_next_one():
    """Either takes a long one of ten thousand members."""
    turns, seen = list[None](), list[int]()

    def count(group: Any) -> None:
        seen.append(len(turns))
        compute(group)
        in_later_turn(turns.append)

    targets = made(count)
    group = Many(3)
    renew(targets, group)
    finish(targets, group)
    assert seen == [0, 1, 2]


def test_waiting_members_go_on_when_a_target_is_there(targets):
    group = Many(1)

    def renew_and_wait() -> int:
        targets.renew("g", group)
        while targets.is_running(group):
            targets.wait(group)
        return group.due

    assert get_hub().run(renew_and_wait) == 0


def test_a_computation_that_fails_is_logged_and_may_begin_again(caplog):
    failing = [True]

    def fail_once(group: Many) -> None:
        if failing.pop() if failing else False:
            raise ZeroDivisionError
        compute(group)

    targets = made(fail_once)
    group = Many(1)
    renew(targets, group)
    finish(targets, group)
    assert "the assignment of group 'g' failed unexpectedly" in caplog.text
    assert group.due == 1
    renew(targets, group)
    finish(targets, group)
    assert group.due == 0
