"""Requests that a client sends without waiting for answers are not answered in one turn of the hub."""

from __future__ import annotations

import pytest
from broker.pausing import counted_pauses
from zper.clients import INVALID_COMMAND, INVALID_OFFSET, OK, long, write

from dafka.testing import TestBroker
from dafka.zper import ZperOptions

REQUESTS = {
    "an offset": ([b"OFFSET", long(2**60)], OK),
    "neither": ([b"x"], INVALID_COMMAND),
    "a fetch behind the end": ([b"FETCH", long(2**40), long(10)], INVALID_OFFSET),
}


@pytest.fixture
def broker():
    with TestBroker(zper=ZperOptions(flush_interval=20)) as broker:
        yield broker


@pytest.mark.parametrize("request_", REQUESTS.values(), ids=REQUESTS)
def test_others_may_have_a_turn_before_each_request(monkeypatch, broker, clients, request_):
    asked, status = request_
    write(clients, broker, "events", [b"message"])
    reader = clients.dealer(broker.zper.reader_address, "events")
    pauses = counted_pauses(monkeypatch)
    for _ in range(200):
        reader.send_multipart(asked)
    assert {reader.recv_multipart()[0] for _ in range(200)} == {status}
    assert pauses() >= 200
