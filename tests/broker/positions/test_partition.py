"""The positions of one partition: octets in RAW form, stable whatever happens to the partition."""

from __future__ import annotations

from itertools import pairwise

import pytest
from broker.clients import Client, batch
from broker.positions.octets import Octets, produce, size
from broker.transactions.transactional import Producer
from kafka.errors import OffsetOutOfRangeError, PolicyViolationError, UnknownTopicOrPartitionError

from dafka import Broker
from dafka.broker.interface.positions import PositionOutOfRangeError
from dafka.broker.positions import measuring
from dafka.protocol import raw
from dafka.protocol.batch_writer import encode_batch

ONE, TWO, MANY = [b"value"], [b"key", b"value"], [b"id", b"a", b"", b"c" * 300]


@pytest.fixture
def octets(client: Client) -> Octets:
    client.create("t")
    return Octets(client)


def test_positions_begin_at_0_with_the_first_record_that_exists(client: Client) -> None:
    client.create("t")
    produce(client, [ONE, TWO])
    octets = Octets(client)
    assert (octets.first, octets.end) == (0, size(ONE, TWO))
    assert octets.all() == [ONE, TWO]


def test_an_empty_partition_begins_and_ends_at_0(octets: Octets) -> None:
    assert (octets.first, octets.end, octets.read(0)) == (0, 0, b"")
    assert octets.call("messages", 0, 100) == ([], 0)


def test_messages_of_every_number_of_frames_come_back(client: Client, octets: Octets) -> None:
    produce(client, [ONE, TWO, MANY])
    assert octets.all() == [ONE, TWO, MANY]
    assert octets.end == size(ONE, TWO, MANY)


def test_records_of_kafka_clients_have_one_or_two_frames(client: Client, octets: Octets) -> None:
    records = [(1, None, b"v", ()), (2, b"k", None, [("h", b"x")]), (3, None, None, ())]
    client.call("produce", {("t", 0): [encode_batch(records)]})
    assert octets.all() == [[b"v"], [b"k", b""], [b""]]


def test_octets_may_be_read_from_anywhere_to_anywhere(client: Client, octets: Octets) -> None:
    messages = [[b"%d" % number] * (1 + number % 3) for number in range(30)]
    for begin in range(0, 30, 5):
        produce(client, messages[begin : begin + 5])
    whole = raw.encode_messages(messages)
    assert octets.end == len(whole)
    for position in range(len(whole) + 1):
        assert octets.read(position, 7) == whole[position : position + 7]
        assert octets.read(position) == whole[position:]


def test_whole_messages_come_from_the_first_one_at_a_position_or_behind(
    client: Client, octets: Octets
) -> None:
    produce(client, [ONE, TWO])
    produce(client, [MANY])
    end = octets.end
    assert octets.call("messages", 0, 1) == ([ONE], 7)
    assert octets.call("messages", 0, size(ONE, TWO)) == ([ONE, TWO], size(ONE, TWO))
    assert octets.call("messages", 0, 1000) == ([ONE, TWO, MANY], end)
    assert octets.call("messages", 1, 1000) == ([TWO, MANY], end)
    assert octets.call("messages", 8, 1) == ([MANY], end)
    assert octets.call("messages", end - 1, 1000) == ([], end)


@pytest.mark.parametrize("position", [-1, 8, 1 << 62])
def test_a_position_outside_is_an_error_that_says_the_range(
    client: Client, octets: Octets, position: int
) -> None:
    produce(client, [ONE])
    assert octets.end == 7
    for method in ("read", "messages"):
        with pytest.raises(PositionOutOfRangeError, match=f"{position} is not between 0 and 7"):
            octets.call(method, position, 10)
    with pytest.raises(PositionOutOfRangeError):
        octets.call("offset_of", position)


def test_offsets_and_positions_say_each_other(client: Client, octets: Octets) -> None:
    produce(client, [ONE, TWO])
    produce(client, [MANY])
    begins = [0, 7, 7 + size(TWO)]
    end = octets.end
    assert [octets.call("position_of", offset) for offset in range(4)] == [*begins, end]
    assert [octets.call("offset_of", begin) for begin in [*begins, end]] == [0, 1, 2, 3]
    assert [octets.call("offset_of", begin - 1) for begin in [*begins[1:], end]] == [0, 1, 2]
    for offset in (-1, 4):
        with pytest.raises(OffsetOutOfRangeError):
            octets.call("position_of", offset)


# -- transactions -------------------------------------------------------------------------------


def test_nothing_is_seen_from_the_first_record_of_an_open_transaction_on(
    client: Client, octets: Octets
) -> None:
    producer = Producer(client)
    produce(client, [ONE])
    producer.send(b"open")
    produce(client, [TWO])
    assert octets.all() == [ONE]
    producer.commit()
    assert octets.all() == [ONE, [b"open"], TWO]


