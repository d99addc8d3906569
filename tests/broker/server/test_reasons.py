"""The log of closed connections."""

from __future__ import annotations

import logging

import pytest
from broker.server.client import WireClient, frame, header
from timing import until

from dafka import Broker
from dafka.sockets import limits


def test_many_closed_connections_of_one_cause_are_logged_a_few_times_and_then_counted(
    broker: Broker, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(limits, "REASON_SECONDS", 1.0)
    closed = 0

    def close_one(octets: bytes) -> None:
        nonlocal closed
        with WireClient(broker) as bad:
            bad.socket.sendall(octets)
            assert bad.is_closed()
        closed += 1

    def said() -> tuple[int, int]:
        """The number of connections in single lines, and in lines with a sum."""
        sums = [int(text.split()[0]) for text in caplog.messages if "(short)" in text]
        return len([text for text in caplog.messages if "a request of 0 bytes" in text]), sum(sums)

    with caplog.at_level(logging.WARNING, "dafka.broker.server"):
        for _ in range(limits.REASON_LINES + 5):
            close_one(frame(b""))
        close_one(frame(header(999, 0)))
        assert "API key 999" in caplog.text  # each cause has its own lines
        until(lambda: sum(said()) == limits.REASON_LINES + 5)
        assert said()[0] >= limits.REASON_LINES
        close_one(frame(b""))
        until(lambda: sum(said()) == limits.REASON_LINES + 6)  # single lines again in the next minute
    assert sum(broker.discarded.values()) >= closed


def test_the_number_of_closed_connections_is_logged_when_the_broker_stops(caplog: pytest.LogCaptureFixture):
    with caplog.at_level(logging.WARNING, "dafka.broker.server"), Broker(listen="127.0.0.1:0") as broker:
        for _ in range(limits.REASON_LINES + 3):
            with WireClient(broker) as bad:
                bad.socket.sendall(frame(b""))
                assert bad.is_closed()
        assert "more connections" not in caplog.text
    assert "3 more connections closed for the same cause (short)" in caplog.text
