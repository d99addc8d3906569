"""Notes and transactions of a streaming query, at the moments in which it may die."""

from __future__ import annotations

import pytest
from kafka.errors import ConcurrentTransactionsError
from spark.transacting import PLACE, committed, write_task

from dafka.spark.errors import WriteError
from dafka.spark.transactions import Note, Notes, TaskTransaction, abandon, begin, end, transactional_id


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
    end(brokers, [task], commit=False)  # as the broker does when the transaction's time is over
    with pytest.raises(WriteError, match="has been aborted since"):
        Notes(brokers, "q").finish(3)


@pytest.mark.parametrize("wrote", [False, True])
def test_undecided_writes_are_not_committed_instead_of_the_decided_ones(brokers, wrote):
    """A task of an earlier run begins after the decision: the decided records are gone."""
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


def test_transactions_left_open_by_killed_tasks_are_abandoned_with_their_job(brokers):
    write_task(brokers, 0, [b"killed"])
    other = write_task(brokers, 0, [b"of another job"], query="other")
    abandon(brokers, "q", 60)
    end(brokers, [other], commit=True)
    assert committed(brokers) == [b"of another job"]


def test_a_transaction_that_is_still_being_ended_is_waited_for(brokers):
    call, busy = brokers._call, [ConcurrentTransactionsError] * 2

    def answering(method, *arguments, **keywords):
        answer = call(method, *arguments, **keywords)
        return answer._replace(error=busy.pop()) if method == "init_producer_id" and busy else answer

    brokers._call = answering
    end(brokers, [write_task(brokers, 0, [b"x"])], commit=True)
    assert not busy
    assert committed(brokers) == [b"x"]
