"""Sinks in transactions, batch and streaming: tasks that are late, run twice, fail or die."""

from __future__ import annotations

import pyarrow as pa
import pytest
from pyspark.sql.types import IntegerType, StringType, StructField, StructType
from spark.transacting import PLACE, batch_sink, committed, ongoing, rows, write_task, written

from dafka.spark.errors import ColumnError, UnreachableError, WriteError
from dafka.spark.options import write_options
from dafka.spark.sink import BatchSink, Written
from dafka.spark.transactions import Notes, begin, end, transactional_id
from dafka.spark.writing import RecordWriter


def test_a_task_that_fails_leaves_no_transaction_open(brokers, as_task):
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    schema = StructType([StructField("value", StringType()), StructField("partition", IntegerType())])
    sink = BatchSink(options, schema, overwrite=False)

    def rows(partition):
        return pa.record_batch({"value": pa.array(["x"]), "partition": pa.array([partition], pa.int32())})

    as_task(0)
    with pytest.raises(ColumnError, match="column partition is 9"):
        sink.write(iter([rows(0), rows(9)]))
    end(brokers, [write_task(brokers, 1, [b"later"])], commit=True)
    assert committed(brokers) == [b"later"]  # and not held up by what is open in front of it


def test_a_task_that_begins_after_its_write_was_given_up_writes_nothing(brokers, as_task):
    sink, other = batch_sink(brokers), batch_sink(brokers)
    sink.abort([None, None])
    as_task(1)
    with pytest.raises(WriteError, match="this write is over"):
        sink.write(rows([b"late"]))
    other.write(rows([b"of another write"]))
    assert [open_.transactional_id for open_ in ongoing(brokers)] == [transactional_id(other._job, 1)]


def test_a_task_that_had_begun_when_its_write_was_given_up_writes_nothing(brokers, as_task, monkeypatch):
    sink, write = batch_sink(brokers), RecordWriter.write

    def given_up_before(writer, some):
        sink.abort([None, None])
        write(writer, some)

    monkeypatch.setattr(RecordWriter, "write", given_up_before)
    as_task(1)
    with pytest.raises(WriteError, match=transactional_id(sink._job, 1)):
        sink.write(rows([b"late"]))
    assert ongoing(brokers) == []


def test_a_task_of_a_micro_batch_that_failed_writes_nothing_in_that_run(brokers, sink, as_task):
    slow = begin(brokers, transactional_id("q", 1), 60)
    sink.abort([written(write_task(brokers, 0, [b"written"])), None], 5)
    answer = brokers.call("add_partitions_to_transaction", transactional_id("q", 1), *slow[1:], [PLACE])
    assert answer[PLACE] is not None
    as_task(2)
    with pytest.raises(WriteError, match="this write is over"):
        sink.write(rows([b"late"]))
    assert ongoing(brokers) == []
    as_task(2, run="the next")
    assert sink.write(rows([b"again"])).records == 1


def test_the_slower_of_two_attempts_takes_nothing_from_the_faster(brokers, as_task):
    """As with spark.speculation: Spark commits what was ready first, while the other attempt runs."""
    sink = batch_sink(brokers)
    as_task(0)
    first = sink.write(rows([b"x"]))
    as_task(0, attempt=1)
    sink.write(rows([b"x"]))
    sink.commit([first])
    assert committed(brokers) == [b"x"]
    assert ongoing(brokers) == []


def test_an_attempt_that_begins_when_its_batch_is_committed_writes_nothing(brokers, as_task):
    sink = batch_sink(brokers)
    as_task(0)
    sink.commit([sink.write(rows([b"x"]))])
    as_task(0, attempt=1)
    with pytest.raises(WriteError, match="this write is over"):
        sink.write(rows([b"x"]))
    assert ongoing(brokers) == []
    assert committed(brokers) == [b"x"]


def test_the_slower_of_two_attempts_at_a_micro_batch_takes_nothing_from_the_faster(brokers, sink, as_task):
    as_task(0)
    first = sink.write(rows(["x"]))
    as_task(0, attempt=1)
    sink.write(rows(["x"]))
    sink.commit([first], 5)
    assert committed(brokers) == [b"x"]
    assert ongoing(brokers) == []


