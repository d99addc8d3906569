"""exactlyOnce without Spark: a query that dies, or fails, at each of its calls to the broker."""

from __future__ import annotations

import random
from contextlib import suppress
from itertools import count
from types import SimpleNamespace

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, StructField, StructType
from spark.frames import create

from dafka.spark import sink as sinks
from dafka.spark.cluster import cluster
from dafka.spark.errors import UnreachableError, WriteError
from dafka.spark.options import write_options
from dafka.spark.ranges import OffsetRange
from dafka.spark.reading import RangeReader
from dafka.spark.sink import StreamSink

BATCHES, TASKS = 2, 2
EXPECTED = sorted(b"%d-%d" % (batch, task) for batch in range(BATCHES) for task in range(TASKS))
SCHEMA = StructType([StructField("value", BinaryType())])


class DiedError(BaseException):
    """The process is gone: nothing that it would have done is done."""


class Query:
    """A streaming query that writes BATCHES micro-batches of TASKS rows, as Spark would have it do."""

    def __init__(self, broker, number, monkeypatch):
        self.topic, self.name = f"t{number}", f"q{number}"
        create(broker, self.topic, 1)
        options = {"bootstrap.servers": broker.bootstrap_servers, "topic": self.topic, "exactlyOnce": "true"}
        self.sink = StreamSink(write_options(options), SCHEMA)
        self.brokers = cluster(write_options(options).access)
        self.committed = 0  # Spark's commit log
        self.runs = count()
        self.calls = 0
        self._patch = monkeypatch

    def run(self, dies_at=None, answered=False, fails=False, late=None):
        """One run, which dies at a call, or fails there; whether it came to its end.

        ``answered``: the broker does what it is called for, and only the answer is lost. ``late``: a call in
        front of which a task of the dead run before this one writes what it was to write.
        """
        call = type(self.brokers)._call.__get__(self.brokers)
        self.calls = 0
        lost = UnreachableError("the answer was lost") if fails else DiedError()

        def counted(method, *arguments, **keywords):
            self.calls += 1
            if self.calls == late:
                with patch.context() as other, suppress(WriteError):
                    other.setattr(self.brokers, "_call", call)
                    self._task(other, f"{self.name}-run-0", 0, 0)
            dead = dies_at is not None and (self.calls == dies_at if fails else self.calls >= dies_at)
            if dead and not (answered and self.calls == dies_at):
                raise lost
            answer = call(method, *arguments, **keywords)
            if dead:
                raise lost
            return answer

        with self._patch.context() as patch:
            patch.setattr(self.brokers, "_call", counted)
            run = f"{self.name}-run-{next(self.runs)}"
            try:
                for batch in range(self.committed, BATCHES):
                    self._micro_batch(patch, run, batch)
                    self.committed += 1
            except (DiedError, UnreachableError, WriteError):
                return False
        return True

    def _task(self, patch, run, batch, task):
        said = {
            "sql.streaming.queryId": self.name,
            "spark.jobGroup.id": run,
            "streaming.sql.batchId": str(batch),
        }
        context = SimpleNamespace(
            partitionId=lambda: task, attemptNumber=lambda: 0, getLocalProperty=said.get
        )
        patch.setattr(sinks, "_context", lambda: context)
        rows = pa.record_batch({"value": pa.array([b"%d-%d" % (batch, task)], pa.binary())})
        return self.sink.write(iter([rows]))

    def _micro_batch(self, patch, run, batch):
        messages = [None] * TASKS
        try:
            for task in range(TASKS):
                messages[task] = self._task(patch, run, batch, task)
            self.sink.commit(messages, batch)
        except (UnreachableError, WriteError):
            self.sink.abort(messages, batch)
            raise

    def seen(self):
        """What readers of committed records see; all transactions have to have ended."""
        place = (self.topic, 0)
        end, last = (self.brokers.offsets({place: -1}, committed)[place] for committed in (False, True))
        assert last == end
        reader = RangeReader(self.brokers, ["value"], read_committed=True)
        rows = [batch.column(0).to_pylist() for batch in reader.read(OffsetRange(*place, 0, last))]
        return sorted(value for some in rows for value in some)


@pytest.mark.parametrize("fails", [False, True], ids=["dies", "fails"])
@pytest.mark.parametrize("answered", [False, True], ids=["unheard", "unanswered"])
def test_a_query_that_ends_at_any_call_and_is_started_again_writes_each_row_once(
    broker, monkeypatch, answered, fails
):
    for at in count(1):
        query = Query(broker, at, monkeypatch)
        if query.run(at, answered, fails):
            break
        assert query.run(), at
        assert query.seen() == EXPECTED, at
    assert at > 20
    assert query.seen() == EXPECTED


def test_so_does_one_that_ends_again_and_again(broker, monkeypatch):
    dice = random.Random(4)
    for number in range(40):
        query = Query(broker, number, monkeypatch)
        ends = [(dice.randrange(1, 40), dice.random() < 0.5, dice.random() < 0.5) for _ in range(4)]
        done = any(query.run(*end) for end in ends) or query.run()
        assert done, ends
        assert query.seen() == EXPECTED, ends


def test_so_does_one_whose_dead_run_has_a_task_that_writes_late(broker, monkeypatch):
    """The run may fail, and the next one goes on."""
    for late in count(1):
        query = Query(broker, late, monkeypatch)
        assert not query.run(3)
        done = query.run(late=late)
        if query.calls < late:
            break
        assert done or query.run(), late
        assert query.seen() == EXPECTED, late
    assert late > 20
