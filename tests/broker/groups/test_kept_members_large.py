"""Rows of members with very many partitions, which are read again beside the hub."""

from __future__ import annotations

from typing import Any

import pytest
from broker.groups.test_kept_members import Life
from kafka.errors import UnknownMemberIdError

from dafka.broker.groups import kept_members
from dafka.broker.groups.kept_members import MEMBERS, key_of


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
