"""Rows of members with very many partitions, read again beside the hub, and rows of very many members."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from broker.groups.restarts import Disk
from broker.groups.test_kept_members import Life, begin_generation
from kafka.errors import UnknownMemberIdError

from dafka.broker.groups import kept_members, kept_rows
from dafka.broker.groups.group import Group
from dafka.broker.groups.kept_members import MEMBERS, WHOLE, key_of
from dafka.broker.groups.kept_rows import CLASSIC
from dafka.broker.interface.groups import GroupType, JoinRequest
from dafka.broker.interface.topics import TopicSpec


@pytest.fixture
def life(broker):
    return Life(broker)


def test_a_member_with_very_many_partitions_is_read_again_beside_the_hub(life, monkeypatch):
    life.client.create("large", 1000)
    epoch = life.consumer("x", 0, topics=("large",)).member_epoch
    aside: list[str] = []

    class Aside:
        def run(self, function: Any, *arguments: Any) -> Any:
            aside.append(function.__name__)
            return function(*arguments)

    monkeypatch.setattr(kept_members, "_ASIDE", Aside())
    life.again()
    assert sorted(set(aside)) == ["_decoded", "_encoded"]
    assert life.consumer("x", epoch).error is None


def test_a_member_whose_row_is_too_large_unless_it_is_packed_goes_on_after_a_restart(life, monkeypatch):
    names = [f"topic-{number}" for number in range(400)]
    life.client.call("create_topics", {name: TopicSpec(1) for name in names})
    monkeypatch.setattr(kept_rows, "KEPT_MEMBER_OCTETS", 25_000)  # in JSON it has some 40 000
    epoch = life.consumer("x", 0, topics=names).member_epoch
    life.again()
    assert life.consumer("x", epoch).error is None
    monkeypatch.setattr(kept_rows, "KEPT_MEMBER_TEXT", 10_000)
    epoch = life.consumer("y", 0, topics=names).member_epoch
    life.again()
    assert life.consumer("y", epoch).error is UnknownMemberIdError


@pytest.mark.parametrize("broken", [b'["consumer", "x"]', b'["nobody"]', b"{", b"7", b"[" * 100_000])
def test_a_large_row_of_another_shape_has_the_members_of_its_group_join_again(life, caplog, broken):
    life.client.create("large", 1000)
    epoch = life.consumer("x", 0, topics=("large",)).member_epoch
    key = key_of("g", "x")
    assert type(life.rows.get(key)) is bytes
    writer = life.client.core._writer
    life.client.connection.hub.run(writer.put_and_wait, {(MEMBERS, key): broken})
    life.again()
    assert life.consumer("x", epoch).error is UnknownMemberIdError
    assert "the members of group 'g' join again" in caplog.text


class PausingDisk(Disk):
    """One where something happens while the first round is written that is waited for."""

    def __init__(self) -> None:
        super().__init__({GroupType.CLASSIC: CLASSIC})
        self.rounds: list[int] = []
        self.happen: Callable[[], object] = lambda: None

    def put_and_wait(self, rows: Any, check: Any = None) -> None:
        super().put_and_wait(rows, check)
        self.rounds.append(len(rows))
        if len(self.rounds) == 1:
            self.happen()


def classic_group(*instances: str) -> Group:
    """A group of static members, which have their assignments."""
    group = Group(0.0)
    for one in instances:
        request = JoinRequest("", 30.0, 60.0, "consumer", [("range", b"")], one, "c", "/192.0.2.1")
        group.join(0.0, request, lambda answer: None)
    group.tick(100.0)
    begin_generation(group)
    return group


def test_rows_that_no_group_goes_on_with_are_deleted_in_pieces(monkeypatch):
    monkeypatch.setattr(kept_members, "KEPT_MEMBERS_IN_A_ROUND", 3)
    disk, group = PausingDisk(), classic_group("a")
    disk.members.note("g", group)
    kept = dict(disk.rows)
    disk.rows.update({key_of("old", which): '["classic"]' for which in (WHOLE, *map(str, range(7)))})
    disk.begin()
    disk.members.begin_with("g", group)
    disk.members.forget_others()
    assert disk.rounds == [3, 3, 2]
    assert disk.rows == kept


def test_a_row_that_a_group_writes_while_others_are_deleted_stays(monkeypatch):
    monkeypatch.setattr(kept_members, "KEPT_MEMBERS_IN_A_ROUND", 3)
    disk, group = PausingDisk(), classic_group("a", "b")
    disk.members.note("z", group)
    written = dict(disk.rows)
    disk.rows.update({key_of("a", str(number)): '["classic"]' for number in range(3)})
    disk.begin()
    disk.happen = lambda: disk.members.note("z", group)
    disk.members.forget_others()
    assert disk.rounds[0] == 3 and disk.rows == written
