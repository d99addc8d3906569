"""Tests with dafka_chaos, in test runs of their own: many seeds, one failure, the faults that are enough."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest

from dafka.testing import Fault
from dafka.testing.seeds import seeds_of

pytest_plugins = ["pytester"]

SENDS = """
    import pytest
    from compat.kafka import KafkaProducer
    from dafka.testing import Fault

    def send(broker, **options):
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5, acks="all", **options
        ) as producer:
            for number in range(6):
                producer.send("t", key=b"%d" % number).get(100)
"""
TWICE = """
    @pytest.mark.dafka_chaos(weights={"denied": 0})  # another failure
    def test_each_once(dafka_chaos):
        dafka_chaos.preload("orders", [b"%d" % number for number in range(6)])
        send(dafka_chaos, enable_idempotence=False)
        dafka_chaos.assert_processed_exactly_once("orders", "t")
"""
PASSING = """
    seen = []

    @pytest.mark.dafka_chaos(level="network", rate=0.4)
    def test_runs_with_each_seed(dafka_chaos):
        send(dafka_chaos)
        assert dafka_chaos.values("t") == [None] * 6
        seen.append(repr(dafka_chaos))

    def test_there_were_as_many_as_the_option_says():
        assert len(set(seen)) == 12 and seen[11].startswith("<chaos(11, level='network')")

    @pytest.mark.dafka_chaos(plan=[Fault("produce t-0", 2, "lost_answer")])
    def test_a_plan_that_was_pasted_runs_once(dafka_chaos):
        send(dafka_chaos, enable_idempotence=False)
        assert len(dafka_chaos.values("t")) == 7

    @pytest.mark.dafka_chaos(7)
    def test_wrong_a(dafka_chaos): pass

    @pytest.mark.dafka_chaos(plan=[], level="network")
    def test_wrong_b(dafka_chaos): pass

    @pytest.mark.dafka_chaos(level="some")
    def test_wrong_c(dafka_chaos): pass
"""
BY_ITSELF = """
    made = []

    @pytest.fixture(scope="module")
    def dear():
        made.append("made")
        yield
        made.append("ended")

    @pytest.fixture
    def cheap():
        made.append("cheap")

    @pytest.mark.dafka_chaos(level="network", rate=1.0)
    def test_fails_by_itself(dafka_chaos, dear, cheap):
        send(dafka_chaos)
        assert dafka_chaos.values("t") == []

    def test_fixtures_of_a_wider_scope_stay():
        assert made == ["made", "cheap", "cheap", "cheap"], made
"""
ONCE = """
    runs = []

    @pytest.mark.dafka_chaos(rate=1.0, level="network")
    def test_fails_once(dafka_chaos):
        send(dafka_chaos)
        runs.append(1)
        assert len(runs) > 1
"""
SHARED = """
    @pytest.mark.parametrize("number", range(6))
    def test_has_brokers(dafka_broker, dafka_broker_session, kafka_producer, number):
        kafka_producer.send("t", b"%d" % number).get(100)
        assert dafka_broker.values("t") == [b"%d" % number]
        dafka_broker_session.preload("t", [b"x"])
"""
OPTIONS = "-p", "no:randomly"


def found(result: pytest.RunResult) -> tuple[str, str]:
    """Seed and test of a failure that says how to repeat it, and the one fault that is enough."""
    text = result.stdout.str()
    said = re.search(r"seed (\d+) fails, with \d+ faults?; again:\s+pytest (\S+each_once\S+) (.*)", text)
    assert said, text
    seed, test, again = said.groups()
    assert again == f"--dafka-chaos-seed {seed}"
    told = text[said.end() :]
    assert "1 fault is enough, and none can be left out (found in" in told
    (fault,) = eval(re.search(r"chaos\.plan\((\[.*?\])\)", told, re.DOTALL)[1], {"Fault": Fault})
    assert fault.kind in ("lost_answer", "cut_answer", "not_enough_replicas_after_append", "timed_out")
    assert re.search(r"The last calls:\nms .*kafka-python-producer-1", told)
    return seed, test.strip("'").split("::")[1]


def test_each_test_runs_with_as_many_seeds_as_the_option_says_or_with_its_plan(run):
    result = run(SENDS + PASSING, "--dafka-chaos-seeds", "12", *OPTIONS)
    result.assert_outcomes(passed=14, errors=25)  # one has a plan, and runs once
    for error in ("takes level=, rate=, weights= or", "a plan has no level", "a level is one of network"):
        result.stdout.fnmatch_lines([f"*{error}*"])


def test_a_failure_says_how_to_repeat_it_and_the_faults_that_are_enough(run):
    options = ("--dafka-chaos-seeds", "40", "--dafka-chaos-shrink", *OPTIONS)
    result = run(SENDS + TWICE + BY_ITSELF + ONCE, *options)
    outcomes = result.parseoutcomes()
    assert (outcomes["failed"], outcomes["skipped"]) >= (3, 90)  # the first failure ends a test
    seed, test = found(result)
    result.stdout.fnmatch_lines(["It fails without any fault as well (found in 2 runs of the test)."])
    result.stdout.fnmatch_lines(["*with the same faults it passes: the failure depends on threads*"])

    again = run(SENDS + TWICE, "--dafka-chaos-seed", seed, *OPTIONS)
    again.assert_outcomes(failed=1)
    assert test in again.stdout.str()


def test_the_workers_of_xdist_have_brokers_and_tell_each_other_what_has_failed(run, tmp_path, monkeypatch):
    pytest.importorskip("xdist")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    options = ("--dafka-chaos-seeds", "40", "--dafka-chaos-shrink", "-n", "2", *OPTIONS)
    result = run(SENDS + TWICE + SHARED, *options, "-v")
    outcomes = result.parseoutcomes()
    assert 1 <= outcomes["failed"] <= 2 and outcomes["skipped"] > 20  # both may fail at the same time
    assert sum("PASSED" in line and "test_has_brokers" in line for line in result.outlines) == 6
    found(result)
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("dafka-chaos")]


def test_a_number_of_seeds_is_one_or_more_and_one_seed_is_any():
    def config(one, many):
        options = {"dafka_chaos_seed": one, "dafka_chaos_seeds": many}
        return SimpleNamespace(getoption=options.__getitem__)

    assert list(seeds_of(config(-7, 3))) == [-7]
    assert list(seeds_of(config(None, 3))) == [0, 1, 2]
    assert len(seeds_of(config(None, None))) == 10
    with pytest.raises(pytest.UsageError, match="how many seeds, 1 or more, not 0"):
        seeds_of(config(None, 0))
