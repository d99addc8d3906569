"""Acks: one for each message that is flushed."""

from __future__ import annotations

import pytest
import zmq
from contexts import new_context
from timing import until
from zper.model_server import ModelServer

from dafka.zper import Acks
from dafka.zper.commands import InvalidResponseError


def subscribed(acks: Acks, server: ModelServer, topic: str) -> None:
    """Wait until the server has heard of the subscription."""

    def told() -> bool:
        server.append(topic, b"probe")
        return acks.receive(0.01) is not None

    until(told)
    server.append(topic, b"last probe")
    while (ack := acks.receive(100.0)) is not None and ack.id != b"last probe":
        pass


def test_an_ack_has_the_topic_the_first_frame_and_the_position(server: ModelServer):
    with Acks("flights", address=server.ack, idle=1.0) as acks:
        subscribed(acks, server, "flights")
        end = len(server.topics["flights"])
        server.append("flights", b"id-1", b"value")
        server.append("flights", b"id-2")
        assert list(acks) == [("flights", b"id-1", end), ("flights", b"id-2", end + 13)]


def test_topics_that_only_begin_like_the_one_subscribed_are_left_out(server: ModelServer):
    with Acks("flights", address=server.ack, idle=1.0) as acks:
        subscribed(acks, server, "flights")
        server.append("flights-2", b"other")
        server.append("flights", b"mine")
        assert [ack.id for ack in acks] == [b"mine"]


def test_without_a_topic_there_are_the_acks_of_all(server: ModelServer):
    with Acks(address=server.ack, idle=1.0) as acks:
        subscribed(acks, server, "a")
        server.append("b", b"1")
        server.append("c", b"2")
        assert [(ack.topic, ack.id) for ack in acks] == [("b", b"1"), ("c", b"2")]
    assert acks.closed


@pytest.mark.parametrize("message", [[b"t"], [b"t", b"id", b"7 octet"], [b"t", b"id", b"12345678", b""]])
def test_something_else_than_an_ack_is_an_error(message: list[bytes]):
    with new_context() as context, context.socket(zmq.PUB) as publisher:
        publisher.setsockopt(zmq.LINGER, 0)
        port = publisher.bind_to_random_port("tcp://127.0.0.1")
        with Acks("t", address=f"tcp://127.0.0.1:{port}") as acks:

            def raises() -> bool:
                publisher.send_multipart(message)
                try:
                    return acks.receive(0.01) is not None
                except InvalidResponseError:
                    return True

            until(raises)
