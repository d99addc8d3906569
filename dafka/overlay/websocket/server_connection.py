"""The server's side of one connection: octets in, events and octets out.

The HTTP request is read as a whole before the protocol sees it. Octets behind it in the same segment are
taken after the answer.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection
from http import HTTPStatus
from urllib.parse import urlsplit

from websockets.datastructures import MultipleValuesError
from websockets.http11 import Request
from websockets.protocol import State
from websockets.server import ServerProtocol

from dafka.overlay.websocket import limits
from dafka.overlay.websocket.frames import Event, Frames, Opened, output_of, protocol_log
from dafka.overlay.websocket.tokens import Check, bearer

PATH = "/v1/messages/json"
_WRONG_PATH = f'caf::sec::invalid_argument("invalid path; try {PATH}")'


class ServerConnection:
    """A connection that a client has opened.

    ``origins`` are those of web pages that may connect, such as ``https://example.org``; None stands for all.
    Pages from the host that is connected to may if it is an address or localhost: a name could be anybody's.
    ``admits``: whether a client with this token may; None: everybody may.
    """

    def __init__(self, origins: Collection[str] | None = (), admits: Check | None = None) -> None:
        self._admits = admits
        self._protocol = ServerProtocol(max_size=limits.MESSAGE_OCTETS, logger=protocol_log)
        self._frames = Frames(self._protocol)
        self._origins = origins
        self._request: bytearray | None = bytearray()  # until it is complete

    @property
    def held(self) -> int:
        """Octets of what is not complete yet."""
        return len(self._request or b"") + self._frames.held

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._protocol.state is State.OPEN

    def receive(self, octets: bytes) -> list[Event]:
        """The events in octets from the client."""
        events: list[Event] = []
        if self._request is not None:
            self._request += octets
            octets = self._take_request(events)
        if octets:
            self._protocol.receive_data(octets)
        return events + self._frames.taken()

    def receive_eof(self) -> list[Event]:
        """The client will send nothing more."""
        self._request = None
        self._protocol.receive_eof()
        return self._frames.taken()

    def let_go(self) -> None:
        """Forget what is not complete."""
        self._request = None
        self._frames.let_go()

    def take_output(self) -> bytes:
        """The octets to send to the client now."""
        return output_of(self._protocol)

    def fail(self, code: int, reason: str) -> list[Event]:
        """Close the connection; the reason is cut to what a close frame holds."""
        self._request = None
        self._frames.fail(code, reason)
        return self._frames.taken()

    def _take_request(self, events: list[Event]) -> bytes:
        """Answer the request if it is complete. Returns the octets behind it."""
        request = self._request
        assert request is not None
        if not request[:3].isalpha():
            self._request = None
            self._frames.fail(1002, "no HTTP request")  # a client that speaks TLS would wait for an answer
            return b""
        end = request.find(b"\r\n\r\n")
        if end < 0 or end > limits.REQUEST_OCTETS:
            if len(request) > limits.REQUEST_OCTETS:
                most = f"a request takes at most {limits.REQUEST_OCTETS} octets"
                self._refuse(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, most)
            return b""
        self._request = None
        self._protocol.receive_data(bytes(request[: end + 4]))
        for event in self._protocol.events_received():
            if isinstance(event, Request):
                self._answer(event)
        if not self.is_open:
            return b""
        events.append(Opened())
        return bytes(request[end + 4 :])

    def _answer(self, request: Request) -> None:
        if request.path != PATH:
            self._refuse(HTTPStatus.BAD_REQUEST, _WRONG_PATH)
        elif not self._is_from_here(request):
            self._refuse(HTTPStatus.FORBIDDEN, "pages of this origin may not connect to this server")
        elif self._admits is not None and not self._admits(_token_of(request)):
            self._refuse(HTTPStatus.UNAUTHORIZED, "this server wants a valid token: Authorization: Bearer")
        else:
            self._protocol.send_response(self._protocol.accept(request))

    def _refuse(self, status: HTTPStatus, text: str) -> None:
        self._request = None
        response = self._protocol.reject(status, text)
        if status is HTTPStatus.UNAUTHORIZED:
            response.headers["WWW-Authenticate"] = "Bearer"
        self._protocol.send_response(response)

    def _is_from_here(self, request: Request) -> bool:
        try:
            origin, host = request.headers.get("Origin"), request.headers.get("Host")
        except MultipleValuesError:
            return False
        if origin is None or self._origins is None or origin in self._origins:
            return True
        try:
            page, here = urlsplit(origin).hostname, urlsplit(f"//{host}").hostname
        except ValueError:
            return False
        return page is not None and page == here and _is_nobodys(page)


def _token_of(request: Request) -> str:
    try:
        return bearer(request.headers.get("Authorization"))
    except MultipleValuesError:
        return ""


def _is_nobodys(host: str) -> bool:
    """Whether a host is named so that nobody else could have it point here."""
    if host == "localhost":
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True
