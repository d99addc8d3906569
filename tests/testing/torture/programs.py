"""Three small programs with a well-known mistake each, and how each is mended.

Run as a script, it tortures the mended ones with many seeds: see scripts/torture.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from kafka.errors import KafkaError

from compat.kafka import KafkaConsumer, KafkaProducer
from dafka.testing import chaos

RECORDS = 8
SECONDS = 120.0  # it only ends what hangs


def make(broker: chaos, **options):
    """A consumer of the orders, with short pauses."""
    options = {"enable_auto_commit": False, "max_poll_records": 1, **options}
    return KafkaConsumer(
        "orders",
        bootstrap_servers=broker.bootstrap_servers,
        group_id="billing",
        auto_offset_reset="earliest",
        retry_backoff_ms=5,
        **options,
    )


def finished(broker: chaos) -> bool:
    return sum(broker.committed("billing").values()) >= RECORDS


def supervised(
    broker: chaos, program: Callable[[chaos, KafkaProducer, KafkaConsumer], None], **options
) -> None:
    """Start a program again, as a supervisor does, whenever an error has ended it."""
    ends = time.monotonic() + SECONDS
    with KafkaProducer(bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5) as producer:
        while not finished(broker):
            assert time.monotonic() < ends, f"it hangs\n{broker.history_table()}"
            consumer = make(broker, **options)
            try:
                program(broker, producer, consumer)
            except KafkaError:
                continue
            finally:
                consumer.close()


def commits_first(broker, producer, consumer):
    """The mistake: committed records are not read again when processing fails."""
    while not finished(broker):
        for records in consumer.poll(50).values():
            for record in records:
                consumer.commit()
                producer.send("bills", key=record.value).get(60)


def commits_behind(broker, producer, consumer):
    """Mended: first the bill, then the commit."""
    while not finished(broker):
        for records in consumer.poll(50).values():
            for record in records:
                producer.send("bills", key=record.value).get(60)
                consumer.commit()


def threads_with_auto_commit(broker, producer, consumer):
    """The mistake: records handed to a thread are committed, even if they fail there."""

    def bill(record):
        producer.send("bills", key=record.value).get(60)

    with ThreadPoolExecutor(2) as threads:
        while not finished(broker):
            for records in consumer.poll(50).values():
                for record in records:
                    threads.submit(bill, record)


def threads_and_commits(broker, producer, consumer):
    """Mended: it waits for its threads before it commits."""

    def bill(record):
        producer.send("bills", key=record.value).get(60)

    with ThreadPoolExecutor(2) as threads:
        while not finished(broker):
            for records in consumer.poll(50).values():
                for billed in [threads.submit(bill, record) for record in records]:
                    billed.result()
                consumer.commit()


def produces(broker: chaos, idempotent: bool) -> None:
    """Without idempotence a repeated request is written twice."""
    with KafkaProducer(
        bootstrap_servers=broker.bootstrap_servers,
        retry_backoff_ms=5,
        acks="all",
        enable_idempotence=idempotent,
    ) as producer:
        for number in range(RECORDS):
            producer.send("bills", key=b"%d" % number).get(60)


def check_commit_before_processing(seed: int, mended: bool) -> None:
    with chaos(seed) as broker:
        broker.preload("orders", [b"%d" % number for number in range(RECORDS)])
        supervised(broker, commits_behind if mended else commits_first)
        broker.assert_processed_at_least_once("orders", "bills")
        broker.assert_nothing_left_behind("billing", "orders")
        if mended:
            broker.assert_no_commit_before_processing("billing", "bills")
            broker.assert_in_order("orders", "bills")


def check_auto_commit_with_threads(seed: int, mended: bool) -> None:
    with chaos(seed) as broker:
        broker.preload("orders", [b"%d" % number for number in range(RECORDS)])
        if mended:
            supervised(broker, threads_and_commits, max_poll_records=4)
        else:
            options = {"enable_auto_commit": True, "auto_commit_interval_ms": 20, "max_poll_records": 4}
            supervised(broker, threads_with_auto_commit, **options)
        broker.assert_processed_at_least_once("orders", "bills")


def check_no_idempotence(seed: int, mended: bool) -> None:
    with chaos(seed, weights={"denied": 0}) as broker:
        broker.preload("orders", [b"%d" % number for number in range(RECORDS)])
        produces(broker, idempotent=mended)
        broker.assert_processed_exactly_once("orders", "bills")


CHECKS = {
    "commit before processing": check_commit_before_processing,
    "auto commit with threads": check_auto_commit_with_threads,
    "no idempotence": check_no_idempotence,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Torture the three mended programs.")
    parser.add_argument("--seeds", type=int, default=1000, help="how many seeds for each (1000)")
    parser.add_argument("--first", type=int, default=0, help="the first seed (0)")
    parser.add_argument("--only", choices=CHECKS, help="one of the programs")
    options = parser.parse_args()
    for name, check in CHECKS.items():
        if options.only not in (None, name):
            continue
        began = time.monotonic()
        for seed in range(options.first, options.first + options.seeds):
            try:
                check(seed, True)
            except BaseException:
                print(f"{name}: seed {seed}")
                raise
            done = seed - options.first + 1
            if done % 1000 == 0 and done < options.seeds:
                print(f"{name}: {done} seeds, {time.monotonic() - began:.0f} s", flush=True)
        print(f"{name}: {options.seeds} seeds pass, {time.monotonic() - began:.0f} s", flush=True)


if __name__ == "__main__":
    main()
