"""A broker that is written to until it is killed, and says after each step what it was promised.

    python killed_broker.py FOLDER SEED DURABILITY

Retention, compaction, transactions, deleted records, deleted topics and positions that are looked at go on
meanwhile. Every record says its partition and its offset (those of transactions: how they end), so that a
reader of the folder can tell whether each is there once, whole and in order. One line of JSON on standard
output for each step.
"""

from __future__ import annotations

import json
import os
import random
import sys
from typing import Any

from log import ledger

from dafka import Broker
from dafka.broker import connect
from dafka.broker.interface.broker import EARLIEST, LATEST, CommittedOffset, TopicSpec
from dafka.hub.hub import get_hub
from dafka.log import compaction, storage, sweeping
from dafka.protocol.batch_writer import encode_batch

PLAIN, COMPACTED, TEMPORARY = "plain", "compacted", "temporary"
PARTITIONS = [(PLAIN, 0), (PLAIN, 1), (COMPACTED, 0)]
GROUP = "group"
KEYS = 20
GAP = 20  # batches without records that compaction leaves one after the other
RETENTION_BYTES = 300_000
RECORD_BYTES = 1000
CONFIGS = {
    PLAIN: {"retention.bytes": str(RETENTION_BYTES)},
    COMPACTED: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0", "delete.retention.ms": "50"},
    ledger.TOPIC: {"cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0"},
}


def record(topic: str, partition: int, offset: int) -> tuple[bytes | None, bytes | None]:
    """Key and value of a record; some of the compacted topic's are tombstones."""
    if topic == PLAIN:
        return None, (b"%d/%d " % (partition, offset)).ljust(RECORD_BYTES, b".")
    key = b"key %d" % (offset * 7919 % 10007 % KEYS)
    return key, None if offset % 13 == 0 else (b"value %d " % offset).ljust(300, b".")


def open_broker(folder: str, durability: str) -> Broker:
    return Broker(folder, durability=durability, retention_check_interval=0.02)  # type: ignore[arg-type]


def offsets(call: Any, timestamp: int) -> list[int]:
    """What the partitions begin or end with, by EARLIEST or LATEST."""
    found = call("list_offsets", dict.fromkeys(PARTITIONS, timestamp))
    return [found[partition].offset for partition in PARTITIONS]


def positions_of(broker: Broker, number: int) -> Any:
    """The octet positions of a partition of PLAIN."""
    core: Any = connect(broker.bootstrap_servers).broker
    return get_hub().run(core.positions.open, PLAIN, number)


def main(folder: str, seed: str, durability: str) -> None:
    choice = random.Random(seed)
    compaction.COMPACTION_GAP = GAP
    storage.NOTED_ROWS = sweeping.NOTED_ROWS = choice.choice((1, 10_000))  # what is large, and opened so
    with open_broker(folder, durability) as broker:
        call = connect(broker.bootstrap_servers).call
        for topic, partitions in ((PLAIN, 2), (COMPACTED, 1), (ledger.TOPIC, 1)):
            call("create_topics", {topic: TopicSpec(partitions, CONFIGS[topic])})
        transactions = ledger.Ledger(call)
        positions = [positions_of(broker, number) for number in range(2)]
        ends = offsets(call, LATEST)
        committed, deleted = [0, 0, 0], offsets(call, EARLIEST)[:2]

        def say() -> None:
            starts = offsets(call, EARLIEST)
            said = {
                "ends": ends,
                "starts": starts,
                "committed": committed,
                "deleted": deleted,
                "ledger": transactions.newest,
            }
            os.write(1, json.dumps(said).encode() + b"\n")

        while True:
            transactions.step(choice)
            batches = {}
            for number, (topic, partition) in enumerate(PARTITIONS):
                records = [
                    (0, *record(topic, partition, ends[number] + place), ())
                    for place in range(choice.choice((1, 2, 10, 60)))
                ]
                batches[topic, partition] = [encode_batch(records)]
                ends[number] += len(records)
            answers = call("produce", batches)
            assert all(answer.error is None for answer in answers.values()), answers
            chance = choice.random()
            if chance < 0.3:
                group = {
                    partition: CommittedOffset(end) for partition, end in zip(PARTITIONS, ends, strict=True)
                }
                errors = call("commit_offsets", GROUP, group)
                assert not any(errors.values()), errors
                committed = list(ends)
            elif chance < 0.35:
                number = choice.randrange(2)
                below = max(0, ends[number] - choice.randrange(400))
                deleted[number] = max(below, deleted[number])
                say()  # from here on it may be done
                found = call("delete_records", {(PLAIN, number): below})[PLAIN, number]
                assert found.error is None, found
            elif chance < 0.4:
                call("create_topics", {TEMPORARY: TopicSpec(3)})
                call("produce", {(TEMPORARY, 1): [encode_batch([(0, None, bytes(150_000), ())])]})
                call("delete_topics", [TEMPORARY])
            elif chance < 0.7:
                number = choice.randrange(2)
                get_hub().run(positions[number].catch_up)
            say()


if __name__ == "__main__":
    main(*sys.argv[1:])