def test_aborted_records_and_markers_have_no_octets(client: Client, octets: Octets) -> None:
    producer = Producer(client)
    produce(client, [ONE])
    producer.send(b"aborted")
    producer.abort()
    produce(client, [TWO])
    producer.send(b"committed")
    producer.commit()
    assert octets.all() == [ONE, TWO, [b"committed"]]
    assert octets.call("position_of", 1) == octets.call("position_of", 3) == 7
    assert octets.call("offset_of", 7) == 3


# -- what a writer says -------------------------------------------------------------------------


def test_a_writer_says_the_sizes_of_what_it_has_written(client: Client, octets: Octets) -> None:
    base = produce(client, [ONE, TWO])
    assert octets.call("advance", base, raw.message_sizes([ONE, TWO])) == 0
    assert octets.positions.end == size(ONE, TWO)
    base = produce(client, [MANY])
    assert octets.call("advance", base, raw.message_sizes([MANY])) == size(ONE, TWO)
    assert octets.all() == [ONE, TWO, MANY]


def test_batches_of_others_written_before_are_measured(client: Client, octets: Octets) -> None:
    produce(client, [MANY])
    base = produce(client, [ONE])
    assert octets.call("advance", base, [7]) == size(MANY)
    assert octets.call("advance", base, [7]) == size(MANY)  # once more
    assert octets.all() == [MANY, ONE]


def test_behind_an_open_transaction_a_position_is_not_decided(client: Client, octets: Octets) -> None:
    producer = Producer(client)
    producer.send(b"open")
    base = produce(client, [ONE])
    assert octets.call("advance", base, [7]) is None
    producer.abort()
    assert octets.call("advance", base, [7]) == 0
    assert octets.all() == [ONE]


# -- the front ----------------------------------------------------------------------------------


@pytest.mark.parametrize("below", range(1, 9))
def test_deleting_records_at_the_front_changes_no_position(
    client: Client, octets: Octets, below: int
) -> None:
    messages = [[b"x" * number] for number in range(8)]
    for begin in (0, 3, 6):
        produce(client, messages[begin : begin + 3])
    begins = [size(*messages[:number]) for number in range(9)]
    client.call("delete_records", {("t", 0): below})
    assert octets.first == begins[below]
    assert octets.end == begins[8]
    assert octets.all() == messages[below:]
    with pytest.raises(PositionOutOfRangeError):
        octets.read(begins[below] - 1)
    produce(client, [ONE])
    assert octets.all() == [*messages[below:], ONE]
    assert octets.end == begins[8] + 7


def test_records_that_were_deleted_before_positions_began_have_none(client: Client) -> None:
    client.create("t")
    produce(client, [ONE, MANY, TWO])
    client.call("delete_records", {("t", 0): 2})
    octets = Octets(client)
    assert octets.first == 0
    assert octets.all() == [TWO]


def test_an_open_transaction_whose_records_are_deleted_never_gets_octets(
    client: Client, octets: Octets
) -> None:
    producer = Producer(client)
    produce(client, [ONE])
    producer.send(b"open")
    produce(client, [TWO])
    client.call("delete_records", {("t", 0): 3})
    producer.commit()
    produce(client, [MANY])
    assert (octets.first, octets.end) == (7, 7 + size(MANY))
    assert octets.all() == [MANY]


# -- restarts -----------------------------------------------------------------------------------


def test_positions_are_the_same_after_a_restart(tmp_path) -> None:
    messages = [[b"x" * (number % 50)] for number in range(100)]
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        octets = Octets(client)
        for begin in range(0, 100, 10):
            produce(client, messages[begin : begin + 10])
        whole, end = octets.read(0), octets.end
        whole = octets.read(0)
        client.call("delete_records", {("t", 0): 33})
        first = octets.first
    with Broker(tmp_path) as broker:
        client = Client(broker)
        octets = Octets(client)
        assert octets.positions.end == end  # stored, and not measured again
        assert (octets.first, octets.end) == (first, end)
        assert octets.read(first) == whole[first:]
        produce(client, [ONE])
        assert octets.end == end + 7


def test_records_that_only_an_earlier_process_saw_are_measured_before_they_are_deleted(tmp_path) -> None:
    """Its positions were told to clients, and are not stored yet if it was killed."""
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        octets = Octets(client)
        octets.core.positions._store_all = lambda: None  # as if it were killed
        produce(client, [ONE, TWO])
        produce(client, [MANY])
        end = octets.end
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.call("delete_records", {("t", 0): 3})
        octets = Octets(client)
        assert (octets.first, octets.end) == (end, end)


def test_a_topic_that_is_created_again_begins_anew(client: Client, octets: Octets) -> None:
    produce(client, [ONE])
    assert octets.end == 7
    client.change("delete_topics", ["t"])
    for method, *args in (
        ("read", 0, 10),
        ("messages", 0, 10),
        ("wait", 10),
        ("catch_up",),
        ("advance", 1, [1]),
    ):
        with pytest.raises(UnknownTopicOrPartitionError, match="'t' was deleted"):
            octets.call(method, *args)
    client.create("t")
    produce(client, [MANY])
    again = Octets(client)
    assert again.positions is not octets.positions
    assert again.all() == [MANY]
    assert again.first == 0


