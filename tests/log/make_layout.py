"""Makes a broker's folder of the present layout, for the versions to come.

    python tests/log/make_layout.py

Run it once for each layout, before its release; its folder stays. ``test_upgrade`` opens them all.
"""

from __future__ import annotations

import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]  # for a run as a program

from kafka.structs import OffsetAndMetadata, TopicPartition  # noqa: E402

from compat.kafka import KafkaConsumer, KafkaProducer  # noqa: E402
from dafka import Broker  # noqa: E402
from dafka.broker import connect  # noqa: E402
from dafka.broker.interface.broker import TopicSpec  # noqa: E402
from dafka.log.limits import FILE_BYTES, LAYOUT  # noqa: E402

FOLDER = Path(__file__).parent / "layouts"
VALUES = [b"small %d" % number for number in range(40)]
LARGE = bytes(2 * FILE_BYTES)
CONFIGS = {"retention.bytes": "123456789"}
COMMITTED = (17, "as far as this")


def fill(folder: Path) -> None:
    """A bit of everything that a folder can hold."""
    with Broker(folder) as broker:
        address, connection = broker.bootstrap_servers, connect(broker.bootstrap_servers)
        connection.call("create_topics", {"orders": TopicSpec(2, CONFIGS), "gone": TopicSpec(1)})
        with KafkaProducer(bootstrap_servers=address) as producer:
            for number, value in enumerate([*VALUES, LARGE]):
                headers = [("number", b"%d" % number)]
                producer.send("orders", value, b"key", headers, partition=1, timestamp_ms=1000 + number)
                producer.flush()
            producer.send("gone", b"with its topic")
        connection.call("delete_topics", ["gone"])
        connection.call("delete_records", {("orders", 1): 5})
        consumer = KafkaConsumer(bootstrap_servers=address, group_id="billing")
        consumer.commit({TopicPartition("orders", 1): OffsetAndMetadata(*COMMITTED, -1)})
        consumer.close()
        transactions: Any = KafkaProducer(bootstrap_servers=address, transactional_id="payments")
        transactions.init_transactions()
        for value, end in (
            (b"committed", transactions.commit_transaction),
            (b"aborted", transactions.abort_transaction),
        ):
            transactions.begin_transaction()
            transactions.send("payments", value)
            transactions.flush()
            end()
        transactions.begin_transaction()
        transactions.send("payments", b"open").get(60)
        broker.stop()


if __name__ == "__main__":
    FOLDER.mkdir(exist_ok=True)
    archive = FOLDER / f"{LAYOUT}.tar.xz"
    if archive.exists():
        sys.exit(f"{archive} is there already")
    with tempfile.TemporaryDirectory() as folder, tarfile.open(archive, "w:xz") as made:
        fill(Path(folder) / "data")
        made.add(Path(folder) / "data", "data")
    sys.stdout.write(f"{archive}\n")
