"""Notes and transactions of a streaming query, at the moments in which it may die."""

from __future__ import annotations

import pyarrow as pa
import pytest
from kafka.errors import ConcurrentTransactionsError
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

from dafka.spark.cluster import cluster
from dafka.spark.errors import ColumnError, UnreachableError, WriteError
from dafka.spark.options import write_options
from dafka.spark.ranges import OffsetRange
from dafka.spark.reading import RangeReader
from dafka.spark.sink import BatchSink, StreamSink, Written
from dafka.spark.transactions import Note, Notes, TaskTransaction, abandon, begin, end, transactional_id
from dafka.spark.writing import RecordWriter

PLACE = ("t", 0)


@pytest.fixture
def brokers(broker):
    return cluster(write_options({"bootstrap.servers": broker.bootstrap_servers}).access)


def write_task(brokers, task, values, query="q"):
    """What a task does: write in a transaction and leave it open."""
    options = write_options({"bootstrap.servers": brokers.access.servers, "topic": "t"})
    name = transactional_id(query, task)
    identity = begin(brokers, name, 60)
    rows = pa.record_batch(
        {"value": pa.array(values, pa.binary()), "partition": pa.array([0] * len(values), pa.int32())}
    )
    with RecordWriter(brokers, options, identity, name) as writer:
        writer.write(rows)
        writer.flush()
    return TaskTransaction(name, identity.producer_id, identity.epoch)


@pytest.fixture
def sink(brokers):
    """What Spark's driver has of a streaming query that writes to topic t."""
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    return StreamSink(options, StructType([StructField("value", StringType())]), overwrite=False)


def batch_sink(brokers):
    """What tasks and driver have of a batch write to topic t."""
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    return BatchSink(options, StructType([StructField("value", BinaryType())]), overwrite=False)


def rows(values):
    return iter([pa.record_batch({"value": pa.array(values, pa.binary())})])


def ongoing(brokers):
    return brokers.call("list_transactions", ["Ongoing"])


def committed(brokers):
    last = brokers.offsets({PLACE: -1}, read_committed=True)[PLACE]
    reader = RangeReader(brokers, ["value"], read_committed=True)
    return [
        value for rows in reader.read(OffsetRange(*PLACE, 0, last)) for value in rows.column(0).to_pylist()
    ]


def test_nothing_is_seen_before_the_commit_and_all_of_it_after(brokers):
    open_transactions = [write_task(brokers, 0, [b"a", b"b"]), write_task(brokers, 1, [b"c"])]
    assert committed(brokers) == []
    end(brokers, open_transactions, commit=True)
    assert sorted(committed(brokers)) == [b"a", b"b", b"c"]


def test_a_task_that_is_run_again_takes_back_what_it_had_written(brokers):
    write_task(brokers, 0, [b"first attempt"])
    end(brokers, [write_task(brokers, 0, [b"second attempt"])], commit=True)
    assert committed(brokers) == [b"second attempt"]


def test_an_attempt_that_was_taken_for_dead_cannot_commit(brokers):
    first = write_task(brokers, 0, [b"first attempt"])
    second = write_task(brokers, 0, [b"second attempt"])
    with pytest.raises(WriteError, match="was not committed"):
        end(brokers, [first], commit=True)
    end(brokers, [second], commit=True)
    assert committed(brokers) == [b"second attempt"]


def test_a_decision_is_found_again(brokers):
    brokers.metadata(["t"], create=True)
    notes = Notes(brokers, "q")
    assert notes.last() == Note()
    notes.decide(4, PLACE, [0, 1, 2, 5])
    assert Notes(brokers, "q").last() == Note(4, (0, 1, 2, 5))
    assert Notes(brokers, "another").last() == Note()


def test_who_dies_between_note_and_commits_commits_the_rest_later(brokers):
    tasks = [write_task(brokers, task, [b"%d" % task]) for task in range(3)]
    notes = Notes(brokers, "q")
    notes.decide(7, PLACE, [0, 1, 2])
    end(brokers, tasks[:1], commit=True)
    assert Notes(brokers, "q").last().batch == 7
    Notes(brokers, "q").finish(7)
    assert sorted(committed(brokers)) == [b"0", b"1", b"2"]
    Notes(brokers, "q").finish(7)
    assert sorted(committed(brokers)) == [b"0", b"1", b"2"]


def test_a_decision_that_cannot_be_carried_out_any_more_is_an_error(brokers):
    task = write_task(brokers, 0, [b"x"])
    Notes(brokers, "q").decide(3, PLACE, [0])
    end(brokers, [task], commit=False)  # what the broker does when the transaction's time is over
    with pytest.raises(WriteError, match="has been aborted since"):
        Notes(brokers, "q").finish(3)


