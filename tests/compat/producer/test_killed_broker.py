"""Transactions over TCP while the broker is killed again and again: each is committed once, or not at all."""

from __future__ import annotations

import threading
from typing import Any

from timing import until

from compat.kafka import KafkaConsumer, KafkaProducer, TopicPartition
from compat.kafka.structs import OffsetAndMetadata
from dafka.broker import connect
from tests.compat.test_remote import Server

KILLS, PER_KILL = 3, 12
PARTITIONS = [TopicPartition("out", 0), TopicPartition("out", 1)]


class Worker(threading.Thread):
    """Ends transactions of six records and an offset until there are enough; each third one is aborted."""

    def __init__(self, servers: str) -> None:
        super().__init__()
        self.producer = KafkaProducer(
            bootstrap_servers=servers,
            transactional_id="worker",
            max_block_ms=200_000,
            delivery_timeout_ms=200_000,
        )
        self.producer.init_transactions()
        self.ended = 0
        self.failure: BaseException | None = None

    def run(self) -> None:
        try:
            while self.ended < (KILLS + 1) * PER_KILL:
                self._transaction(self.ended, commit=self.ended % 3 != 2)
                self.ended += 1
        except BaseException as error:
            self.failure = error

    def _transaction(self, number: int, commit: bool) -> None:
        self.producer.begin_transaction()
        for one in range(6):
            self.producer.send("out", b"%d.%d" % (number, one), partition=one % 2)
        offset = OffsetAndMetadata(number, "", -1)
        self.producer.send_offsets_to_transaction({PARTITIONS[0]: offset}, "g")
        if commit:
            self.producer.commit_transaction()
        else:
            self.producer.flush()
            self.producer.abort_transaction()


def test_every_end_raises_the_epoch_once_although_the_broker_is_killed(tmp_path: Any) -> None:
    server = Server(str(tmp_path / "data"))
    servers = server.bootstrap_servers
    worker = Worker(servers)
    worker.start()
    for kill in range(1, KILLS + 1):
        until(lambda at=kill * PER_KILL: worker.failure or worker.ended >= at, "transactions")
        server.kill()  # wherever the producer is now
        server = server.restarted()
    worker.join()
    assert worker.failure is None
    worker.producer.close()
    numbers = [number for number in range(worker.ended) if number % 3 != 2]
    expected = sorted(b"%d.%d" % (number, one) for number in numbers for one in range(6))
    with KafkaConsumer(
        bootstrap_servers=servers, auto_offset_reset="earliest", isolation_level="read_committed"
    ) as reader:
        reader.assign(PARTITIONS)
        ends = reader.end_offsets(PARTITIONS)
        values = []
        while any(reader.position(one) < ends[one] for one in PARTITIONS):
            values += [record.value for some in reader.poll(200).values() for record in some]
    assert sorted(values) == expected
    with KafkaConsumer(bootstrap_servers=servers, group_id="g") as member:
        assert member.committed(PARTITIONS[0]) == numbers[-1]
    connection = connect(servers, 100.0)
    described = connection.call("describe_transactions", ["worker"])["worker"]
    connection.close()
    assert described.epoch == worker.ended
    server.stop()
