"""The pytest plugin, in test runs of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from ast import literal_eval
from pathlib import Path

import forking
import pytest
from ports import LOOPBACK

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[2]


def test_the_fixtures_are_listed_with_their_descriptions(run):
    result = run("def test_nothing(): pass", "--fixtures")
    for name in ("dafka_broker", "dafka_broker_session", "kafka_producer", "kafka_consumer_factory"):
        result.stdout.re_match_lines([rf"{name}( \[session scope\])? -- .*dafka.testing.plugin.*"])


def test_a_test_sends_and_receives(run):
    result = run(
        """
        def test_orders(dafka_broker, kafka_producer, kafka_consumer_factory):
            kafka_producer.send("orders", key=b"k", value=b"one book").get(100)
            consumer = kafka_consumer_factory("orders", group_id="billing")
            assert next(consumer).value == b"one book"
            consumer.commit()
            assert dafka_broker.committed("billing") == {("orders", 0): 1}

        def test_unflushed_records_are_sent_all_the_same(dafka_broker, kafka_producer):
            kafka_producer.send("orders", b"later")
            assert dafka_broker.wait_for_records("orders")[0].value == b"later"
        """
    )
    result.assert_outcomes(passed=2)


def test_each_test_has_an_empty_broker_and_the_session_one_stays(run):
    result = run(
        """
        import pytest

        seen = []

        @pytest.mark.parametrize("number", range(4))
        def test_own(dafka_broker, dafka_broker_session, number):
            assert dafka_broker.topics() == []
            dafka_broker.preload("t", [b"x"])
            dafka_broker_session.preload(f"topic-{number}", [b"x"])
            seen.append(dafka_broker_session.bootstrap_servers)
            assert len(set(seen)) == 1 and dafka_broker.bootstrap_servers not in seen
            assert len(dafka_broker_session.topics()) == len(seen)
        """
    )
    result.assert_outcomes(passed=4)


def test_a_consumer_for_which_nothing_comes_ends(run, monkeypatch):
    result = run(
        """
        def test_empty(dafka_broker, kafka_consumer_factory):
            dafka_broker.create_topic("empty")
            assert list(kafka_consumer_factory("empty", consumer_timeout_ms=50)) == []
            assert kafka_consumer_factory("empty").config["consumer_timeout_ms"] == 5000
        """
    )
    result.assert_outcomes(passed=1)


def test_a_wait_that_fails_shows_the_line_of_the_test_and_what_there_is(run):
    result = run(
        """
        def test_records(dafka_broker):
            dafka_broker.wait_for_records("bills", timeout=0)

        def test_lag(dafka_broker):
            dafka_broker.wait_for_lag("billing", timeout=0)
        """
    )
    result.assert_outcomes(failed=2)
    result.stdout.fnmatch_lines(["E *not within 0 s: 1 records in topic 'bills', there are 0"])
    result.stdout.no_fnmatch_line("*waiting*.py*")


def test_a_failing_test_fails_and_leaves_nothing_running(run):
    result = run(
        """
        import os
        folders = []

        def test_fails(dafka_broker, kafka_producer, kafka_consumer_factory):
            folders.append(dafka_broker.path)
            kafka_consumer_factory("t", group_id="g").poll(10)
            kafka_producer.send("t", b"x")
            dafka_broker.delay_fetches(30)
            dafka_broker.wait_for_records("t", 2, timeout=0.1)

        def test_afterwards():
            assert not os.path.exists(folders[0])
        """,
        "-p",
        "no:randomly",
    )
    result.assert_outcomes(passed=1, failed=1)
    result.stdout.fnmatch_lines(["*not within 0.1 s: 2 records in topic 't', there are *"])


WARNED = """
    import warnings

    def test_orders(dafka_broker, kafka_producer):
        kafka_producer.send("orders", b"one book").get(100)

    def test_own_warnings_are_seen():
        warnings.warn("read_text is deprecated", DeprecationWarning)
