"""Acknowledgements of a share group are answered when they are on disk."""

from __future__ import annotations

import sys
from pathlib import Path

import forking
from broker.clients import Client
from broker.share.member import REJECT, RELEASE, Member, acquired, errors
from broker.share.test_calls import GROUP, configure, joined, produce

from dafka import Broker
from dafka.broker.share import states

KILLED = """
import os, signal, sys
from broker.clients import Client
from broker.share.member import ACCEPT, RELEASE, Member, errors
from broker.share.test_calls import joined, produce
from dafka import Broker

broker = Broker(sys.argv[1])
broker.start()
client = Client(broker)
member = joined(client.call)
produce(client.call, *(b"%d" % number for number in range(50)))
member.fetch()
for offset in range(0, 40, 2):
    assert errors(member.acknowledge((offset, offset, ACCEPT))) == [None]
assert errors(member.acknowledge((41, 41, RELEASE))) == [None]
print("acknowledged", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_broker_that_is_killed_has_lost_no_acknowledgement(tmp_path: Path) -> None:
    script = f"import sys; sys.path[:0] = {sys.path!r}\n{KILLED}"
    command = [sys.executable, "-c", script, str(tmp_path)]
    done = forking.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "acknowledged\n", done.stderr
    with Broker(tmp_path) as broker:
        call = Client(broker).call
        listed = {one.group: (one.type.value, one.state) for one in call("list_groups")}
        assert listed == {GROUP: ("share", "Empty")}
        member = Member(call, GROUP, "jobs")
        member.heartbeat()
        found = {
            offset: deliveries
            for first, last, deliveries in acquired(member.fetch())
            for offset in range(first, last + 1)
        }
        assert found == {offset: 1 + (offset == 41) for offset in range(50) if offset % 2 or offset >= 40}


def test_many_changes_are_few_rows(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(states, "ROW_RUNS", 2)
    monkeypatch.setattr(states, "DELTAS", 5)
    with Broker(tmp_path) as broker:
        call = Client(broker).call
        member = joined(call)
        produce(call, *(b"%d" % number for number in range(60)))
        member.fetch()
        for offset in range(1, 60, 2):
            type_ = REJECT if offset % 3 else RELEASE
            assert errors(member.acknowledge((offset, offset, type_))) == [None]
        rows = broker._hub.run(lambda: len(Client(broker).core.log.table(states.SHARE)))
        assert rows <= 6
    with Broker(tmp_path) as broker:
        call = Client(broker).call
        member = Member(call, GROUP, "jobs")
        member.heartbeat()
        found = {
            offset: deliveries
            for first, last, deliveries in acquired(member.fetch())
            for offset in range(first, last + 1)
        }
        kept = {offset: 1 for offset in range(60) if not offset % 2}
        assert found == {**kept, **dict.fromkeys(range(3, 60, 6), 2)}


def test_settings_of_the_group_hold_after_a_restart(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker:
        call = Client(broker).call
        joined(call).fetch()
        configure(call, share_delivery_count_limit="2")
    with Broker(tmp_path) as broker:
        call = Client(broker).call
        member = Member(call, GROUP, "jobs")
        member.heartbeat()
        produce(call, b"a")
        for deliveries in (1, 2):
            assert acquired(member.fetch()) == [(0, 0, deliveries)]
            assert errors(member.acknowledge((0, 0, RELEASE))) == [None]
        assert acquired(member.fetch()) == []
        assert call("share_offsets", GROUP).partitions["jobs", 0].lag == 0
