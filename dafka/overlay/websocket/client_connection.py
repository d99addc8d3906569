"""The client's side of one connection: octets in, events and octets out."""

from __future__ import annotations

from websockets.client import ClientProtocol
from websockets.exceptions import InvalidStatus, InvalidURI
from websockets.protocol import State
from websockets.uri import WebSocketURI, parse_uri

from dafka.overlay.websocket import limits
from dafka.overlay.websocket.frames import Ended, Event, Frames, Opened, output_of, protocol_log


class ClientConnection:
    """A connection to ``url``, such as ``ws://127.0.0.1:9997/v1/messages/json``, maybe with a token.

    Raises ValueError.
    """

    def __init__(self, url: str, token: str | None = None) -> None:
        uri = uri_of(url)
        self._protocol = ClientProtocol(uri, max_size=limits.FROM_SERVER_OCTETS, logger=protocol_log)
        request = self._protocol.connect()
        if token is not None:
            request.headers["Authorization"] = f"Bearer {token}"
        self._protocol.send_request(request)
        self._frames = Frames(self._protocol)
        self._opened = self._ended = False

    @property
    def held(self) -> int:
        """Octets of what is not complete yet."""
        return self._frames.held

    @property
    def is_open(self) -> bool:
        """Whether messages can be sent."""
        return self._protocol.state is State.OPEN

    def receive(self, octets: bytes) -> list[Event]:
        """The events in octets from the server."""
        if self._protocol.reader.eof:
            return []
        self._protocol.receive_data(octets)
        return self._events()

    def receive_eof(self) -> list[Event]:
        """The server will send nothing more."""
        self._protocol.receive_eof()
        return self._events()

    def send(self, octets: bytes) -> None:
        """Send a message, JSON in UTF-8."""
        self._protocol.send_text(octets)

    def ping(self) -> None:
        """Ask whether the server is there."""
        if self.is_open:
            self._protocol.send_ping(b"")

    def close(self) -> None:
        """Say goodbye."""
        if self.is_open:
            self._protocol.send_close(1000)

    def take_output(self) -> bytes:
        """The octets to send to the server now."""
        return output_of(self._protocol)

    def _events(self) -> list[Event]:
        events: list[Event] = []
        refused = self._protocol.handshake_exc
        if refused is not None:
            if not self._ended:
                self._ended = True
                self._protocol.events_received()
                events.append(Ended(None, _reason(refused)))
            return events
        if not self._opened and self._protocol.state is not State.CONNECTING:
            self._opened = True
            events.append(Opened())
        return events + self._frames.taken()


def uri_of(url: str) -> WebSocketURI:
    """The parts of a URL. Raises ValueError."""
    try:
        return parse_uri(url)
    except (InvalidURI, ValueError) as error:
        wanted = "as ws://127.0.0.1:9997/v1/messages/json"
        raise ValueError(f"{url!r} is not the address of a WebSocket server, {wanted}: {error}") from error


def _reason(error: BaseException) -> str:
    if isinstance(error, InvalidStatus):
        body = bytes(error.response.body or b"")[:200].decode(errors="replace").strip()
        return f"HTTP {error.response.status_code} {error.response.reason_phrase}: {body}".rstrip(": ")
    return f"{error}: {error.__cause__}" if error.__cause__ is not None else str(error)
