"""Writing Arrow batches: the records at the broker, without Spark."""

from __future__ import annotations

import pyarrow as pa
import pytest
from spark.frames import create, records, values

from dafka.protocol.batch import read_header
from dafka.spark.cluster import Cluster
from dafka.spark.errors import UnreachableError
from dafka.spark.options import write_options
from dafka.spark.writing import RecordWriter


def write(servers, *batches, **options):
    given = write_options({"bootstrap.servers": servers, "topic": "t", **options})
    brokers = Cluster(given.access)
    with RecordWriter(brokers, given) as writer:
        for batch in batches:
            writer.write(batch)
        writer.flush()
    return writer


def rows(values, **columns):
    return pa.record_batch({"value": pa.array(values, pa.binary()), **columns})


def test_every_arrow_batch_is_written_in_order(broker):
    create(broker, "t", 1)
    parts = [rows([b"%d" % number for number in range(begin, begin + 100)]) for begin in range(0, 1000, 100)]
    assert write(broker.bootstrap_servers, *parts).records == 1000
    assert [int(value) for value in values(broker, "t")] == list(range(1000))


def test_slices_of_arrow_batches_are_written_as_they_are(broker):
    create(broker, "t", 2)
    keys = pa.array([b"a", b"b", None, b"c"], pa.binary())
    whole = rows([b"0", b"1", b"2", b"3"], key=keys, partition=pa.array([0, 1, 0, None], pa.int32()))
    write(broker.bootstrap_servers, whole.slice(1, 3))
    assert sorted((one.value, one.key) for one in records(broker, "t")) == [
        (b"1", b"b"),
        (b"2", None),
        (b"3", b"c"),
    ]


def test_record_batches_are_cut_at_their_size(broker):
    create(broker, "t", 1)
    sizes = []
    given = write_options(
        {"bootstrap.servers": broker.bootstrap_servers, "topic": "t", "kafka.max.request.size": "20000"}
    )
    brokers = Cluster(given.access)
    produce = brokers.produce

    def noted(batches, *arguments):
        sizes.extend(read_header(batch).size for some in batches.values() for batch in some)
        return produce(batches, *arguments)

    brokers.produce = noted
    with RecordWriter(brokers, given) as writer:
        writer.write(rows([bytes(900)] * 500))
        writer.flush()
    assert len(sizes) > 10
    assert max(sizes) <= 20_000
    assert len(values(broker, "t")) == 500


def test_batches_sent_twice_are_written_once(broker):
    """The answer to a produce gets lost; the same batches go out again."""
    create(broker, "t", 1)
    given = write_options({"bootstrap.servers": broker.bootstrap_servers, "topic": "t"})
    brokers = Cluster(given.access)
    call, lost = brokers._call, []

    def losing(method, *arguments, **keywords):
        answer = call(method, *arguments, **keywords)
        if method == "produce" and len(lost) < 2:
            lost.append(answer)
            raise ConnectionResetError("the answer was lost")
        return answer

    brokers._call = losing
    with RecordWriter(brokers, given) as writer:
        for begin in range(0, 300, 100):
            writer.write(rows([b"%d" % number for number in range(begin, begin + 100)]))
        writer.flush()
    assert len(lost) == 2
    assert [int(value) for value in values(broker, "t")] == list(range(300))


def test_a_broker_that_stays_away_is_an_error_with_the_reason(broker):
    given = write_options(
        {"bootstrap.servers": broker.bootstrap_servers, "topic": "t", "kafka.delivery.timeout.ms": "300"}
    )
    brokers = Cluster(given.access)
    call = brokers._call

    def failing(method, *arguments, **keywords):
        if method == "produce":
            raise ConnectionRefusedError("nobody there")
        return call(method, *arguments, **keywords)

    brokers._call = failing
    with (
        RecordWriter(brokers, given) as writer,
        pytest.raises(UnreachableError, match=r"for 0\.3 s: nobody there"),
    ):
        writer.write(rows([b"x"]))
        writer.flush()
