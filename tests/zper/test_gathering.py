"""Gathering: when a flush is due, and the answers to clients."""

from __future__ import annotations

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dafka.zper.gathering import Gathering, Run
from dafka.zper.identity import Mode


def run(*messages, client="c", mode=Mode.NO_RESPONSE, delimited=False):
    frames = [[message] if isinstance(message, bytes) else list(message) for message in messages]
    return Run(client, mode, delimited, frames, 0)


def gathering(messages=10, interval=1.0, octets=1_000_000):
    return Gathering(messages, interval, octets)


def answers(*runs):
    one = gathering()
    for each in runs:
        one.add(each, 0.0)
    by_client = {}
    for client, said in one.take().answers():
        by_client.setdefault(client, []).extend(map(list, said))
    return by_client


def test_nothing_is_due_while_nothing_is_there():
    assert gathering().wait(5.0) == inf


def test_a_flush_is_due_an_interval_after_the_first_message():
    one = gathering(interval=1.0)
    one.add(run(b"a"), 10.0)
    one.add(run(b"b"), 10.9)
    assert one.wait(10.4) == pytest.approx(0.6)
    assert one.wait(11.0) == one.wait(12.0) == 0.0


def test_a_flush_is_due_when_there_are_as_many_messages_as_wanted():
    one = gathering(messages=3)
    one.add(run(b"a", b"b"), 0.0)
    assert one.wait(0.0) == 1.0
    one.add(run(b"c"), 0.0)
    assert one.wait(0.0) == 0.0


def test_a_flush_is_due_when_there_are_many_octets():
    one = gathering(octets=5000)
    one.add(run(b"x" * 4000), 0.0)
    assert one.wait(0.0) == 1.0
    one.add(run(b"x" * 1000), 0.0)
    assert one.wait(0.0) == 0.0


def test_mode_2_makes_a_flush_due_at_once_with_all_that_is_there():
    one = gathering()
    one.add(run(b"a"), 0.0)
    one.add(run(b"b", mode=Mode.EVERY_WRITE), 0.1)
    one.add(run(b"c"), 0.1)
    assert one.wait(0.1) == 0.0
    assert [message for each in one.take().runs for message in each.messages] == [[b"a"], [b"b"], [b"c"]]


def test_after_a_flush_everything_starts_anew():
    one = gathering(messages=2)
    one.add(run(b"a", b"b"), 0.0)
    one.take()
    assert (one.messages, one.octets, one.wait(9.0)) == (0, 0, inf)
    one.add(run(b"c"), 9.0)
    assert one.wait(9.0) == 1.0


def test_mode_0_is_not_answered():
    assert answers(run(b"a", b"b")) == {}


def test_mode_1_is_answered_once_for_each_flush_with_the_last_frame_of_its_last_message():
    runs = run(b"a", b"b", mode=Mode.AT_FLUSH), run((b"id", b"body"), mode=Mode.AT_FLUSH)
    assert answers(*runs) == {"c": [[b"body"]]}


def test_mode_1_answers_each_client_with_its_own_message():
    one, other = run(b"a", client="1", mode=Mode.AT_FLUSH), run(b"b", client="2", mode=Mode.AT_FLUSH)
    assert answers(one, other, run(b"c", client="3")) == {"1": [[b"a"]], "2": [[b"b"]]}


def test_mode_2_is_answered_for_each_message_with_its_last_frame():
    assert answers(run(b"a", (b"1", b"b"), mode=Mode.EVERY_WRITE), run(b"c", mode=Mode.EVERY_WRITE)) == {
        "c": [[b"a"], [b"b"], [b"c"]]
    }


def test_the_delimiter_goes_before_the_answer_of_a_message_that_had_one():
    assert answers(run(b"a", mode=Mode.EVERY_WRITE, delimited=True), run(b"b", mode=Mode.EVERY_WRITE)) == {
        "c": [[b"", b"a"], [b"b"]]
    }
    assert answers(run(b"a", mode=Mode.AT_FLUSH, delimited=True)) == {"c": [[b"", b"a"]]}


def test_messages_that_were_refused_are_not_answered():
    one = gathering()
    messages = [[b"a"], [b"b"], [b"c"]]
    one.add(Run("1", Mode.EVERY_WRITE, False, messages, 0), 0.0)
    others = [[b"d"], [b"e"]]
    one.add(Run("2", Mode.AT_FLUSH, False, others, 0), 0.0)
    bulk = one.take()
    assert dict(bulk.without({1, 4}).answers()) == {"1": [[b"a"], [b"c"]], "2": [[b"d"]]}
    assert dict(bulk.without(range(5)).answers()) == {}


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from([0, 1, 2]), st.integers(1, 4)), max_size=12))
def test_every_message_is_taken_once_and_every_promise_is_kept(runs):
    one = gathering(messages=5)
    taken, said, number = [], [], 0
    modes = {}
    expected = {}
    for client, mode, count in runs:
        mode = modes.setdefault(client, mode)
        messages = [b"%d" % (number + place) for place in range(count)]
        number += count
        one.add(run(*messages, client=client, mode=mode), 0.0)
        expected.setdefault(client, []).extend(messages)
        if one.wait(0.0) == 0.0:
            bulk = one.take()
            taken += [message[0] for each in bulk.runs for message in each.messages]
            said += [(client, frames[-1]) for client, frames_list in bulk.answers() for frames in frames_list]
    bulk = one.take()
    taken += [message[0] for each in bulk.runs for message in each.messages]
    said += [(client, frames[-1]) for client, frames_list in bulk.answers() for frames in frames_list]
    assert taken == [b"%d" % each for each in range(number)]
    for client, messages in expected.items():
        own = [frame for who, frame in said if who == client]
        if modes[client] == Mode.EVERY_WRITE:
            assert own == messages
        elif modes[client] == Mode.AT_FLUSH:
            assert own == sorted(set(own), key=int) and own[-1] == messages[-1]
        else:
            assert not own
