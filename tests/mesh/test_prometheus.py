"""A node's metrics as Prometheus scrapes them."""

from __future__ import annotations

import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from dafka.mesh.metrics import DESCRIPTIONS
from dafka.mesh.prometheus import MetricsBindError, MetricsServer, check_available

pytest.importorskip("prometheus_client")


@pytest.fixture
def server() -> Iterator[MetricsServer]:
    with MetricsServer(0) as one:
        yield one


def scraped(server: MetricsServer) -> str:
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}/metrics", timeout=200) as answer:
        return answer.read().decode()


def test_it_can_be_served_where_its_client_is_installed():
    check_available()


def test_metrics_that_only_grow_are_counters_and_the_rest_gauges(server):
    with server.serving("store", lambda: {"records_in": 7, "lag": 3}):
        text = scraped(server)
    assert "# TYPE dafka_store_records_in_total counter\ndafka_store_records_in_total 7.0" in text
    assert "# TYPE dafka_store_lag gauge\ndafka_store_lag 3.0" in text
    assert f"# HELP dafka_store_lag {DESCRIPTIONS['lag']}" in text


def test_discarded_messages_are_counted_by_cause(server):
    with server.serving("consumer", lambda: {"discarded": {"version": 2, "frame-count": 1}}):
        text = scraped(server)
    assert 'dafka_consumer_discarded_total{cause="version"} 2.0' in text
    assert 'dafka_consumer_discarded_total{cause="frame-count"} 1.0' in text


def test_a_node_is_asked_at_every_scrape(server):
    values = iter(range(10))
    with server.serving("consumer", lambda: {"lag": next(values)}):
        seen = [re.search(r"^dafka_consumer_lag (\S+)", scraped(server), re.M) for _ in range(3)]
    assert [found and float(found[1]) for found in seen] == [0, 1, 2]


def test_one_server_has_several_nodes_each_as_long_as_it_is_there(server):
    with server.serving("store", lambda: {"lag": 1}):
        with server.serving("producer", lambda: {"unacknowledged": 2}):
            both = scraped(server)
        one = scraped(server)
    assert "dafka_store_lag 1.0" in both and "dafka_producer_unacknowledged 2.0" in both
    assert "dafka_store_lag 1.0" in one and "dafka_producer" not in one
    assert "dafka_" not in scraped(server)


def test_a_port_that_is_taken_is_named():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(MetricsBindError, match=f"cannot be served on 127.0.0.1:{port}"):
            MetricsServer(port)


def test_nothing_is_served_when_it_is_closed():
    with MetricsServer(0) as one:
        assert scraped(one) is not None
    with pytest.raises(urllib.error.URLError):
        scraped(one)
