"""Notes and transactions of a streaming query, at the moments in which it may die."""

from __future__ import annotations

from types import SimpleNamespace

import pyarrow as pa
import pytest
from kafka.errors import ConcurrentTransactionsError
from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType
from spark.frames import create

from dafka.spark import sink as sinks
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
    create(broker, "t", 1)
    return cluster(write_options({"bootstrap.servers": broker.bootstrap_servers}).access)


def write_task(brokers, task, values, query="q", attempt=0):
    """What a task does: write in a transaction and leave it open."""
    options = write_options({"bootstrap.servers": brokers.access.servers, "topic": "t"})
    name = transactional_id(query, task, attempt)
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
    return StreamSink(options, StructType([StructField("value", StringType())]))


def batch_sink(brokers):
    """What tasks and driver have of a batch write to topic t."""
    options = write_options(
        {"bootstrap.servers": brokers.access.servers, "topic": "t", "exactlyOnce": "true"}
    )
    return BatchSink(options, StructType([StructField("value", BinaryType())]), overwrite=False)


def written(transaction, query="q", run="run"):
    """What a task tells the driver."""
    return Written(1, PLACE, transaction, query, run)


@pytest.fixture
def as_task(monkeypatch):
    """Makes this the process of a task: what Spark says about it."""

    def become(task, attempt=0, batch=5, query="q", run="run"):
        said = {
            "sql.streaming.queryId": query,
            "spark.jobGroup.id": run,
            "streaming.sql.batchId": str(batch),
        }
        context = SimpleNamespace(
            partitionId=lambda: task, attemptNumber=lambda: attempt, getLocalProperty=said.get
        )
        monkeypatch.setattr(sinks, "_context", lambda: context)

    return become


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
    notes = Notes(brokers, "q")
    assert notes.last() == Note()
    tasks = [(0, 0), (1, 0), (2, 0), (5, 0), (7, 1), (3, 2)]
    names = [transactional_id("q", task, attempt) for task, attempt in tasks]
    notes.decide(4, PLACE, [TaskTransaction(name, 11, 3) for name in names])
    found = Notes(brokers, "q").last()
    assert (found.batch, found.names) == (4, tuple(names))
    assert Notes(brokers, "another").last() == Note()


def test_a_decision_about_thousands_of_tasks_fits_into_a_note(brokers):
    tasks = [TaskTransaction(transactional_id("q", task), task * 7, task % 5) for task in range(5000)]
    Notes(brokers, "q").decide(4, PLACE, tasks)
    assert len(Notes(brokers, "q").last().names) == 5000


def test_a_query_that_died_between_note_and_commits_commits_the_rest_later(brokers):
    tasks = [write_task(brokers, task, [b"%d" % task], attempt=task % 2) for task in range(3)]
    notes = Notes(brokers, "q")
    notes.decide(7, PLACE, tasks)
    end(brokers, tasks[:1], commit=True)
    assert Notes(brokers, "q").last().batch == 7
    Notes(brokers, "q").finish(7)
    assert sorted(committed(brokers)) == [b"0", b"1", b"2"]
    Notes(brokers, "q").finish(7)
    assert sorted(committed(brokers)) == [b"0", b"1", b"2"]


def test_a_decision_that_cannot_be_carried_out_any_more_is_an_error(brokers):
    task = write_task(brokers, 0, [b"x"])
    Notes(brokers, "q").decide(3, PLACE, [task])
    end(brokers, [task], commit=False)  # what the broker does when the transaction's time is over
    with pytest.raises(WriteError, match="has been aborted since"):
        Notes(brokers, "q").finish(3)


@pytest.mark.parametrize("wrote", [False, True])
def test_what_was_not_decided_is_not_committed_in_its_place(brokers, wrote):
    """A task of an earlier run begins after the decision: what was decided is gone."""
    Notes(brokers, "q").decide(3, PLACE, [write_task(brokers, 0, [b"decided"])])
    if wrote:
        write_task(brokers, 0, [b"half of"])
    else:
        begin(brokers, transactional_id("q", 0), 60)
    with pytest.raises(WriteError, match="micro-batch 3 of query q was to be committed"):
        Notes(brokers, "q").finish(3)
    assert committed(brokers) == []


def test_a_transaction_that_is_gone_after_the_decision_is_an_error(brokers):
    Notes(brokers, "q").decide(3, PLACE, [TaskTransaction(transactional_id("q", 0), 1, 0)])
    with pytest.raises(WriteError, match="dafka-spark-q-0 is gone"):
        Notes(brokers, "q").finish(3)


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


def test_so_does_one_of_a_micro_batch_that_failed(brokers, sink, as_task):
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


# -- attempts at the same task ------------------------------------------------------------------


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


def test_of_a_batch_that_cannot_be_committed_as_a_whole_nothing_is_seen(brokers, as_task):
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


# -- what earlier runs have left open -----------------------------------------------------------


def test_what_killed_tasks_left_open_is_abandoned_with_their_job(brokers):
    write_task(brokers, 0, [b"killed"])
    other = write_task(brokers, 0, [b"of another job"], query="other")
    abandon(brokers, "q", 60)
    end(brokers, [other], commit=True)
    assert committed(brokers) == [b"of another job"]


def test_a_query_that_goes_on_with_fewer_tasks_ends_what_the_others_left_open(brokers, sink):
    for task in range(3):
        write_task(brokers, task, [b"killed"])
    sink.commit([written(write_task(brokers, 0, [b"again"]))], 5)
    assert committed(brokers) == [b"again"]
    end(brokers, [write_task(brokers, 0, [b"later"], query="other")], commit=True)
    assert committed(brokers) == [b"again", b"later"]  # and not held up by tasks 1 and 2


def test_so_does_one_that_had_decided_before_it_died(brokers, sink):
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


def test_a_transaction_that_is_still_being_ended_is_waited_for(brokers):
    call, busy = brokers._call, [ConcurrentTransactionsError] * 2

    def answering(method, *arguments, **keywords):
        answer = call(method, *arguments, **keywords)
        return answer._replace(error=busy.pop()) if method == "init_producer_id" and busy else answer

    brokers._call = answering
    end(brokers, [write_task(brokers, 0, [b"x"])], commit=True)
    assert not busy
    assert committed(brokers) == [b"x"]
