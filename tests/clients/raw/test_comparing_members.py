"""Random members of groups: steps are the same for a seed, and a difference is found.

``scripts/odd_requests --members`` compares this broker with Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from clients.raw import comparing_members
from clients.raw.comparing_members import HERE, SETTINGS, Broker, differences, is_known
from clients.raw.odd_members import KINDS, sequence
from clients.servers import APACHE, DAFKA, running

from dafka import Broker as Dafka


@pytest.fixture
def both() -> Iterator[list[Broker]]:
    """Two brokers of this project."""
    with (
        Dafka(listen="127.0.0.1:0", group_settings=HERE) as one,
        Dafka(listen="127.0.0.1:0", group_settings=HERE) as other,
    ):
        servers = [SimpleNamespace(bootstrap_servers=broker.bootstrap_servers) for broker in (one, other)]
        brokers = [Broker(server) for server in servers]
        for broker in brokers:
            broker.prepare()
        yield brokers


@pytest.mark.parametrize("kind", KINDS)
def test_a_seed_always_makes_the_same_steps(kind: str) -> None:
    assert list(sequence(7, 100, kind)) == list(sequence(7, 100, kind))
    assert list(sequence(7, 100, kind)) != list(sequence(8, 100, kind))
    assert len({step.name for step in sequence(8, 200, kind)}) > 4


@pytest.mark.parametrize("kind", sorted({*KINDS} - {"expressions"}))
def test_two_brokers_of_one_kind_do_not_differ(both: list[Broker], kind: str) -> None:
    for seed in range(4):
        assert not [str(one) for one in differences(kind, seed, 40, *both)]


def test_two_brokers_that_resolve_expressions_do_not_differ(
    both: list[Broker], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(comparing_members, "NOT_RESOLVED", 0)  # these resolve some at any time
    assert not [str(one) for one in differences("expressions", 1, 20, *both)]


def test_a_difference_is_found_and_named(both: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    step = both[1].step

    def other(one: Any) -> Any:
        return {path: 7 if path.endswith("error_code") else value for path, value in step(one).items()}

    monkeypatch.setattr(both[1], "step", other)
    (found,) = differences("consumer", 3, 40, *both)
    assert "here 7" in found.kind() and found.step.name in str(found) and "seed 3" in str(found)


@pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
    reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
)
@pytest.mark.xdist_group("apache")
def test_apache_kafka_answers_members_alike() -> None:
    """But for what is known; ``scripts/odd_requests --members`` is the long form."""
    with running(APACHE, SETTINGS) as apache, running(DAFKA, HERE) as dafka:
        theirs, ours = Broker(apache), Broker(dafka)
        theirs.prepare()
        ours.prepare()
        found = [
            one for seed in range(6) for kind in KINDS for one in differences(kind, seed, 20, theirs, ours)
        ]
    assert not [str(one) for one in found if not is_known(one)]
