"""Errors of the WebSocket API."""

from __future__ import annotations

from dafka.protocol.errors import DafkaError


class InvalidForm(DafkaError, ValueError):
    """JSON that stands for no value or message."""


class DuplicateElement(InvalidForm):
    """A set with an element twice, or a table with a key twice."""


class MalformedJson(DafkaError, ValueError):
    """Text that is not JSON. ``name``, ``line`` and ``column`` are what libbroker tells its clients."""

    def __init__(self, name: str, line: int, column: int) -> None:
        self.name, self.line, self.column = name, line, column
        super().__init__(f"{name}({line}, {column})")


class MissingLibrary(DafkaError, ImportError):
    """The package websockets is not installed."""


class WebSocketError(DafkaError, ConnectionError):
    """A WebSocket connection that cannot be opened, or has ended. ``code`` is that of the close frame."""

    def __init__(self, text: str, code: int | None = None) -> None:
        self.code = code
        super().__init__(text)
