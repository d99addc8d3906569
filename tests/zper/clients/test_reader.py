"""Reader: positions, cut messages, streams, and what happens when the connection ends."""

from __future__ import annotations

import threading

import pytest
from timing import until
from zper.model_server import ModelServer

from dafka.protocol.raw import encode_message
from dafka.zper import EARLIEST, LATEST, Reader
from dafka.zper.clients.errors import NoResponseError
from dafka.zper.commands import Fetch, RefusedError, Status

MESSAGES = [[b"%d" % number] * (1 + number % 4) for number in range(200)]


@pytest.fixture
def filled(server: ModelServer) -> ModelServer:
    for message in MESSAGES:
        server.append("flights", *message)
    return server


def test_iterating_gives_all_messages_with_their_positions_and_ends(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        messages = list(reader)
    assert [message.frames for message in messages] == MESSAGES
    end = 0
    for message in messages:
        assert message.position == end
        end += len(encode_message(message.frames))
        assert message.end == end
    assert reader.position == end == len(filled.topics["flights"])


@pytest.mark.parametrize("fetch_size", [*range(1, 12), 100])
def test_messages_that_a_super_frame_cuts_are_put_together(server: ModelServer, fetch_size: int):
    for message in MESSAGES[:20]:
        server.append("flights", *message)
    with Reader("flights", server.reader, fetch_size=fetch_size) as reader:
        assert [message.frames for message in reader] == MESSAGES[:20]


def test_messages_that_lie_in_two_segments_are_put_together(filled: ModelServer):
    filled.segment_size = 7
    with Reader("flights", filled.reader) as reader:
        assert [message.frames for message in reader] == MESSAGES


def test_iterating_again_goes_on_behind_the_last_message(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        assert len(list(reader)) == len(MESSAGES)
        assert list(reader) == []
        filled.append("flights", b"new")
        assert [message.frames for message in reader] == [[b"new"]]


def test_a_position_from_before_is_where_another_reader_begins(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        for message in reader:
            if message.frames[0] == b"77":
                break
    with Reader("flights", filled.reader, position=reader.position) as other:
        assert next(iter(other)).frames[0] == b"78"


def test_the_position_can_be_changed_while_iterating(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        seen = []
        for message in reader:
            seen.append(message.frames[0])
            if message.frames[0] == b"3" and seen.count(b"3") == 1:
                reader.seek(EARLIEST)
            if seen.count(b"3") == 2:
                reader.seek(LATEST)
        assert seen == [b"0", b"1", b"2", b"3", b"0", b"1", b"2", b"3"]


def test_positions_are_asked_for(filled: ModelServer):
    filled.first["flights"] = encode_message(MESSAGES[0]).__len__()
    end = len(filled.topics["flights"])
    filled.segment_size = end // 2 + 1
    with Reader("flights", filled.reader, position=LATEST) as reader:
        assert (reader.earliest(), reader.latest(), reader.position) == (3, end, end)
        assert reader.offsets() == [filled.segment_size, end]
        assert reader.offsets(10**12, 1) == [filled.segment_size, end]
        assert reader.offsets(10**12) == [3, filled.segment_size, end]


def test_messages_in_the_form_of_a_java_server_have_their_own_positions(server: ModelServer):
    java = b"\x00\xff" + b"x" * 255 + b"\x02" + (3).to_bytes(8, "big") + b"abc" + b"\x00\x01y"
    server.extend("flights", java)
    with Reader("flights", server.reader) as reader:
        messages = list(reader)
    assert [message.frames for message in messages] == [[b"x" * 255], [b"abc"], [b"y"]]
    assert [message.position for message in messages] == [0, 257, 269]


def test_a_position_that_does_not_exist_is_an_error_with_the_status(filled: ModelServer):
    with Reader("flights", filled.reader, position=10**9) as reader:
        with pytest.raises(RefusedError, match="no messages at this position") as raised:
            list(reader)
        assert raised.value.status is Status.INVALID_OFFSET
        with pytest.raises(RefusedError):
            next(reader.stream())


def test_a_stream_gives_what_is_there_and_what_comes(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        stream = reader.stream()
        assert [next(stream).frames for _ in MESSAGES] == MESSAGES
        threading.Timer(0.05, filled.append, ["flights", b"new"]).start()
        message = next(stream)
        assert message.frames == [b"new"]
        assert message.end == reader.position == len(filled.topics["flights"])


def test_positions_are_right_in_a_stream_too_where_messages_are_in_another_form(server: ModelServer):
    java = b"\x00\xff" + b"x" * 255 + b"\x00\x01y"
    server.extend("flights", java)
    with Reader("flights", server.reader) as reader:
        stream = reader.stream()
        assert [next(stream).position for _ in range(2)] == [0, 257]
        server.append("flights", b"new")
        assert next(stream).position == len(java)
        server.stop()
        server.append("flights", b"newer")
        server.start()
        assert next(stream).frames == [b"newer"]
        assert reader.position == len(server.topics["flights"])


def test_a_stream_ends_when_nothing_comes(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        assert [message.frames for message in reader.stream(idle=1.0)] == MESSAGES
        assert reader.latest() == len(filled.topics["flights"])


def test_a_reader_whose_stream_was_left_goes_on_behind_the_last_message(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        for number, _ in enumerate(reader.stream()):
            if number == 99:
                break
        assert next(iter(reader)).frames == MESSAGES[100]


def test_a_stream_goes_on_where_it_was_when_the_server_is_there_again(filled: ModelServer):
    with Reader("flights", filled.reader) as reader:
        stream = reader.stream()
        seen = [next(stream).frames for _ in MESSAGES[:50]]
        filled.stop()
        filled.start()
        seen += [next(stream).frames for _ in MESSAGES[50:]]
    assert seen == MESSAGES


def test_a_request_is_asked_again_when_the_connection_ends(filled: ModelServer):
    filled.silent = True
    with Reader("flights", filled.reader) as reader:

        def restart() -> None:
            until(lambda: filled.requests)
            filled.stop()
            filled.silent = False
            filled.start()

        threading.Thread(target=restart).start()
        assert reader.fetch(0, 4) == bytes(filled.topics["flights"][:4])
    assert filled.requests == [Fetch(0, 4), Fetch(0, 4)]


def test_a_reader_may_be_there_before_the_server(filled: ModelServer):
    filled.stop()
    with Reader("flights", filled.reader) as reader:
        threading.Timer(0.1, filled.start).start()
        assert reader.earliest() == 0


def test_no_response_in_time_is_an_error_and_a_late_response_is_not_taken_for_the_next(filled: ModelServer):
    filled.silent = True
    with Reader("flights", filled.reader, timeout=0.5) as reader:
        with pytest.raises(NoResponseError, match=r"topic flights: no response to FETCH in 0.5 s"):
            reader.fetch(0)
        filled.silent = False
        assert reader.latest() == len(filled.topics["flights"])


def test_wrong_arguments_are_refused(server: ModelServer):
    with pytest.raises(ValueError, match="positions are those of one server"):
        Reader("flights", [server.reader, server.reader])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="fetch_size is 0"):
        Reader("flights", server.reader, fetch_size=0)
    with Reader("flights", server.reader) as reader, pytest.raises(ValueError, match="neither is negative"):
        reader.fetch(-5)
    with pytest.raises(ValueError, match="the client is closed"):
        reader.latest()
