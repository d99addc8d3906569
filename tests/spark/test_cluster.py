"""The brokers for Spark's processes: one object for all tasks, and calls that are made again."""

from __future__ import annotations

import os

import pytest
from broker.users import add
from kafka.errors import KafkaConnectionError, NotLeaderForPartitionError, TopicAuthorizationFailedError
from spark.frames import create, produce

from dafka import Broker
from dafka.broker.interface.broker import EARLIEST, LATEST
from dafka.spark import cluster as module
from dafka.spark.cluster import CLUSTERS_LIMIT, Cluster, cluster, find_broker
from dafka.spark.errors import UnknownTopicError, UnreachableError
from dafka.spark.options import Subscription, read_options


def access(servers, **options):
    read = read_options({"bootstrap.servers": servers, "subscribe": "t"})
    return read.access._replace(connect_timeout=0.2, patience=0.3, **options)


@pytest.fixture
def brokers(broker):
    create(broker, "t", 2)
    create(broker, "u", 1)
    produce(broker, "t", [b"a", b"b"], partition=1, timestamp_ms=[1000, 2000])
    return Cluster(access(broker.bootstrap_servers)._replace(connect_timeout=100, patience=100))


@pytest.fixture
def clusters(monkeypatch):
    """The clusters of a process that has none yet."""
    monkeypatch.setattr(module, "_clusters", {})


class Connection:
    """A connection whose calls end as ``outcomes`` say; the last one goes on."""

    def __init__(self, *outcomes):
        self.outcomes = list(outcomes)
        self.calls = 0

    def call(self, method, *args, **keywords):
        self.calls += 1
        outcome = self.outcomes.pop(0) if len(self.outcomes) > 1 else self.outcomes[0]
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


@pytest.fixture
def connections(monkeypatch):
    """Has the cluster connect to these, one after the other."""

    def use(*some, patience=100):
        made = iter(some)
        monkeypatch.setattr(module, "connect", lambda servers, timeout, **security: next(made))
        return Cluster(access("nowhere:1")._replace(patience=patience))

    return use


# -- topics and offsets -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("subscription", "expected"),
    [
        (Subscription(topics=("u", "t")), [("t", 0), ("t", 1), ("u", 0)]),
        (Subscription(pattern="t|x"), [("t", 0), ("t", 1)]),
        (Subscription(pattern="nothing"), []),
        (Subscription(partitions=(("t", 1), ("u", 0))), [("t", 1), ("u", 0)]),
    ],
)
def test_partitions_are_those_of_what_is_subscribed_to(brokers, subscription, expected):
    assert brokers.partitions(subscription) == expected


@pytest.mark.parametrize(
    ("subscription", "says"),
    [
        (Subscription(topics=("t", "missing")), "topic 'missing' at "),
        (Subscription(partitions=(("t", 7), ("t", 0))), "has no partition 7"),
    ],
)
def test_topics_and_partitions_that_are_named_have_to_be_there(brokers, subscription, says):
    with pytest.raises(UnknownTopicError, match=says):
        brokers.partitions(subscription)


def test_offsets_are_listed_by_edge_and_time(brokers):
    place = ("t", 1)
    assert brokers.offsets({place: EARLIEST}) == {place: 0}
    assert brokers.offsets({place: LATEST}) == {place: 2}
    assert brokers.offsets({place: 1500}) == {place: 1}
    assert brokers.offsets({place: 3000}) == {place: -1}
    assert brokers.list_offsets({}) == {}
    with pytest.raises(UnknownTopicError, match=r"partition 9 of topic 't' at .* does not exist"):
        brokers.offsets({("t", 9): LATEST})


# -- connections --------------------------------------------------------------------------------


def test_a_call_that_fails_because_the_broker_is_away_is_made_again_with_a_new_connection(connections):
    first, second = Connection(KafkaConnectionError("closed")), Connection("answer")
    brokers = connections(first, second)
    assert brokers.call("anything") == "answer"
    assert brokers.call("anything") == "answer"
    assert (first.calls, second.calls) == (1, 2)


def test_a_broker_that_stays_away_is_unreachable_after_a_while(connections):
    def calls():
        away = Connection(KafkaConnectionError("connection refused"))
        with pytest.raises(UnreachableError, match=r"nowhere:1 has not answered for 0\.3 s: .*refused"):
            connections(*[away] * 100, patience=0.3).call("anything")
        return away.calls

    assert any(calls() > 2 for _ in range(8))  # a machine that stands still makes fewer


def test_an_error_that_does_not_pass_is_raised_at_once(connections):
    refusing = Connection(TopicAuthorizationFailedError("no"))
    with pytest.raises(TopicAuthorizationFailedError):
        connections(refusing).call("anything")
    assert refusing.calls == 1


def test_an_answer_with_an_error_that_passes_is_asked_for_again(connections):
    moving = Connection(NotLeaderForPartitionError, None)
    brokers = connections(*[moving] * 3)
    assert brokers.settled("anything", errors=lambda answer: [answer]) is None
    assert moving.calls == 2


def test_no_broker_at_the_addresses_is_said_without_advice_for_other_programs():
    with pytest.raises(
        UnreachableError, match=r"^(?:UnreachableError: )?no broker answers at 127\.0\.0\.1:1 in 0\.2 s: "
    ):
        find_broker(access("127.0.0.1:1"))


# -- one for the process ------------------------------------------------------------------------


def test_a_process_has_one_cluster_for_the_same_addresses(clusters):
    assert cluster(access("a:1")) is cluster(access("a:1"))
    assert cluster(access("a:1")) is not cluster(access("b:1"))


def test_it_remembers_so_many_and_forgets_the_oldest(clusters):
    first = cluster(access("a:1"))
    for number in range(CLUSTERS_LIMIT):
        cluster(access(f"b:{number + 1}"))
    assert len(module._clusters) == CLUSTERS_LIMIT
    assert cluster(access("a:1")) is not first


def test_a_forked_child_begins_without(clusters):
    cluster(access("a:1"))
    child = os.fork()
    if not child:
        os._exit(len(module._clusters))
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert len(module._clusters) == 1


def test_a_cluster_logs_in_at_a_broker_with_accounts(monkeypatch, clusters):
    monkeypatch.setattr("dafka.broker.running.at", lambda _: None)  # by TCP, as from another process
    monkeypatch.setattr("dafka.broker.running.brokers", lambda: [])
    with Broker(listen="PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0") as broker:
        add(broker, "alice", "right")
        for password, known in (("right", True), ("wrong", False)):
            jaas = f'ScramLoginModule required username="alice" password="{password}";'
            options = {
                "bootstrap.servers": broker.listeners["SASL_PLAINTEXT"],
                "subscribe": "t",
                "kafka.security.protocol": "SASL_PLAINTEXT",
                "kafka.sasl.mechanism": "SCRAM-SHA-512",
                "kafka.sasl.jaas.config": jaas,
            }
            access = read_options(options).access
            if known:
                find_broker(access)
                continue
            with pytest.raises(UnreachableError, match="SaslAuthenticationFailedError") as refused:
                find_broker(access._replace(connect_timeout=3.0))
            assert "wrong" not in str(refused.value)
