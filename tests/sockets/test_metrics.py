"""The figures of sockets."""

from __future__ import annotations

import zmq
from sockets.serving import Recorder, client, dealer, in_hub, publisher, router
from timing import until

from dafka.sockets.metrics import COUNTERS, DESCRIPTIONS


def test_every_figure_is_described():
    recorder = Recorder()
    with publisher() as published, router(recorder) as served, dealer(served.endpoint, recorder) as made:
        assert set(published.metrics()) | {"discarded"} == set(DESCRIPTIONS)
        assert set(served.metrics()) == set(made.metrics()) == set(published.metrics()) - {"subscriptions"}
    assert set(DESCRIPTIONS) > COUNTERS


def test_messages_and_octets_are_counted():
    recorder = Recorder(lambda peer, message: message)
    with router(recorder) as served, client(zmq.DEALER, served.endpoint, b"me") as one:
        for _ in range(10):
            one.send_multipart([b"a", b"x" * 1000])
        for _ in range(10):
            one.recv_multipart()
        until(lambda: served.metrics()["octets_out"] > 10_000)
        metrics = served.metrics()
        assert metrics["connections"] == metrics["peers"] == metrics["accepted"] == 1
        assert metrics["messages_in"] == metrics["messages_out"] == 10
        assert metrics["octets_in"] > 10_000
    assert served.metrics()["connections"] == 0
    assert served.metrics()["messages_in"] == 10


def test_the_gauges_of_a_dealer():
    recorder = Recorder(lambda peer, message: message)
    with router(recorder) as served, dealer(served.endpoint, Recorder(), identity=b"me") as made:
        peer = until(lambda: made.peer)
        in_hub(peer.send, [b"hello"])
        until(lambda: made.metrics()["messages_in"] == 1)
        assert made.metrics()["peers"] == made.metrics()["connections"] == made.metrics()["accepted"] == 1
        assert made.metrics()["messages_out"] == 1
        in_hub(served.close)
        until(lambda: made.metrics()["peers"] == 0)
