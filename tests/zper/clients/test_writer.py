"""Writer: its messages, its state, and the end of its connection."""

from __future__ import annotations

import pytest
from timing import until
from zper.model_server import ModelServer

from dafka.protocol.raw import decode_messages
from dafka.zper import Mode, Writer
from dafka.zper.clients import writer as writer_module
from dafka.zper.clients.errors import NoResponseError
from dafka.zper.identity import InvalidIdentityError


def stored(server: ModelServer, topic: str = "flights") -> list[list[bytes]]:
    return decode_messages(bytes(server.topics[topic]))[0]


@pytest.mark.parametrize("mode", Mode)
def test_writes_messages_in_their_order(server: ModelServer, mode: Mode):
    with Writer("flights", server.writer, mode=mode) as writer:
        for number in range(500):
            writer.send(b"id", b"%d" % number)
    until(lambda: server.received == 500)
    assert stored(server) == [[b"id", b"%d" % number] for number in range(500)]


@pytest.mark.parametrize("mode", Mode)
def test_a_frame_that_is_no_octets_is_refused_and_other_messages_go_on(server: ModelServer, mode: Mode):
    with Writer("flights", server.writer, mode=mode) as writer:
        writer.send(b"1")
        for wrong in ("2", None, 5, [b"x"]):
            with pytest.raises(TypeError, match=f"a frame is bytes, not {type(wrong).__name__}: "):
                writer.send(b"id", wrong)  # type: ignore[arg-type]
        changing = bytearray(b"2")
        writer.send(changing, memoryview(b"x"))  # type: ignore[arg-type]
        changing[:] = b"3"
        writer.send(b"4")
    until(lambda: server.received == 3)
    assert stored(server) == [[b"1"], [b"2", b"x"], [b"4"]]


def test_in_mode_2_flush_waits_for_the_response_to_each_message(server: ModelServer):
    with Writer("flights", server.writer) as writer:
        for number in range(100):
            writer.send(b"%d" % number)
        assert writer.unanswered > 0
        writer.flush()
        assert writer.unanswered == 0
        assert len(stored(server)) == 100


def test_in_mode_2_a_full_queue_makes_send_wait_for_responses(server: ModelServer):
    with Writer("flights", server.writer, queue=3) as writer:
        for _ in range(200):
            writer.send(b"x")
            assert writer.unanswered <= 3
    assert len(stored(server)) == 200


def test_in_mode_2_the_queue_is_bounded_in_octets_too(server: ModelServer, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(writer_module, "QUEUE_OCTETS", 1000)
    with Writer("flights", server.writer) as writer:
        for _ in range(50):
            writer.send(b"x" * 400, b"y" * 500)
            assert writer.unanswered <= 2
    assert len(stored(server)) == 50


def test_a_message_for_which_there_is_no_room_in_time_is_not_sent(server: ModelServer):
    server.silent = True
    writer = Writer("flights", server.writer, queue=2)
    writer.send(b"1")
    writer.send(b"2")
    with pytest.raises(NoResponseError, match="topic flights: waited in vain for responses to 2 messages"):
        writer.send(b"3", timeout=0.05)
    assert writer.unanswered == 2
    with pytest.raises(TimeoutError):
        writer.close(timeout=0.05)
    assert writer.closed


def send_ten_in_vain(writer: Writer, server: ModelServer) -> None:
    """Messages 0 to 9, received by a silent server that is gone then; the next one, at its place, answers."""
    for number in range(10):
        writer.send(b"%d" % number)
    until(lambda: server.received == 10)
    server.stop()
    server.silent = False
    server.start()


def test_in_mode_2_messages_without_a_response_are_sent_again_on_the_next_connection(server: ModelServer):
    server.silent = True
    with Writer("flights", server.writer) as writer:
        send_ten_in_vain(writer, server)
        writer.flush()
        assert stored(server) == [[b"%d" % number] for number in range(10)]


def test_a_response_of_the_next_connection_answers_no_message_of_the_one_before(server: ModelServer):
    """ZeroMQ connects again by itself, maybe before the writer has looked."""
    server.silent = True
    with Writer("flights", server.writer) as writer:
        send_ten_in_vain(writer, server)
        until(lambda: writer._connection.ended)  # what ZeroMQ sends before it notices is lost
        writer.send(b"10")
        until(lambda: server.received > 10)
        writer._connection.socket.poll(60_000)  # its response is there
        writer._take_responses()
        assert writer.unanswered == 11
        writer.flush()
    assert {number for (number,) in stored(server)} == {b"%d" % number for number in range(11)}


def test_a_writer_may_be_there_before_the_server(server: ModelServer):
    server.stop()
    with Writer("flights", server.writer) as writer:
        writer.send(b"early")
        server.start()
        writer.flush()
    assert stored(server) == [[b"early"]]


def test_a_message_may_begin_with_an_empty_frame(server: ModelServer):
    with Writer("flights", server.writer) as writer:
        writer.send(b"")
        writer.send(b"", b"value")
        writer.send(b"", b"", b"")
    assert stored(server) == [[b""], [b"", b"value"], [b"", b"", b""]]


def test_in_mode_1_the_frame_that_answers_a_flush_can_be_read(server: ModelServer):
    with Writer("flights", server.writer, mode=1) as writer:
        assert writer.response(timeout=0.01) is None
        writer.send(b"id", b"last")
        assert writer.response() == b"last"


def test_calls_a_mode_does_not_have_are_an_error_that_says_so(server: ModelServer):
    with Writer("flights", server.writer, mode=0) as writer:
        with pytest.raises(ValueError, match="mode 2 has one"):
            writer.flush()
        with pytest.raises(ValueError, match="in mode 1 each is"):
            writer.response()


def test_several_servers_share_the_messages(server: ModelServer):
    with (
        ModelServer() as other,
        Writer("flights", [server.writer, other.writer], mode=0) as writer,
    ):
        until(lambda: writer.send(b"x") or (server.received > 0 and other.received > 0))
    with pytest.raises(ValueError, match="it takes one address"):
        Writer("flights", [server.writer, server.writer])


@pytest.mark.parametrize("mode", Mode)
def test_a_message_that_the_server_does_not_take_is_refused_before_it_ends_the_connection(
    server: ModelServer, mode: Mode
):
    with Writer("flights", server.writer, mode=mode, max_message=10) as writer:
        with pytest.raises(ValueError, match=r"a message of 11 octets; the server takes 10 \(max_message\)"):
            writer.send(b"12345", b"678901")
        writer.send(b"12345", b"67890")
    until(lambda: stored(server) == [[b"12345", b"67890"]])


def test_an_error_within_the_block_is_not_waited_with(server: ModelServer):
    server.silent = True
    with pytest.raises(KeyError), Writer("flights", server.writer) as writer:
        writer.send(b"x")
        raise KeyError
    assert writer.closed


def test_wrong_arguments_are_refused(server: ModelServer):
    with pytest.raises(InvalidIdentityError):
        Writer("no topic", server.writer)
    with pytest.raises(ValueError, match="queue is 0"):
        Writer("flights", server.writer, queue=0)
    with pytest.raises(ValueError, match="an address to connect to is needed"):
        Writer("flights", [])
    with Writer("flights", server.writer) as writer, pytest.raises(ValueError, match="at least one frame"):
        writer.send()
    with pytest.raises(ValueError, match="the client is closed"):
        writer.send(b"x")
