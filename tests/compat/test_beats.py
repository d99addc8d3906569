"""How often members of the newer groups in the broker's process send heartbeats."""

from __future__ import annotations

from typing import Any

import pytest
from timing import until

from compat.kafka import KafkaConsumer, _beats
from compat.kafka.share import ShareConsumer
from dafka import Broker


class Member:
    pass


@pytest.fixture(autouse=True)
def nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_beats, "_members", type(_beats._members)())


def test_few_members_send_them_often():
    members = [Member() for _ in range(100)]
    assert [_beats.pause(one, 5.0) for one in members] == [_beats.SHORTEST] * 100


def test_very_many_members_share_what_may_be_spent():
    members = [Member() for _ in range(2000)]
    pauses = [_beats.pause(one, 5.0) for one in members]
    assert pauses[-1] == len(members) / _beats.EACH_SECOND
    assert _beats.pause(members[0], 1.0) == 1.0  # no session ends for it
    for one in members[1:]:
        _beats.end(one)
    assert _beats.pause(members[0], 5.0) == _beats.SHORTEST


@pytest.mark.parametrize(
    ("kind", "configs"), [(ShareConsumer, {}), (KafkaConsumer, {"group_protocol": "consumer"})]
)
def test_a_consumer_counts_until_it_is_closed(kind: Any, configs: dict[str, str]):
    with Broker() as broker:
        consumer = kind("jobs", group_id="g", bootstrap_servers=broker.bootstrap_servers, **configs)
        consumer.poll(0)
        until(lambda: len(_beats._members) == 1)
        consumer.close()
        until(lambda: not _beats._members)
