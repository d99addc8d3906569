"""Produce, fetch, offsets and leader epochs over TCP."""

from __future__ import annotations

import threading
import time

from broker.clients import Client, batch, errors_of
from kafka.errors import (
    CorruptRecordError,
    FencedLeaderEpochError,
    InvalidRecordError,
    OffsetOutOfRangeError,
    UnknownLeaderEpochError,
    UnknownTopicOrPartitionError,
)

from dafka.broker.interface.broker import (
    EARLIEST,
    LATEST,
    EpochEnd,
    FetchFrom,
    TopicSpec,
)
from dafka.protocol.batch import with_offset

MEGABYTE = 1024 * 1024


def test_records_come_back_as_they_were_sent(remote, topic):
    outcome = remote.produce({(topic, 0): [batch(b"a", b"b"), batch(b"c")], (topic, 1): [batch(b"d")]})
    assert (outcome[topic, 0].error, outcome[topic, 0].base_offset) == (None, 0)
    assert list(outcome[topic, 0].base_offsets) == [0, 2]
    assert remote.values(topic) == [b"a", b"b", b"c"]
    assert remote.values(topic, 1) == [b"d"]
    assert remote.values(topic, 0, 2) == [b"c"]


def test_batches_that_have_to_be_numbered_from_0_are_not_numbered_anew(remote, topic):
    found = remote.produce({(topic, 0): [batch(b"a", base_offset=7)]}, from_0=True)[topic, 0]
    assert found.error is InvalidRecordError


def test_copies_of_batches_from_elsewhere_are_numbered_anew(remote, topic):
    copied = {(topic, 0): [with_offset(batch(b"a"), 7, 3), with_offset(batch(b"b", b"c"), 8, 3)]}
    outcome = remote.produce(copied)[topic, 0]
    assert (outcome.error, list(outcome.base_offsets)) == (None, [0, 1])
    assert remote.values(topic) == [b"a", b"b", b"c"]


def test_errors_of_partitions_are_the_interfaces(remote, topic):
    damaged = batch(b"a")[:-1] + b"?"
    outcome = remote.produce({(topic, 0): [damaged], (topic, 9): [batch(b"a")]})
    assert outcome[topic, 0].error is CorruptRecordError
    assert outcome[topic, 9].error is UnknownTopicOrPartitionError
    wanted = {(topic, 0): FetchFrom(5, MEGABYTE)}
    found = remote.fetch(wanted, max_wait=5.0, min_bytes=1, max_bytes=MEGABYTE)
    assert found[topic, 0].error is OffsetOutOfRangeError


def test_a_fetch_waits_for_records(remote, topic):
    found = []
    wanted = {(topic, number): FetchFrom(0, MEGABYTE) for number in range(2)}
    reading = threading.Thread(
        target=lambda: found.append(remote.fetch(wanted, max_wait=100.0, min_bytes=1, max_bytes=MEGABYTE))
    )
    started = time.monotonic()
    reading.start()
    time.sleep(0.1)
    remote.produce({(topic, 1): [batch(b"at last")]})
    reading.join()
    assert set(found[0]) == {(topic, 1)}
    assert time.monotonic() - started < 60


def test_offsets_are_listed(remote, topic):
    remote.produce({(topic, 0): [batch(b"a", b"b")]})
    assert remote.list_offsets({(topic, 0): LATEST})[topic, 0].offset == 2
    assert remote.list_offsets({(topic, 0): EARLIEST})[topic, 0].offset == 0
    assert remote.list_offsets({(topic, 0): 1000})[topic, 0][1:] == (0, 1000, 0)
    assert remote.list_offsets({(topic, 0): 1001})[topic, 0][1:] == (-1, -1, -1)
    assert remote.list_offsets({("no", 0): LATEST})["no", 0].error is UnknownTopicOrPartitionError


def test_leader_epochs_show_where_records_were_lost(listening, remote):
    core = Client(listening).core
    assert errors_of(remote.create_topics({"t": TopicSpec(1)})) == {"t": None}
    place = ("t", 0)
    for epoch in (0, 1, 1):
        core._epochs.current = epoch  # the second one as if what came behind the first had been lost
        assert remote.produce({place: [batch(b"a")]})[place].error is None
    assert remote.metadata(["t"]).topics["t"].partitions[0].leader_epoch == 1
    assert remote.list_offsets({place: EARLIEST})[place].leader_epoch == 0
    assert (
        remote.list_offsets({place: LATEST}, leader_epochs={place: 0})[place].error is FencedLeaderEpochError
    )
    assert remote.epoch_ends({place: 0}) == {place: EpochEnd(None, 0, 1)}
    assert remote.epoch_ends({place: 0}, leader_epochs={place: 2})[place].error is UnknownLeaderEpochError
    limits = {"max_wait": 10, "min_bytes": 1, "max_bytes": 1000}
    lost = remote.fetch({place: FetchFrom(3, 1000, last_epoch=0)}, **limits)[place]
    assert (lost.error, lost.diverging, lost.batches) == (None, (0, 1), [])
    assert len(remote.fetch({place: FetchFrom(1, 1000, 1, 1)}, **limits)[place].batches) == 2
