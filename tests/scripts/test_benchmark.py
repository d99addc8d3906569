"""The benchmark's frame: measurements run in processes of their own, and cannot hold up a run."""

from __future__ import annotations

import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from multiprocessing import Pipe
from pathlib import Path

import pytest

from dafka.testing import TestBroker
from dafka.zper import ZperOptions

sys.path.insert(0, str(Path(__file__).parents[2] / "scripts" / "benchmark"))

import broker_costs
import kafka_tools
import libzmq_loops
import line
import overlay_links
import overlay_routing
import processes
import zper_servers


def two() -> processes.Figures:
    return (1.0, 2.0)


def broken() -> processes.Figures:
    raise ValueError("no such thing")


def still() -> processes.Figures:
    while True:
        time.sleep(1)


def test_the_figures_of_a_program_come_from_a_process_of_its_own() -> None:
    assert processes.run(two) == (1.0, 2.0)


def test_a_failure_in_the_process_is_the_message_of_the_error() -> None:
    with pytest.raises(processes.MeasurementError, match="no such thing"):
        processes.run(broken)


def test_a_measurement_that_stands_still_is_given_up() -> None:
    with pytest.raises(processes.StoodStillError, match=r"more than 0\.2 s"):
        processes.run(still, seconds=0.2)


def test_a_reference_that_stands_still_is_measured_again(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outcomes = [processes.StoodStillError("no figure"), (3.0,)]

    def run(*programs: object, seconds: float) -> processes.Figures:
        assert programs == (two,) and seconds == line.REFERENCE_SECONDS
        outcome = outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    monkeypatch.setattr(line, "run", run)
    figures = line.reference_measurement(two)
    assert figures(0) == (3.0,) and not outcomes
    assert "kafka-python stands still, again: no figure" in capsys.readouterr().err


def test_the_figure_of_apache_kafkas_producer_is_the_one_behind_its_warm_up() -> None:
    printed = """Warmup first 20 records. Steady state results will print after the complete test summary.
100 records sent, 73313.782991 records/sec (6.99 MB/sec), 185.06 ms avg latency, 432.00 ms max latency.
80 steady state records sent, 112834.978843 records/sec (10.76 MB/sec), 215.11 ms avg latency.
"""
    assert kafka_tools.steady_rate(printed) == 112834.978843
    with pytest.raises(processes.MeasurementError, match="no figure: 100 records sent"):
        kafka_tools.steady_rate("100 records sent, 73313.782991 records/sec")


def test_the_figure_of_a_cold_producer_is_that_of_its_whole_run() -> None:
    printed = """24993 records sent, 4998.6 records/sec (0.48 MB/sec), 2210.8 ms avg latency.
100 records sent, 20500.250000 records/sec (1.96 MB/sec), 185.06 ms avg latency, 9 ms 50th.
"""
    assert kafka_tools.whole_rate(printed) == 20500.25
    with pytest.raises(processes.MeasurementError, match="no figure: WARN"):
        kafka_tools.whole_rate("WARN the time limit came first")


def test_the_figure_of_apache_kafkas_consumer_leaves_out_its_joining() -> None:
    printed = """start.time, nMsg.sec, rebalance.time.ms, fetch.time.ms, fetch.MB.sec, fetch.nMsg.sec
2026-11-22 11:48:47:209, 23408.2397, 3970, 302, 31.5786, 331125.8278
"""
    assert kafka_tools.fetch_rate(printed) == 331125.8278
    with pytest.raises(processes.MeasurementError, match="no figure"):
        kafka_tools.fetch_rate("WARN the time limit came first")


def test_without_apache_kafka_there_is_a_reason_instead_of_a_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    kafka_tools._missing.cache_clear()
    with pytest.raises(kafka_tools.UnavailableError, match="there is no Java here"):
        kafka_tools.tools_measurement(count=1, size=1)(0)
    kafka_tools._missing.cache_clear()


@pytest.mark.parametrize("size", [100, 1000])
def test_the_client_that_has_its_frames_ready_writes_messages_of_that_size(size: int) -> None:
    count = 2 * zper_servers.ENCODED
    ours, theirs = Pipe()
    with TestBroker(zper=ZperOptions()) as broker, ThreadPoolExecutor(1) as pool:
        client = pool.submit(zper_servers.write_encoded, theirs, count=count, size=size)
        try:
            ours.send(broker.zper.writer_address)
            records = broker.wait_for_records(zper_servers.TOPIC, count)
        finally:
            ours.send("done")
        client.result(10)
    assert [record.value for record in records] == [bytes(size)] * count


def test_libzmqs_own_loops_are_built_and_measured_where_there_is_a_compiler() -> None:
    try:
        libzmq_loops.program()
    except libzmq_loops.NotBuiltError as error:
        pytest.skip(str(error))
    sent, received = libzmq_loops.rates(count=1000, size=100)
    assert sent > 0 and received > 0


def test_without_a_compiler_it_is_said_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(libzmq_loops.shutil, "which", lambda command: None)
    with pytest.raises(libzmq_loops.NotBuiltError, match="no C compiler"):
        libzmq_loops.program.__wrapped__()


@pytest.mark.parametrize("hops", [0, 1])
def test_events_of_the_overlay_and_frames_of_plain_sockets_are_counted_over_any_number_of_hops(
    hops: int,
) -> None:
    for receive, send in (
        (overlay_links.subscribe, overlay_links.publish),
        (overlay_links.receive_plain, overlay_links.send_plain),
    ):
        rate, *used = processes.run(partial(receive, count=200, hops=hops), partial(send, count=200))
        assert rate > 0 and len(used) == 2 and sum(used) > 0


def test_words_about_subscriptions_are_counted() -> None:
    assert overlay_routing.updates(6)[0] > 0


def test_the_costs_of_records_are_medians_of_the_rounds_behind_those_that_warm_the_broker_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    done: list[str] = []
    spent = [0.0, 0.0]

    def fill(*_: object) -> None:
        done.append("fill")
        warm = done.count("fill") > broker_costs.WARMING_ROUNDS
        spent[0] += 2.0 if warm else 50.0
        spent[1] += 1.0 if warm else 50.0

    def consume(*_: object) -> None:
        spent[0] += 0.5

    monkeypatch.setattr(broker_costs, "new_topic", lambda *_: "topic")
    monkeypatch.setattr(broker_costs, "_use_memory", lambda octets: done.append(f"use {octets}"))
    monkeypatch.setattr(broker_costs, "fill", fill)
    monkeypatch.setattr(broker_costs, "consume_all", consume)
    monkeypatch.setattr(broker_costs, "_modes", lambda pid: (spent[0], spent[1]))
    figures = broker_costs.records(servers="", pid=0, size=1000, count=1_000_000)
    assert figures == (3.0, 1.0, 0.5)
    rounds = broker_costs.WARMING_ROUNDS + broker_costs.ROUNDS
    assert done == ["use 3000000000", "fill"] * rounds  # memory that the round then writes to