def test_a_task_that_fails_leaves_no_transaction_open(brokers):
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    schema = StructType([StructField("value", StringType()), StructField("partition", IntegerType())])
    sink = BatchSink(options, schema, overwrite=False)

    def rows(partition):
        return pa.record_batch({"value": pa.array(["x"]), "partition": pa.array([partition], pa.int32())})

    with pytest.raises(ColumnError, match="column partition is 9"):
        sink._write(iter([rows(0), rows(9)]), "job", 0)
    end(brokers, [write_task(brokers, 1, [b"later"])], commit=True)
    assert committed(brokers) == [b"later"]  # and not held up by what is open in front of it


def test_a_task_that_begins_after_its_write_was_given_up_writes_nothing(brokers):
    sink = batch_sink(brokers)
    sink.abort([None, None])
    with pytest.raises(WriteError, match="this write was given up"):
        sink._write(rows([b"late"]), sink._job, 1)
    batch_sink(brokers)._write(rows([b"of another write"]), "another", 1)
    assert [open_.transactional_id for open_ in ongoing(brokers)] == [transactional_id("another", 1)]


def test_a_task_that_had_begun_when_its_write_was_given_up_writes_nothing(brokers, monkeypatch):
    sink, write = batch_sink(brokers), RecordWriter.write

    def given_up_before(writer, some):
        sink.abort([None, None])
        write(writer, some)

    monkeypatch.setattr(RecordWriter, "write", given_up_before)
    with pytest.raises(WriteError, match=transactional_id(sink._job, 1)):
        sink._write(rows([b"late"]), sink._job, 1)
    assert ongoing(brokers) == []


def test_so_does_one_of_a_micro_batch_that_failed(brokers, sink):
    slow = begin(brokers, transactional_id("q", 1), 60)
    sink.abort([Written("q", 0, 1, PLACE, write_task(brokers, 0, [b"written"])), None], 5)
    answer = brokers.call("add_partitions_to_transaction", transactional_id("q", 1), *slow[1:], [PLACE])
    assert answer[PLACE] is not None
    assert ongoing(brokers) == []


def test_what_killed_tasks_left_open_is_abandoned_with_their_job(brokers):
    write_task(brokers, 0, [b"killed"])
    other = write_task(brokers, 0, [b"of another job"], query="other")
    abandon(brokers, "q", 60)
    end(brokers, [other], commit=True)
    assert committed(brokers) == [b"of another job"]


def test_a_query_that_goes_on_with_fewer_tasks_ends_what_the_others_left_open(brokers, sink):
    for task in range(3):
        write_task(brokers, task, [b"killed"])
    sink.commit([Written("q", 0, 1, PLACE, write_task(brokers, 0, [b"again"]))], 5)
    assert committed(brokers) == [b"again"]
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"again", b"later"]  # and not held up by tasks 1 and 2


def test_so_does_one_that_had_decided_before_it_died(brokers, sink):
    write_task(brokers, 0, [b"decided"])
    Notes(brokers, "q").decide(5, PLACE, [0])
    write_task(brokers, 1, [b"killed"])
    sink.commit([Written("q", 0, 0, skipped=True)], 5)
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"decided", b"later"]


def test_a_failed_micro_batch_leaves_nothing_open(brokers, sink):
    for task in range(2):
        write_task(brokers, task, [b"killed"])
    sink.abort([Written("q", 2, 1, PLACE, write_task(brokers, 2, [b"written"])), None], 5)
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"later"]


def test_what_is_decided_is_not_aborted_when_its_commit_fails(brokers, sink, monkeypatch):
    """Spark aborts a micro-batch whose commit raised an error."""
    messages = [Written("q", task, 1, PLACE, write_task(brokers, task, [b"%d" % task])) for task in range(2)]
    settled = brokers.settled

    def unreachable(method, *arguments, **keywords):
        if method == "end_transaction" and arguments[0] == messages[1].transaction.name:
            raise UnreachableError("the broker has not answered")
        return settled(method, *arguments, **keywords)

    monkeypatch.setattr(brokers, "settled", unreachable)
    with pytest.raises(UnreachableError):
        sink.commit(messages, 5)
    monkeypatch.undo()
    sink.abort(messages, 5)
    sink.commit([Written("q", 0, 0, skipped=True)], 5)
    assert sorted(committed(brokers)) == [b"0", b"1"]


def test_a_transaction_that_is_still_being_ended_is_waited_for(brokers):
    call, busy = brokers._call, [ConcurrentTransactionsError] * 2

    def answering(method, *arguments, **keywords):
        answer = call(method, *arguments, **keywords)
        return answer._replace(error=busy.pop()) if method == "init_producer_id" and busy else answer

    brokers._call = answering
    end(brokers, [write_task(brokers, 0, [b"x"])], commit=True)
    assert not busy
    assert committed(brokers) == [b"x"]
