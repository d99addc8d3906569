"""A request that is sent again until it is answered, or until its time is over."""

from __future__ import annotations

import pytest

from dafka.zper.clients.asking import ask
from dafka.zper.clients.errors import ConnectionLostError, NoResponseError


class Line:
    """A connection that gives these responses, one to each request: a message, an end, or silence."""

    addresses = ("tcp://a", "tcp://b")

    def __init__(self, *responses: list[bytes] | type[BaseException] | None, room: bool = True) -> None:
        self._responses = list(responses)
        self._room = room
        self.sent: list[list[bytes]] = []
        self.opened = 0
        self.is_asked = False

    def try_send(self, request: list[bytes]) -> bool:
        self.sent.append(request)
        return self._room

    def receive(self, deadline: object) -> list[bytes] | None:
        response = self._responses.pop(0)
        if response is None or isinstance(response, list):
            return response
        raise response

    def reopen(self, deadline: object) -> None:
        self.opened += 1
        self.is_asked = False
        self._room = True


REQUEST = [b"NODES", b"x"]


def test_the_response_is_returned_and_the_connection_is_kept() -> None:
    line = Line([b"\x64"])
    assert ask(line, REQUEST, 30.0, "ZPReader") == [b"\x64"]  # type: ignore[arg-type]
    assert (line.sent, line.opened) == ([REQUEST], 0)


def test_a_request_whose_connection_ends_is_sent_again_on_a_new_one() -> None:
    line = Line(ConnectionLostError, ConnectionLostError, [b"\x64"])
    assert ask(line, REQUEST, 30.0, "ZPReader") == [b"\x64"]  # type: ignore[arg-type]
    assert (line.sent, line.opened) == ([REQUEST] * 3, 2)


def test_a_socket_without_room_is_opened_anew() -> None:
    line = Line([b"\x64"], room=False)
    assert ask(line, REQUEST, None, "ZPReader") == [b"\x64"]  # type: ignore[arg-type]
    assert (line.sent, line.opened) == ([REQUEST] * 2, 1)


def test_silence_is_an_error_with_all_names_and_a_late_response_answers_nothing() -> None:
    line = Line(None)
    said = r"^ZPReader at tcp://a, tcp://b, topic t: no response to NODES in 30\.0 s$"
    with pytest.raises(NoResponseError, match=said):
        ask(line, REQUEST, 30.0, "ZPReader", ", topic t")  # type: ignore[arg-type]
    assert line.opened == 1


def test_connections_that_end_again_and_again_end_with_the_time() -> None:
    line = Line(*[ConnectionLostError] * 3)
    with pytest.raises(NoResponseError, match=r"ZPController at .* in 0 s"):
        ask(line, REQUEST, 0, "ZPController")  # type: ignore[arg-type]
    assert len(line.sent) == 1


def test_the_response_to_a_request_whose_wait_ctrl_c_has_ended_answers_no_other() -> None:
    line = Line(KeyboardInterrupt, [b"\x64"], [b"\x65"])
    with pytest.raises(KeyboardInterrupt):
        ask(line, REQUEST, 30.0, "ZPReader")  # type: ignore[arg-type]
    assert ask(line, [b"PEERS"], 30.0, "ZPReader") == [b"\x64"]  # type: ignore[arg-type]
    assert (line.sent, line.opened) == ([REQUEST, [b"PEERS"]], 1)
    assert ask(line, REQUEST, 30.0, "ZPReader") == [b"\x65"]  # type: ignore[arg-type]
    assert line.opened == 1
