"""Metrics of other processes: servers of all kinds are asked, and what they answer is bounded."""

from __future__ import annotations

import socket
import threading
from contextlib import contextmanager

import pytest

from dafka.console import limits
from dafka.console.green_http import GreenConnection
from dafka.console.networks import scraping
from dafka.console.networks.scraping import Scraper, read_metrics
from dafka.mesh.prometheus import MetricsServer


def test_numbers_of_this_project_are_read_and_nothing_else():
    text = (
        "# HELP dafka_store_lag Known records\n"
        "dafka_store_records_in_total 12.0\ndafka_store_lag 0.5\n"
        'dafka_store_discarded_total{cause="x"} 3.0\nkafka_log_size 7.0\nprocess_cpu 1.0\n'
        "dafka_store_a nan\ndafka_store_b +Inf\ndafka_store_c nothing\n<script>alert(1)</script>\n"
        "dafka_store_cut 12"
    )
    assert read_metrics(text) == {"records_in": 12, "lag": 0.5}


def test_a_server_of_metrics_is_asked_once_a_second():
    asked = []

    def read():
        asked.append(1)
        return {"records_in": len(asked), "lag": 5}

    pytest.importorskip("prometheus_client", reason="the extra metrics is not installed")
    with MetricsServer(0) as server, server.serving("store", read):
        scraper = Scraper()
        found = [scraper.ask("127.0.0.1", server.port) for _ in range(3)]
        assert found[0] == found[2] and len(asked) == 1
        assert found[0]["metrics"] == {"records_in": 1, "lag": 5} and found[0]["metrics_error"] is None
        assert found[0]["metrics_at"] == f"http://127.0.0.1:{server.port}/metrics"
    assert Scraper().ask("127.0.0.1", server.port)["metrics_error"] == "no answer: Connection refused"


@contextmanager
def answering(content: bytes, *, close: bool = True):
    """A server that says this to everybody, whatever is asked."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        kept = []

        def serve():
            while True:
                try:
                    one = listener.accept()[0]
                except OSError:
                    return
                kept.append(one)
                try:
                    one.recv(1000)
                    one.sendall(content)
                except OSError:
                    pass
                if close:
                    one.close()

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()
            for one in kept:
                one.close()


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"HTTP/1.1 200 OK\r\n\r\nnothing\n", "not the metrics"),
        (b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:1/\r\n\r\ndafka_store_lag 1\n", "302"),
        (b"SSH-2.0-x\r\n", "BadStatusLine"),
        (b"", "no answer"),
    ],
)
def test_answers_without_metrics_are_reported_as_such(content, words):
    with answering(content) as port:
        found = Scraper().ask("127.0.0.1", port)
    assert found["metrics"] is None and words in found["metrics_error"]


def test_an_answer_without_an_end_is_cut(monkeypatch):
    monkeypatch.setattr(limits, "SCRAPED_OCTETS", 1000)
    content = b"HTTP/1.1 200 OK\r\n\r\n" + b"dafka_store_lag 1\n" * 10_000
    with answering(content) as port:
        assert Scraper().ask("127.0.0.1", port)["metrics"] == {"lag": 1}


def test_a_server_that_says_nothing_costs_a_bounded_time(monkeypatch):
    monkeypatch.setattr(limits, "SCRAPE_SECONDS", 0.2)
    with answering(b"", close=False) as port:
        assert "0.2 s" in Scraper().ask("127.0.0.1", port)["metrics_error"]


def test_servers_are_forgotten(monkeypatch):
    monkeypatch.setattr(limits, "SCRAPED", 2)
    monkeypatch.setattr(scraping, "_ask", lambda host, port: {"metrics": {"port": port}})
    scraper = Scraper()
    for port in (1, 2, 3, 1):
        assert scraper.ask("x", port)["metrics"] == {"port": port}
    assert len(scraper._servers) == 2


def test_a_connection_is_closed_whoever_still_has_its_answer(monkeypatch):
    """Where its server closes it, it is the answer's alone."""
    answers = []

    class Kept(GreenConnection):
        def getresponse(self):
            answers.append(super().getresponse())
            return answers[-1]

    monkeypatch.setattr(scraping, "GreenConnection", Kept)
    monkeypatch.setattr(limits, "SCRAPED_OCTETS", 10)
    with answering(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + b"dafka_store_lag 1.0\n" * 100) as port:
        Scraper().ask("127.0.0.1", port)
    assert [one.isclosed() for one in answers] == [True]