def test_an_attempt_at_a_micro_batch_that_was_committed_meanwhile_takes_back_its_own(
    brokers, sink, as_task, monkeypatch
):
    as_task(0)
    messages, write = [sink.write(rows(["x"]))], RecordWriter.write

    def committed_before(writer, some):
        if messages:
            sink.commit([messages.pop()], 5)
        write(writer, some)

    monkeypatch.setattr(RecordWriter, "write", committed_before)
    as_task(0, attempt=1)
    assert sink.write(rows(["x"])).transaction is None
    assert ongoing(brokers) == []
    assert committed(brokers) == [b"x"]


def test_an_attempt_whose_rows_come_when_its_micro_batch_is_committed_does_not_begin(brokers, sink, as_task):
    """It has the id of an attempt at the next micro-batch, which may have written already."""
    as_task(0)
    messages = [sink.write(rows(["x"]))]

    def late():
        sink.commit(messages, 5)
        messages[:] = [written(write_task(brokers, 0, [b"next"]))]
        yield from rows(["x"])

    assert sink.write(late()).transaction is None
    sink.commit(messages, 6)
    assert committed(brokers) == [b"x", b"next"]


def test_transactions_that_are_gone_before_the_decision_are_an_error_that_passes(brokers, sink):
    """A task of a killed run begins late, or a transaction's time was over before the last task had written.
    Nothing is decided, nothing is committed, and the query can be started again."""
    messages = [written(write_task(brokers, task, [b"%d" % task])) for task in range(2)]
    begin(brokers, transactional_id("q", 1), 60)
    with pytest.raises(WriteError, match=r"transaction dafka-spark-q-1 was aborted before .*timeout\.ms"):
        sink.commit(messages, 5)
    sink.abort(messages, 5)
    assert committed(brokers) == []
    sink.commit([written(write_task(brokers, task, [b"%d" % task])) for task in range(2)], 5)
    assert committed(brokers) == [b"0", b"1"]


def test_a_batch_that_cannot_be_committed_as_a_whole_stays_invisible(brokers, as_task):
    sink = batch_sink(brokers)
    messages = []
    for task in range(2):
        as_task(task)
        messages.append(sink.write(rows([b"%d" % task])))
    begin(brokers, transactional_id(sink._job, 1), 60)
    with pytest.raises(WriteError, match="was aborted before it could be committed"):
        sink.commit(messages)
    sink.abort(messages)
    assert committed(brokers) == []


def test_a_decided_micro_batch_is_not_aborted_when_its_commit_fails(brokers, sink, monkeypatch):
    """Spark aborts a micro-batch whose commit raised an error."""
    messages = [written(write_task(brokers, task, [b"%d" % task])) for task in range(2)]
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
    sink.commit([Written(0, query="q", run="the next")], 5)
    assert sorted(committed(brokers)) == [b"0", b"1"]


def test_a_query_that_goes_on_with_fewer_tasks_ends_what_the_others_left_open(brokers, sink):
    for task in range(3):
        write_task(brokers, task, [b"killed"])
    sink.commit([written(write_task(brokers, 0, [b"again"]))], 5)
    assert committed(brokers) == [b"again"]
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"again", b"later"]  # and not held up by tasks 1 and 2


def test_a_query_that_had_decided_before_it_died_ends_what_other_tasks_left_open(brokers, sink):
    Notes(brokers, "q").decide(5, PLACE, [write_task(brokers, 0, [b"decided"])])
    write_task(brokers, 1, [b"killed"])
    sink.commit([Written(0, query="q", run="run")], 5)
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"decided", b"later"]


def test_a_failed_micro_batch_leaves_nothing_open(brokers, sink):
    for task in range(2):
        write_task(brokers, task, [b"killed"])
    sink.abort([written(write_task(brokers, 2, [b"written"])), None], 5)
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"later"]