def test_there_are_no_positions_without_a_partition(client: Client) -> None:
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition 0 of a topic 't'"):
        Octets(client)
    client.create("t")
    with pytest.raises(UnknownTopicOrPartitionError, match="no partition 1 of a topic 't'"):
        Octets(client, partition=1)


def test_positions_may_begin_elsewhere_once(tmp_path) -> None:
    with Broker(tmp_path) as broker:
        client = Client(broker)
        client.create("t")
        octets = Octets(client, base=1000)
        produce(client, [ONE])
        assert (octets.first, octets.end) == (1000, 1007)
        with pytest.raises(PolicyViolationError, match="began at 1000 and not at 7"):
            Octets(client, base=7)
    with Broker(tmp_path) as broker:
        octets = Octets(Client(broker), base=1000)
        assert (octets.first, octets.end) == (1000, 1007)


def test_partitions_whose_positions_have_begun_are_listed(tmp_path) -> None:
    def begun(client: Client) -> list[tuple[str, int]]:
        return client.connection.hub.run(client.core.positions.partitions)

    with Broker(tmp_path) as broker:
        client = Client(broker)
        for topic in ("t", "u", "v"):
            client.create(topic, 2)
        Octets(client, "t", 1)
        Octets(client, "u")
        client.change("delete_topics", ["u"])
        assert begun(client) == [("t", 1)]
    with Broker(tmp_path) as broker:
        assert begun(Client(broker)) == [("t", 1)]


def test_waiting_ends_when_there_may_be_more(client: Client, octets: Octets) -> None:
    assert octets.call("wait", 0.01) is False
    produce(client, [ONE])
    assert octets.call("wait", 60.0) is True
    octets.call("catch_up")
    assert octets.call("wait", 0.01) is False


def test_large_batches_are_measured_and_read_beside_the_hub(client: Client, octets: Octets) -> None:
    messages = [[b"%08d" % number * 12] for number in range(20_000)]
    for begin in range(0, 20_000, 8000):
        produce(client, messages[begin : begin + 8000])
    for _ in range(50):
        client.call("produce", {("t", 0): [batch(b"x" * 1000, compression="gzip")]})
    whole = raw.encode_messages([*messages, *[[b"x" * 1000]] * 50])
    assert octets.end == len(whole)
    assert octets.read(0) == whole
    assert octets.read(98 * 7777 + 5, 100_000) == whole[98 * 7777 + 5 :][:100_000]
    found, position = octets.call("messages", 98 * 7777, 500_000)
    assert found == messages[7777:][: len(found)]
    assert position == 98 * (7777 + len(found))
    assert len(found) == 500_000 // 98


def test_the_bounds_of_a_message_are_those_of_each_of_its_octets(client: Client, octets: Octets) -> None:
    produce(client, [ONE, TWO, MANY])
    bounds = [0, size(ONE), size(ONE, TWO), size(ONE, TWO, MANY)]
    octets.call("catch_up")
    for begin, end in pairwise(bounds):
        for position in range(begin, end):
            assert octets.call("bounds", position) == (begin, end)
    for position in (-1, bounds[-1]):
        with pytest.raises(PositionOutOfRangeError):
            octets.call("bounds", position)


@pytest.mark.parametrize("told", [True, False], ids=["sizes told", "measured"])
def test_looking_for_a_position_looks_into_few_batches_however_small_they_are(
    client: Client, octets: Octets, monkeypatch: pytest.MonkeyPatch, told: bool
) -> None:
    value = b"of 20 octets, so far"
    for begin in range(0, 3200, 400):
        produced = client.call("produce", {("t", 0): [batch(value)] * 400})["t", 0]
        assert produced.base_offsets == tuple(range(begin, begin + 400))
        for base in produced.base_offsets if told else ():
            octets.call("advance", base, [22])
    octets.call("catch_up")
    looked_into = []
    real = measuring.batch_pieces

    def counted(batches, *args):
        looked_into.append(len(batches))
        return real(batches, *args)

    monkeypatch.setattr(measuring, "batch_pieces", counted)
    assert octets.call("bounds", 22 * 1500) == (22 * 1500, 22 * 1501)
    assert sum(looked_into) < 600


@pytest.mark.parametrize("count", [1, 7, 8, 100, 9000])
def test_octets_of_values_alone_are_the_same_as_those_of_any_records(
    client: Client, octets: Octets, count: int
) -> None:
    plain = [[b"%04d" % number] for number in range(count)]
    produce(client, plain)
    produce(client, [*plain, [b"key", b"value"]])
    assert octets.all() == [*plain, *plain, [b"key", b"value"]]
    for position in (0, 1, 6 * count - 1, 6 * count, 6 * count + 3):
        assert octets.read(position) == raw.encode_messages([*plain, *plain, [b"key", b"value"]])[position:]
