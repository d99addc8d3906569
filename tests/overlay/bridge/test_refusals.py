"""What a topic refuses for good is cut, or left out and counted; nothing behind it waits."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from kafka.errors import InvalidRecordError, MessageSizeTooLargeError, NotLeaderForPartitionError
from overlay.bridge import kafka
from overlay.bridge.sharing.test_settings import make

from dafka import Broker
from dafka.broker.interface.records import Produced
from dafka.hub.hub import get_hub
from dafka.overlay import Bridge, Endpoint, ToKafka
from dafka.overlay.bridge.refusals import Refusals
from dafka.protocol.batch import HEADER_OCTETS, with_offset
from dafka.protocol.batch_reader import decode_batch
from dafka.protocol.batch_writer import encode_batch

KEY = ("t", 0)
TOO_LARGE, NO_KEY = Produced(MessageSizeTooLargeError), Produced(InvalidRecordError)


@pytest.fixture
def refuse() -> Callable[..., list[bytes] | None]:
    def instead(refusals: Refusals, batches: list[bytes], produced: Produced) -> list[bytes] | None:
        return get_hub().run(refusals.instead, KEY, batches, produced)

    return instead


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[str]:
    with Broker(tmp_path / "broker") as broker:
        yield broker.bootstrap_servers


def batch(*records: tuple[bytes | None, bytes], compression: str | None = None) -> bytes:
    rows = [(1000 + number, key, value, ()) for number, (key, value) in enumerate(records)]
    return encode_batch(rows, compression=compression)


def records_of(batches: list[bytes]) -> list[tuple[int, bytes | None, bytes | None]]:
    return [
        record
        for columns in map(decode_batch, batches)
        for record in zip(columns.timestamps, columns.keys, columns.values, strict=True)
    ]


@pytest.mark.parametrize("compression", [None, "gzip"])
def test_the_largest_batches_are_cut_in_two_and_others_stay(refuse, compression: str | None) -> None:
    large = batch(*((b"k", bytes(100)) for _ in range(11)), compression=compression)
    small = batch((b"k", b"v"))
    discarded: Counter[str] = Counter()
    found = refuse(Refusals(discarded), [small, large + b"", small], TOO_LARGE)
    if compression is None:
        assert found[0] == found[-1] == small
        assert len(found) == 4
    assert records_of(found) == records_of([small, large, small])
    assert not discarded


@pytest.mark.parametrize("refusal", [TOO_LARGE, NO_KEY], ids=["too large", "no key"])
def test_a_batch_that_cannot_be_read_is_left_out(refuse, refusal: Produced) -> None:
    written = batch(*((b"k", bytes(100)) for _ in range(11)), compression="gzip")
    damaged = with_offset(written[:HEADER_OCTETS] + bytes(len(written) - HEADER_OCTETS), 0, -1)
    discarded: Counter[str] = Counter()
    assert refuse(Refusals(discarded), [damaged], refusal) == []
    assert discarded.total() == 11


def test_a_single_record_is_allowed_where_that_is_possible_and_else_left_out(refuse) -> None:
    large, small = batch((b"k", bytes(5000))), batch((b"k", b"v"))
    allowed: list[tuple[str, int]] = []
    discarded: Counter[str] = Counter()

    def allow(topic: str, octets: int) -> bool:
        allowed.append((topic, octets))
        return True

    assert refuse(Refusals(discarded, allow), [small, large], TOO_LARGE) == [small, large]
    assert allowed == [("t", len(large))]
    refusals = Refusals(discarded, allow)
    assert refuse(refusals, [large], TOO_LARGE) == [large]
    assert refuse(refusals, [large], TOO_LARGE) == []  # whatever the settings, so nothing would go on
    assert refuse(refusals, [large], TOO_LARGE) == [large]
    assert discarded == {"size": 1}
    discarded.clear()
    assert refuse(Refusals(discarded), [small, large], TOO_LARGE) == [small]
    assert discarded == {"size": 1}


def test_records_without_a_key_are_left_out_where_a_topic_is_compacted(refuse) -> None:
    mixed, keyless = batch((b"k", b"1"), (None, b"2"), (b"k", b"3")), batch((None, b"4"))
    discarded: Counter[str] = Counter()
    found = refuse(Refusals(discarded), [mixed, keyless], NO_KEY)
    assert records_of(found) == [(1000, b"k", b"1"), (1002, b"k", b"3")]
    assert discarded == {"key": 2}
    assert refuse(Refusals(discarded), [batch((b"k", b"1"))], NO_KEY) is None, "something else is wrong"


def test_other_refusals_are_tried_again(refuse) -> None:
    assert refuse(Refusals(Counter()), [batch((b"k", b"v"))], Produced(NotLeaderForPartitionError)) is None


def test_a_rule_passes_over_what_its_topic_does_not_take(broker: str) -> None:
    make(broker, "keyed", {"cleanup.policy": "compact"})
    make(broker, "small", {"max.message.bytes": "5000"})
    rules = [ToKafka("/keyed", "keyed", key="{value[k]}"), ToKafka("/small", "small", form="octets")]
    with (
        Endpoint("127.0.0.1:0") as here,
        Endpoint(peers=[here.address]) as sensor,
        Bridge(here, broker, rules=rules) as bridge,
    ):
        assert sensor.await_peer(here.id, timeout=kafka.SECONDS)
        kafka.until(lambda: "/small" in sensor.filters().get(here.id, []), "the filter of the bridge")
        for value in ("x", {"k": "a"}):
            sensor.publish("/keyed", value)
        sensor.publish("/small", "x" * 20_000)
        for number in range(30):
            sensor.publish("/small", str(number) + "x" * 400)
        assert [one.key for one in kafka.read(broker, "keyed", 1)] == [b"a"]
        assert len(kafka.read(broker, "small", 30)) == 30
        assert bridge.discarded == {"key": 1, "size": 1}


def test_messages_of_many_megabytes_arrive(broker: str) -> None:
    with (
        Endpoint("127.0.0.1:0") as here,
        Endpoint(peers=[here.address]) as sensor,
        Bridge(here, broker, rules=[ToKafka("/t", "t", form="octets")]) as bridge,
    ):
        assert sensor.await_peer(here.id, timeout=kafka.SECONDS)
        kafka.until(lambda: "/t" in sensor.filters().get(here.id, []), "the filter of the bridge")
        for _ in range(300):
            sensor.publish("/t", "x" * 10_000)
        assert len(kafka.read(broker, "t", 300)) == 300
        assert bridge.discarded == {}