"""


def test_warnings_of_kafka_python_itself_are_filtered_and_no_others(run):
    result = run(WARNED, fresh=True)
    result.assert_outcomes(passed=2)
    result.stdout.no_fnmatch_line("*Use files() instead*")
    result.stdout.fnmatch_lines(["*DeprecationWarning: read_text is deprecated"])


def test_they_are_filtered_where_warnings_are_errors(run, pytester):
    pytester.makeini("[pytest]\nfilterwarnings = error::DeprecationWarning")
    run(WARNED, fresh=True).assert_outcomes(passed=1, failed=1)


def test_they_are_filtered_where_a_conftest_imports_kafka_python(run, pytester):
    pytester.makeconftest("import compat.kafka\n\ncompat.kafka.install()")
    result = run("def test_nothing(): pass", fresh=True, installed=True)
    result.assert_outcomes(passed=1, warnings=0)


LIGHT = """
    import sys

    HEAVY = {"gevent", "zmq", "kafka", "diskcache", "compat", "dafka.broker", "dafka.mesh"}

    def test_nothing_heavy_is_loaded():
        assert "dafka.testing.plugin" in sys.modules
        assert not HEAVY & sys.modules.keys()
"""


def test_a_run_that_uses_no_fixture_loads_nothing_but_the_plugin(run):
    run(LIGHT, fresh=True, installed=True).assert_outcomes(passed=1)


def test_importing_the_plugin_takes_no_time():
    code = (
        "import pytest, sys, time; before = set(sys.modules); begin = time.perf_counter();"
        "import dafka.testing.plugin; import dafka.testing;"
        "print(sorted(set(sys.modules) - before))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    assert literal_eval(done.stdout) == [
        "dafka",
        "dafka.lazy_names",
        "dafka.testing",
        "dafka.testing.plugin",
    ]


# ------------------------------------------------------------------------------------------ a hundred brokers

HUNDRED = """
    import faulthandler, gc, os, sys, threading
    faulthandler.dump_traceback_later(250, exit=True)  # shows where it hangs, before the test gives up
    from compat.kafka import KafkaConsumer, KafkaProducer
    from dafka.testing import TestBroker, wait_until

    folders = []

    def use():
        with TestBroker(listen=sys.argv[1]) as broker:
            folders.append(broker.path)
            with KafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                producer.send("t", b"x" * 1000).get(100)
            consumer = KafkaConsumer("t", bootstrap_servers=broker.bootstrap_servers,
                                     auto_offset_reset="earliest", group_id="g")
            assert wait_until(lambda: consumer.poll(1000))
            consumer.close()

    def descriptors():
        return len(os.listdir("/proc/self/fd" if os.path.isdir("/proc/self/fd") else "/dev/fd"))

    def threads():
        tasks = "/proc/self/task"
        return len(os.listdir(tasks)) if os.path.isdir(tasks) else threading.active_count()

    def resident():  # KiB, where the system says it without asking for another package
        try:
            with open("/proc/self/status") as status:
                return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
        except OSError:
            return 0

    def alive():
        gc.collect()
        return sum(type(one) in (TestBroker, KafkaProducer, KafkaConsumer) for one in gc.get_objects())

    for _ in range(10):
        use()
    files, running, memory = descriptors(), threads(), resident()
    for _ in range(100):
        use()
    # ZeroMQ closes its sockets in the background, so those of the last broker may still be there; pools of
    # threads grow when several calls come together. If each broker left something, it would be a hundred.
    wait_until(lambda: descriptors() < files + 30, 60, lambda: f"{descriptors()} files, {files} before")
    wait_until(lambda: threads() < running + 30, 60, lambda: f"{threads()} threads, {running} before")
    wait_until(lambda: not alive(), 60, alive)  # the hub's thread may be in a last call of one
    assert resident() - memory < 20_000, f"KiB: {resident()}, {memory} before"
    assert not any(map(os.path.exists, folders))
    print("clean")
"""


def test_a_hundred_brokers_one_after_another_leave_nothing_behind():
    done = forking.run(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(HUNDRED), f"{LOOPBACK}:0"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert (done.stdout, done.stderr) == ("clean\n", "")


def test_a_test_that_fails_tells_where_its_brokers_are_shown(run):
    pytest.importorskip("flask", reason="the extra console is not installed")
    result = run(
        """
        import pytest
        from dafka.testing import TestBroker

        @pytest.fixture
        def shown():
            with TestBroker(console=True) as broker:
                yield broker

        def test_passes(shown):
            assert shown.console.startswith("http://127.0.0.1:")

        def test_fails(shown):
            print("it is at", shown.console)
            assert shown.topics() == ["orders"]
        """
    )
    result.assert_outcomes(passed=1, failed=1)
    address = next(line for line in result.outlines if line.startswith("it is at ")).split()[-1]
    result.stdout.fnmatch_lines(["*Captured dafka console call*", address])
    assert result.outlines.count(address) == 1
