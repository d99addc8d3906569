"""Which records of a refused batch are wrong, and why (KIP-467)."""

from __future__ import annotations

import time
from typing import Any

import kafka.errors as errors
import pytest
from broker.clients import Client, batch

from dafka.broker.interface.broker import Produced, TopicSpec
from dafka.broker.records import record_errors
from dafka.broker.records.record_errors import LAST_TIMESTAMP, refusal, timestamp_error
from dafka.broker.topics.configs import KEYS, TopicSettings, read_settings
from dafka.protocol.batch_writer import encode_batch

NOW = 1_000_000
OTHERWISE = Produced(errors.InvalidRecordError, detail="otherwise")


def settings(**configs: object) -> TopicSettings:
    named: dict[str, Any] = {name.replace("_", "."): str(value) for name, value in configs.items()}
    return read_settings(lambda name: named.get(name, KEYS[name].default))


def create(client: Client, **configs: object) -> None:
    named = {name.replace("_", "."): str(value) for name, value in configs.items()}
    assert client.change("create_topics", {"t": TopicSpec(1, named)}) == {"t": None}


def produce(client: Client, *contents: bytes) -> Produced:
    return client.call("produce", {("t", 0): list(contents)})["t", 0]


def test_every_record_that_is_wrong_is_named_with_its_reason(client):
    now = int(time.time() * 1000)
    create(client, cleanup_policy="compact", message_timestamp_before_max_ms=3_600_000)
    first = encode_batch([(now, b"k", b"0", ()), (now, None, b"1", ()), (5, b"k", b"2", ())])
    second = encode_batch([(now, b"k", b"3", ()), (5, None, b"4", ()), (now + 7_200_000, b"k", b"5", ())])
    outcome = produce(client, first, second)
    wrong = dict(outcome.record_errors)
    assert list(wrong) == [1, 2, 4, 5]
    assert all("without a key" in wrong[index] for index in (1, 4))
    assert "message.timestamp.before.max.ms" in wrong[2]
    assert "message.timestamp.after.max.ms" in wrong[5]
    assert outcome.error is errors.InvalidTimestampError  # as in Kafka, if one of them is
    assert "4 of 6 records" in outcome.detail
    assert client.values("t") == []


def test_only_so_many_wrong_records_are_named(client, monkeypatch):
    monkeypatch.setattr(record_errors, "RECORD_ERRORS", 3)
    create(client, cleanup_policy="compact")
    outcome = produce(client, batch(*[b"x"] * 10))
    assert [one.batch_index for one in outcome.record_errors] == [0, 1, 2]
    assert "3 or more of 10 records" in outcome.detail


def test_a_record_without_a_key_is_wrong_in_a_compacted_topic_only():
    content = batch(b"a", timestamp=NOW)
    found = refusal(settings(cleanup_policy="compact"), [content], NOW, OTHERWISE)
    assert (found.error, [one.batch_index for one in found.record_errors]) == (errors.InvalidRecordError, [0])
    assert refusal(settings(), [content], NOW, OTHERWISE) is OTHERWISE


def test_with_log_append_time_the_timestamps_of_records_do_not_count():
    limits = {"message_timestamp_before_max_ms": 10, "message_timestamp_type": "LogAppendTime"}
    assert refusal(settings(**limits), [batch(b"a", timestamp=1)], NOW, OTHERWISE) is OTHERWISE


def test_batches_that_cannot_be_read_have_the_given_answer():
    assert refusal(settings(cleanup_policy="compact"), [b"no batch"], NOW, OTHERWISE) is OTHERWISE


def test_indexes_count_over_all_batches_of_the_partition():
    first = encode_batch([(NOW, b"k", b"0", ()), (NOW, b"k", b"1", ())])
    found = refusal(settings(cleanup_policy="compact"), [first, batch(b"2")], NOW, OTHERWISE)
    assert [one.batch_index for one in found.record_errors] == [2]
    assert found.detail.startswith("1 of 3 records are wrong, the first is record 2: a record without a key")


@pytest.mark.parametrize(
    ("timestamp", "fault"),
    [
        (NOW, ""),
        (NOW + 5, ""),
        (NOW + 6, "6 ms from now, message.timestamp.after.max.ms is 5"),
        (NOW - 7, ""),
        (NOW - 8, "8 ms ago, message.timestamp.before.max.ms is 7"),
        (-1, ""),  # no timestamp
    ],
)
def test_a_timestamp_lies_within_the_limits_of_the_topic(timestamp: int, fault: str):
    limits = settings(message_timestamp_after_max_ms=5, message_timestamp_before_max_ms=7)
    assert timestamp_error(limits, timestamp, NOW) == (fault and f"timestamp {timestamp} is {fault}")


def test_without_a_limit_only_a_timestamp_that_no_batch_can_hold_is_wrong():
    no_limit = settings(message_timestamp_after_max_ms=LAST_TIMESTAMP)
    assert timestamp_error(no_limit, LAST_TIMESTAMP, NOW) == ""
    assert "from now" in timestamp_error(no_limit, LAST_TIMESTAMP + 1, NOW)
