"""The live view of a node."""

from __future__ import annotations

import re
import socket
import sys
import urllib.request

import pytest
from cli.tools import mesh, run, running
from mesh.peer import Peer
from timing import until

from dafka import Consumer, Producer, Store, Tower
from dafka.mesh import prometheus
from dafka.mesh.metrics import COUNTERS, DESCRIPTIONS


def test_every_node_tells_what_it_has_done(tmp_path):
    with (
        Tower() as tower,
        Store(tmp_path / "db", tower=tower) as store,
        Producer("hello", tower=tower) as producer,
        Consumer(["hello"], tower=tower, offset_reset="earliest") as consumer,
    ):
        for _ in range(10):
            producer.send(b"12345")
        producer.flush(100)
        assert [next(consumer).sequence for _ in range(10)] == list(range(10))
        out = producer.metrics()
        assert (out["records_out"], out["bytes_out"], out["unacknowledged"]) == (10, 50, 0)
        assert (out["retained_records"], out["retained_bytes"]) == (0, 0)
        assert (out["endpoint_records_out"], out["endpoint_bytes_out"], out["endpoint_nodes"]) == (10, 50, 3)
        kept = store.metrics()
        assert (kept["records_in"], kept["bytes_in"], kept["partitions"], kept["lag"]) == (10, 50, 1, 0)
        read = consumer.metrics()
        assert (read["records_in"], read["bytes_in"], read["lag"]) == (10, 50, 0)
        until(lambda: tower.metrics()["beacons_in"] > 0)
        for metrics in (out, kept, read, tower.metrics()):
            assert set(metrics) <= set(DESCRIPTIONS)
            numbers = {name: value for name, value in metrics.items() if name != "discarded"}
            assert all(isinstance(value, int) for value in numbers.values())
        assert set(DESCRIPTIONS) >= COUNTERS


def test_discarded_messages_are_told_by_cause():
    with Tower() as tower, Peer(tower.addresses) as peer, Consumer(["hello"], tower=tower) as consumer:
        peer.meet(b"Mhello")
        peer.send_frames([b"Mhello"])
        until(lambda: sum(consumer.metrics()["discarded"].values()) == 1)
        assert consumer.metrics()["endpoint_peers"] == 1


def test_without_prometheus_client_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(prometheus.MetricsUnavailableError, match=r"dafka\[metrics\]"):
        prometheus.MetricsServer(0)


@pytest.mark.parametrize(
    ("tool", "sample"),
    [
        (["produce", "other"], "dafka_producer_unacknowledged 1.0"),
        (["consume", "hello", "--from", "earliest"], "dafka_consumer_records_in_total 1.0"),
    ],
)
def test_console_tools_serve_their_metrics_to_prometheus(tool, sample):
    pytest.importorskip("prometheus_client")
    with (
        Tower() as tower,
        Producer("hello", tower=tower, min_stores=0) as producer,
        running(*tool, "--metrics-port", "0", *mesh(tower)) as process,
    ):
        producer.send(b"value")
        url = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]
        process.stdin.write("value\n")
        process.stdin.flush()
        until(lambda: sample in read(url))


def read(url: str) -> str:
    with urllib.request.urlopen(url, timeout=100) as answer:
        return answer.read().decode()


@pytest.mark.parametrize(
    "tool", [["store", "db"], ["produce", "hello"], ["consume", "hello"], ["tower"], ["broker"]]
)
def test_a_port_for_metrics_that_is_taken_is_named_before_anything_starts(tool, tmp_path):
    pytest.importorskip("prometheus_client")
    with socket.create_server(("127.0.0.1", 0)) as taken, Tower() as tower:
        port = str(taken.getsockname()[1])
        where = {
            "tower": ["--sub", "tcp://127.0.0.1:*", "--pub", "tcp://127.0.0.1:*"],
            "broker": ["--listen", "127.0.0.1:0", "--data", str(tmp_path / "db")],
        }.get(tool[0], mesh(tower))
        tool = [tool[0], str(tmp_path / "db")] if tool[0] == "store" else tool
        done = run(*tool, "--metrics-port", port, *where)
    assert done.returncode == 1
    assert done.stderr.startswith(f"Error: metrics cannot be served on 127.0.0.1:{port}: ")
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_daemons_serve_their_metrics_to_prometheus(tmp_path):
    pytest.importorskip("prometheus_client")
    with Tower() as tower:
        where = ["--metrics-port", "0"]
        with (
            running("store", str(tmp_path / "db"), *where, *mesh(tower)) as store,
            running("tower", "--sub", "tcp://127.0.0.1:*", "--pub", "tcp://127.0.0.1:*", *where) as other,
            Producer("hello", tower=tower) as producer,
        ):
            producer.send(b"value")
            producer.flush(100)
            for process, sample in (
                (store, "dafka_store_records_in_total 1"),
                (other, "dafka_tower_beacons"),
            ):
                process.stderr.readline()
                url = re.search(r"http://127\.0\.0\.1:\d+/metrics", process.stderr.readline())[0]
                assert sample in read(url)
