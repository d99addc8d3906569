"""Each method of Java's Admin has the outcome that it has with Apache Kafka, but for those in ``dafka.txt``.

``apache-kafka.txt`` is what ``outcomes.py`` printed for Apache Kafka 4.3.1, ``dafka.txt`` the outcomes that
differ, each below a remark that says why. A newer Admin with a method that ``EveryMethod.java`` does not
call fails here.
"""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest
from clients.admin.outcomes import PROGRAM, comparable, outcomes, recorded
from clients.conftest import LONG
from clients.servers import APACHE, DAFKA, running

from scripts.apache.jars import UnavailableError

pytestmark = pytest.mark.timeout(600)

HERE = Path(__file__).parent
THEIRS = recorded((HERE / "apache-kafka.txt").read_text())
DIFFERENT = recorded((HERE / "dafka.txt").read_text())
EXPECTED = {APACHE: THEIRS, DAFKA: {**THEIRS, **DIFFERENT}}


@pytest.mark.parametrize(
    "name",
    [
        DAFKA,
        pytest.param(
            APACHE,
            marks=pytest.mark.skipif(not os.environ.get(LONG), reason=f"starts Apache Kafka; set {LONG}=1"),
        ),
    ],
)
def test_each_method_has_its_outcome(name: str) -> None:
    """With a broker that nobody else has used."""
    if shutil.which("javac") is None:
        pytest.skip("there is no Java compiler here")
    with running(name) as server:
        try:
            found = outcomes(server.bootstrap_servers)
        except UnavailableError as error:
            pytest.skip(str(error))
    expected = EXPECTED[name]
    keys = expected.keys() | found.keys()
    assert {key: found.get(key) for key in keys if found.get(key) != expected.get(key)} == {}


def test_differences_are_differences_and_have_a_reason() -> None:
    assert {key for key, outcome in DIFFERENT.items() if THEIRS.get(key) == outcome} == set()
    first = (HERE / "dafka.txt").read_text().split("\n\n")
    assert all(part.startswith("#") for part in first)


def test_methods_that_are_recorded_are_called_by_the_program() -> None:
    called = set(re.findall(r'call\("(\w+)"', PROGRAM.read_text()))
    assert {key.split("\t")[0] for key in THEIRS} == called


def test_outcomes_are_compared_without_what_differs_from_run_to_run() -> None:
    one = comparable("(id=S9FRcTE8S8-I8P9ZF6aGlg, host=127.0.0.1:9092, at=1795455793829, leaderEpoch=3)")
    other = comparable("(id=SSIVwoevT4e0c8zQ1guuhw, host=127.0.0.1:1234, at=1795455793830, leaderEpoch=0)")
    assert one == other
    assert comparable("startOffset=3") != comparable("startOffset=5")
    assert comparable("UnknownTopicIdException") == "UnknownTopicIdException"
