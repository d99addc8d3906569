"""Produces to very many partitions, and what may happen in their pauses: nothing acknowledged is lost, and
nobody waits in vain."""

from __future__ import annotations

import sys
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import gevent
import pytest
from broker.clients import Client, batch
from broker.pausing import at_pause
from kafka.errors import UnknownTopicOrPartitionError

from dafka import Broker
from dafka.broker.interface.broker import FetchFrom
from dafka.broker.interface.errors import BrokerStoppedError
from dafka.broker.interface.topics import TopicSpec
from dafka.broker.limits import WIDE_PRODUCE
from dafka.commit import writer
from dafka.log import LogClosedError

COUNT = WIDE_PRODUCE + 100


def to_all(*values: bytes) -> dict[tuple[str, int], list[bytes]]:
    return {("t", number): [batch(*values)] for number in range(COUNT)}


def before_readers_are_woken(monkeypatch: pytest.MonkeyPatch, happen: Callable[[], object]) -> list[bool]:
    """``happen()`` is carried out when a round is on disk and answered, and nobody woken yet who waits for
    its records. On a busy machine rounds are small."""
    happened: list[bool] = []
    monkeypatch.setattr(writer, "TURN_ITEMS", 10)
    next_turn = writer.next_turn

    def pause() -> None:
        if "grown" in sys._getframe(1).f_locals and not happened:
            happened.append(True)
            happen()
        next_turn()

    monkeypatch.setattr(writer, "next_turn", pause)
    return happened


@pytest.mark.parametrize("is_deleted", [False, True])
def test_readers_that_wait_are_answered_whatever_happens_before_they_are_woken(
    client, monkeypatch, is_deleted
):
    client.create("t", COUNT)
    core = client.core
    waits = {"max_wait": 600.0, "min_bytes": 1, "max_bytes": 1 << 20}

    def go() -> tuple[Any, Any]:
        fetch = gevent.spawn(core.fetch, {("t", COUNT - 1): FetchFrom(0, 1 << 20)}, **waits)
        gevent.sleep(0.01)
        deleting: list[gevent.Greenlet] = []

        def happen() -> None:
            if is_deleted:  # it waits for the writer itself
                deleting.append(gevent.spawn(core.delete_topics, ["t"]))
                gevent.sleep(0)
                assert core._topics.get("t") is None

        happened = before_readers_are_woken(monkeypatch, happen)
        answers = core.produce(to_all(b"x"))
        fetched = fetch.get(timeout=100)
        assert happened
        gevent.joinall(deleting, raise_error=True)
        return answers, fetched["t", COUNT - 1]

    answers, fetched = client.connection.hub.run(go)
    errors = Counter(one.error for one in answers.values())
    if is_deleted:  # those that were not in the first round are refused
        assert set(errors) == {None, UnknownTopicOrPartitionError} and errors[None] > writer.TURN_ITEMS
        assert fetched.error is UnknownTopicOrPartitionError
    else:
        assert errors == {None: COUNT}
        assert len(fetched.batches) == 1


def test_a_topic_that_is_made_anew_while_a_produce_is_taken_has_the_rest_of_it_alone(client, monkeypatch):
    """What was taken before is answered with its offset in the old one, or refused with the deletion."""
    client.create("t", COUNT)
    core = client.core
    assert {one.error for one in client.call("produce", to_all(b"old")).values()} == {None}

    def happen() -> None:
        assert core.delete_topics(["t"])["t"].error is None
        assert core.create_topics({"t": TopicSpec(COUNT)})["t"].error is None

    happened = at_pause(monkeypatch, "_checked", happen)
    answers = client.call("produce", to_all(b"new"))
    assert happened()
    outcomes = Counter((one.error, one.base_offset) for one in answers.values())
    assert len(answers) == COUNT
    assert set(outcomes) <= {(None, 0), (None, 1), (UnknownTopicOrPartitionError, -1)}
    assert 0 < outcomes[None, 0] < COUNT
    for (_, number), one in answers.items():
        is_new = (one.error, one.base_offset) == (None, 0)
        assert client.values("t", partition=number) == ([b"new"] if is_new else [])


@pytest.mark.parametrize("function", ["_checked", "_round"])
def test_a_broker_that_stops_while_a_produce_is_taken_keeps_what_it_has_acknowledged(
    tmp_path, monkeypatch, function
):
    broker = Broker(tmp_path)
    broker.start()
    client = Client(broker)
    client.create("t", COUNT)
    core, stopping = client.core, threading.Thread(target=broker.stop)
    outcome: dict[str, Any] = {}

    def happen() -> None:
        stopping.start()
        while core._lifecycle.running:
            gevent.sleep(0.001)

    def go() -> None:
        try:
            outcome["answers"] = core.produce(to_all(b"x"))
        except (BrokerStoppedError, LogClosedError) as error:
            outcome["error"] = error

    with monkeypatch.context() as patched:
        if function == "_checked":
            happened = at_pause(patched, "_checked", happen)
        else:
            seen = before_readers_are_woken(patched, happen)
            happened = lambda: len(seen)  # noqa: E731
        get = client.connection.hub.run
        get(go)
        assert happened()
        stopping.join(100)
        assert not stopping.is_alive()
    answers = outcome.get("answers", {})
    assert answers or "error" in outcome
    with Broker(tmp_path) as broker:
        again = Client(broker)
        for key, one in answers.items():
            if one.error is None:
                assert again.values("t", partition=key[1]) == [b"x"]
