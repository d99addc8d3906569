"""Calls that name so many partitions that they are written in several rounds, and some of these fail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gevent
import kafka.errors as errors
import pytest
from broker.clients import Client
from broker.transactions.transactional import Producer, fetch, visible

from dafka import Broker
from dafka.broker.interface.broker import CommittedOffset, TopicPartition
from dafka.broker.interface.groups import JoinRequest
from dafka.broker.limits import COMMIT_OFFSETS
from dafka.broker.transactions.transaction import OPEN
from dafka.log import LogWriteError

PLACES = [("t", number) for number in range(2 * COMMIT_OFFSETS + 5)]
OFFSETS = {place: CommittedOffset(7) for place in PLACES}
Answers = dict[TopicPartition, Any]


def failing_after(
    client: Client, monkeypatch: pytest.MonkeyPatch, rounds: int, call: Callable[[], Answers]
) -> Answers:
    """The answers of a call of which only so many rounds can be written."""
    log = client.core.log
    commit, left = log._storage.commit, rounds

    def fail_later(*rows: Any) -> None:
        nonlocal left
        left -= 1
        if left < 0:
            raise LogWriteError(log.path, "no space")
        commit(*rows)

    with monkeypatch.context() as patch:
        patch.setattr(log._storage, "commit", fail_later)
        return call()


def of(answers: Answers, error: object) -> set[TopicPartition]:
    return {place for place, answer in answers.items() if answer is error}


@pytest.fixture
def client(tmp_path):
    with Broker(tmp_path / "data") as broker:
        client = Client(broker)
        client.create("t", len(PLACES))
        yield client


@pytest.fixture
def again(client, tmp_path):
    """The client of the same broker after a restart."""

    def restart() -> Client:
        client.core.hub.run(client.core.close)
        broker = Broker(tmp_path / "data").start()
        brokers.append(broker)
        return Client(broker)

    brokers: list[Broker] = []
    yield restart
    for broker in brokers:
        broker.stop()


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_a_large_commit_commits_exactly_the_offsets_answered_without_an_error(
    client, again, monkeypatch, rounds
):
    answers = failing_after(client, monkeypatch, rounds, lambda: client.call("commit_offsets", "g", OFFSETS))
    assert list(answers) == PLACES
    assert len(of(answers, None)) == min(rounds * COMMIT_OFFSETS, len(PLACES))
    assert of(answers, None) | of(answers, errors.KafkaStorageError) == set(PLACES)
    assert set(client.call("fetch_offsets", "g")) == of(answers, None)
    assert set(again().call("fetch_offsets", "g")) == of(answers, None)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_a_large_deletion_deletes_exactly_the_offsets_answered_without_an_error(
    client, again, monkeypatch, rounds
):
    client.call("commit_offsets", "g", OFFSETS)
    answers = failing_after(client, monkeypatch, rounds, lambda: client.call("delete_offsets", "g", PLACES))
    assert list(answers) == PLACES
    assert len(of(answers, None)) == min(rounds * COMMIT_OFFSETS, len(PLACES))
    assert set(client.call("fetch_offsets", "g")) == of(answers, errors.KafkaStorageError)
    assert set(again().call("fetch_offsets", "g")) == of(answers, errors.KafkaStorageError)


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_partitions_added_to_a_transaction_are_told_from_those_refused(client, again, monkeypatch, rounds):
    producer = Producer(client)
    answers = failing_after(
        client,
        monkeypatch,
        rounds,
        lambda: client.call("add_partitions_to_transaction", *producer.who, PLACES),
    )
    assert list(answers) == PLACES
    assert len(of(answers, None)) == min(rounds * COMMIT_OFFSETS, len(PLACES))
    assert set(client.call("describe_transactions", ["x"])["x"].partitions) == of(answers, None)
    known = again()
    assert set(known.call("describe_transactions", ["x"])["x"].partitions) == of(answers, None)
    producer.client = known
    assert producer.add(*PLACES) is None  # clients repeat it
    producer.send(b"value", PLACES[-1])
    producer.commit()
    assert visible(fetch(known, 0, len(PLACES) - 1)) == [b"value"]


@pytest.mark.parametrize("rounds", [0, 1, 2, 3])
def test_exactly_the_offsets_of_a_transaction_answered_without_an_error_become_the_groups(
    client, again, monkeypatch, rounds
):
    producer = Producer(client)
    assert client.call("add_offsets_to_transaction", *producer.who, "g") is None
    answers = failing_after(
        client,
        monkeypatch,
        rounds,
        lambda: client.call("commit_transaction_offsets", *producer.who, "g", OFFSETS),
    )
    assert list(answers) == PLACES
    assert len(of(answers, None)) == min(rounds * COMMIT_OFFSETS, len(PLACES))
    assert client.call("fetch_offsets", "g") == {}
    producer.client = known = again()
    producer.commit()
    assert set(known.call("fetch_offsets", "g")) == of(answers, None)
    assert not len(known.core.log.table(OPEN))


@pytest.mark.parametrize("call", ["commit_offsets", "commit_transaction_offsets"])
def test_an_offset_that_is_not_a_number_is_an_error_before_any_of_many_is_written(client, call):
    producer = Producer(client)
    assert client.call("add_offsets_to_transaction", *producer.who, "g") is None
    who = producer.who if "transaction" in call else ()
    offsets = {**OFFSETS, PLACES[-1]: CommittedOffset("7")}  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        client.call(call, *who, "g", offsets)
    producer.commit()
    assert client.call("fetch_offsets", "g") == {}


def joining_after_first(
    client: Client, monkeypatch: pytest.MonkeyPatch, part: object, method: str, request: JoinRequest
) -> None:
    """Have a member join group g when ``method`` of a part of the broker has written the first round."""
    write, greens = getattr(part, method), []

    def written(*rows: Any) -> Any:
        outcome = write(*rows)
        if not greens:
            greens.append(gevent.spawn(client.core.join_group, "g", request))
            gevent.sleep(0)
        return outcome

    monkeypatch.setattr(part, method, written)


def test_a_member_that_joins_meanwhile_keeps_the_offsets_that_are_still_there(client, monkeypatch):
    client.call("commit_offsets", "g", OFFSETS)
    subscribed = (2).to_bytes(2, "big") + b"\0\0\0\1" + b"\0\1t" + b"\xff\xff\xff\xff" + b"\0\0\0\0"
    request = JoinRequest("", 10.0, 10.0, "consumer", [("range", subscribed)])
    joining_after_first(client, monkeypatch, client.core._offsets, "_put", request)
    answers = client.call("delete_offsets", "g", PLACES)
    assert of(answers, None) == set(PLACES[:COMMIT_OFFSETS])
    assert of(answers, errors.GroupSubscribedToTopicError) == set(PLACES[COMMIT_OFFSETS:])
    assert set(client.call("fetch_offsets", "g")) == set(PLACES[COMMIT_OFFSETS:])


def test_a_member_that_is_fenced_meanwhile_commits_nothing_more_in_a_transaction(client, monkeypatch):
    producer = Producer(client)
    assert client.call("add_offsets_to_transaction", *producer.who, "g") is None
    request = JoinRequest("", 10.0, 10.0, "consumer", [("range", b"")], instance_id="one")
    joined = client.call("join_group", "g", request)
    client.call("sync_group", "g", joined.generation, joined.member_id, "one", assignments={})
    joining_after_first(client, monkeypatch, client.core._transactions._table, "write", request)
    answers = client.call(
        "commit_transaction_offsets",
        *producer.who,
        "g",
        OFFSETS,
        generation=joined.generation,
        member_id=joined.member_id,
        instance_id="one",
    )
    assert of(answers, None) == set(PLACES[:COMMIT_OFFSETS])
    assert of(answers, errors.FencedInstanceIdError) == set(PLACES[COMMIT_OFFSETS:])
