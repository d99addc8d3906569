"""Random odd requests: sequences are the same for a seed, and a difference is found.

``scripts/odd_requests`` compares this broker with Apache Kafka.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from broker.server.client import encoded
from clients.raw import comparing
from clients.raw.comparing import (
    Broker,
    Difference,
    differences,
    differences_of_versions,
    is_known,
    reported,
)
from clients.raw.odd_requests import every_version, sequence
from clients.servers import APACHE, DAFKA, running

from dafka import Broker as Dafka


@pytest.fixture
def both() -> Iterator[list[Broker]]:
    """Two brokers of this project."""
    with Dafka(listen="127.0.0.1:0") as one, Dafka(listen="127.0.0.1:0") as other:
        yield [Broker(SimpleNamespace(bootstrap_servers=broker.bootstrap_servers)) for broker in (one, other)]


def test_a_seed_always_makes_the_same_requests() -> None:
    once, again = ([encoded(step.request, step.version) for step in sequence(7, 200)] for _ in range(2))
    assert once == again
    assert once != [encoded(step.request, step.version) for step in sequence(8, 200)]
    assert len({step.name for step in sequence(7, 500)}) > 30


def test_two_brokers_of_one_kind_do_not_differ(both: list[Broker]) -> None:
    for broker in both:
        broker.prepare()
    for seed in range(10):
        assert not [str(one) for one in differences(seed, 30, *both)]


def test_every_version_is_asked_and_two_brokers_of_one_kind_do_not_differ(both: list[Broker]) -> None:
    assert len({step.name for step in every_version(0)}) > 60
    for broker in both:
        broker.prepare()
    assert not [str(one) for one in differences_of_versions(0, *both)]


def test_a_difference_is_found_and_named(both: list[Broker], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparing, "SETTLE_SECONDS", 0.0)
    ask = both[1].ask

    def other(step: Any) -> Any:
        return {path: 7 if path.endswith("error_code") else value for path, value in ask(step).items()}

    monkeypatch.setattr(both[1], "ask", other)
    (found,) = differences(3, 30, *both)
    assert "here 7" in found.kind() and found.step.name in str(found) and "seed 3" in str(found)


@pytest.mark.skipif(
    not os.environ.get("DAFKA_TEST_APACHE_KAFKA"),
    reason="starts Apache Kafka; set DAFKA_TEST_APACHE_KAFKA=1",
)
@pytest.mark.xdist_group("apache")
def test_apache_kafka_answers_alike() -> None:
    """But for what is known; ``scripts/odd_requests`` is the long form."""
    with running(APACHE) as apache, running(DAFKA) as dafka:
        theirs, ours = Broker(apache), Broker(dafka)
        theirs.prepare()
        ours.prepare()
        found = [one for seed in range(25) for one in differences(seed, 20, theirs, ours)]
    assert not [str(one) for one in found if not is_known(one)]


@pytest.mark.parametrize(("error", "known"), [(-1, True), (3, False)])
@pytest.mark.parametrize(
    ("name", "path"),
    [("AlterShareGroupOffsets", "error_code"), ("DescribeShareGroupOffsets", "groups[g].error_code")],
)
def test_a_failure_of_apache_kafka_at_a_partition_below_0_is_known(
    name: str, path: str, error: int, known: bool
) -> None:
    step = SimpleNamespace(name=name)
    assert is_known(Difference(1, 2, step, {path: error}, {path: 0})) is known
    assert not is_known(Difference(1, 2, SimpleNamespace(name="Fetch"), {path: -1}, {path: 0}))


def test_one_difference_of_each_kind_is_printed_and_all_are_counted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    class Found(str):
        def kind(self) -> str:
            return self[0]

    found = [Found("a1"), Found("a2"), Found("b1")]
    assert reported(found, 9, all_of_them=False) == 1
    assert capsys.readouterr().out.split("\n") == [
        *("a1", "b1", "    2 a", "    1 b", "9 seeds, 3 differences of 2 kinds", "")
    ]
    assert reported(found, 9, all_of_them=True) == 1
    assert capsys.readouterr().out.startswith("a1\na2\nb1\n")
    assert reported([], 9, all_of_them=False) == 0
