"""Tests with dafka_chaos, in test runs of their own: many seeds, one failure, the faults that are enough."""

from __future__ import annotations

import re

import pytest

from dafka.testing import Fault

pytest_plugins = ["pytester"]

SENDS = """
    import pytest
    from kafka.errors import KafkaError
    from compat.kafka import KafkaProducer
    from dafka.testing import Fault

    def send(broker, **options):
        with KafkaProducer(
            bootstrap_servers=broker.bootstrap_servers, retry_backoff_ms=5, acks="all", **options
        ) as producer:
            for number in range(6):
                producer.send("t", key=b"%d" % number).get(100)
"""
TWICE = (
    SENDS
    + """
    def test_each_once(dafka_chaos):
        dafka_chaos.preload("orders", [b"%d" % number for number in range(6)])
        send(dafka_chaos, enable_idempotence=False)
        dafka_chaos.assert_processed_exactly_once("orders", "t")
"""
)
OPTIONS = "-p", "no:randomly"


def test_each_test_runs_with_as_many_seeds_as_the_option_says(run):
    source = (
        SENDS
        + """
    import threading
    seen = []

    @pytest.mark.dafka_chaos(level="network", rate=0.4)
    def test_sends(dafka_chaos):
        send(dafka_chaos)
        assert dafka_chaos.values("t") == [None] * 6
        seen.append(repr(dafka_chaos))

    def test_seeds():
        assert len(set(seen)) == 12 and seen[11].startswith("<chaos(11, level='network')")
    """
    )
    run(source, "--dafka-chaos-seeds", "12", *OPTIONS).assert_outcomes(passed=13)


@pytest.mark.parametrize("workers", [(), ("-n", "2")], ids=["alone", "xdist"])
def test_a_failure_says_how_to_repeat_it_and_the_faults_that_are_enough(run, workers, tmp_path, monkeypatch):
    if workers:
        pytest.importorskip("xdist")
        monkeypatch.setenv("TMPDIR", str(tmp_path))  # where workers tell each other what has failed
    result = run(TWICE, "--dafka-chaos-seeds", "40", "--dafka-chaos-shrink", *OPTIONS, *workers)
    outcomes = result.parseoutcomes()
    assert 1 <= outcomes["failed"] <= 2 and outcomes["skipped"] > 20  # two workers may fail at the same time
    assert not [one for one in tmp_path.iterdir() if one.name.startswith("dafka-chaos")]
    text = result.stdout.str()
    seed, test, again = re.search(
        r"seed (\d+) fails, with \d+ faults?; again:\s+pytest (\S+) (.*)", text
    ).groups()
    assert again == f"--dafka-chaos-seed {seed}"
    assert "1 fault is enough, and none can be left out (found in" in text
    plan = re.search(r"chaos\.plan\((\[.*?\])\)", text, re.DOTALL)[1]
    (fault,) = eval(plan, {"Fault": Fault})
    assert fault.kind in ("lost_answer", "cut_answer", "not_enough_replicas_after_append", "timed_out")
    assert re.search(r"The last calls:\nms .*kafka-python-producer-1", text)

    again_ = run(TWICE, "--dafka-chaos-seed", seed, *OPTIONS)
    again_.assert_outcomes(failed=1)
    assert test.strip("'").split("::")[1] in again_.stdout.str()


def test_a_plan_that_was_pasted_runs_once(run):
    source = (
        SENDS
        + """
    @pytest.mark.dafka_chaos(plan=[Fault("produce t-0", 2, "lost_answer")])
    def test_twice(dafka_chaos):
        send(dafka_chaos, enable_idempotence=False)
        assert len(dafka_chaos.values("t")) == 7
    """
    )
    run(source, *OPTIONS).assert_outcomes(passed=1)


def test_what_fails_by_itself_needs_no_fault_and_fixtures_for_more_than_a_test_stay(run):
    result = run(
        SENDS
        + """
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
    def test_fails(dafka_chaos, dear, cheap):
        send(dafka_chaos)
        assert dafka_chaos.values("t") == []

    def test_behind():
        assert made == ["made", "cheap", "cheap", "cheap"]
    """,
        "--dafka-chaos-shrink",
        *OPTIONS,
    )
    result.assert_outcomes(failed=1, skipped=9, passed=1)
    result.stdout.fnmatch_lines(["It fails without any fault as well (found in 2 runs of the test)."])


def test_what_passes_when_it_is_run_again_is_said_to_depend_on_more(run):
    result = run(
        SENDS
        + """
    runs = []

    @pytest.mark.dafka_chaos(rate=1.0, level="network")
    def test_fails_once(dafka_chaos):
        send(dafka_chaos)
        runs.append(1)
        assert len(runs) > 1
    """,
        "--dafka-chaos-shrink",
        "--dafka-chaos-seed",
        "3",
        *OPTIONS,
    )
    result.stdout.fnmatch_lines(
        ["*with the same faults it passes: the failure depends on threads or on time*"]
    )
    result.stdout.fnmatch_lines(["*Fault('produce t-0', 1, '*"])


def test_markers_that_make_no_sense_are_errors_of_their_tests(run):
    result = run(
        """
    import pytest

    @pytest.mark.dafka_chaos(7)
    def test_a(dafka_chaos): pass

    @pytest.mark.dafka_chaos(plan=[], level="network")
    def test_b(dafka_chaos): pass

    @pytest.mark.dafka_chaos(level="some")
    def test_c(dafka_chaos): pass
    """,
        *("--dafka-chaos-seeds", "1"),
        *OPTIONS,
    )
    result.assert_outcomes(errors=3)
    for error in (
        "takes level=, rate=, weights= or plan=",
        "a plan has no level",
        "a level is one of network",
    ):
        result.stdout.fnmatch_lines([f"*{error}*"])


def test_a_number_of_seeds_is_one_or_more(run):
    result = run("def test_it(dafka_chaos): pass", "--dafka-chaos-seeds", "0")
    result.stdout.fnmatch_lines(["*how many seeds, 1 or more, not 0*"])
    assert result.ret != 0
