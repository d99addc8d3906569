"""Zeek Broker's WebSocket API: ``/v1/messages/json``, as a server of an endpoint and as a client.

Raises :class:`~dafka.overlay.websocket.errors.MissingLibrary` where the package websockets is not installed.
"""

from __future__ import annotations

from dafka.overlay.websocket.errors import InvalidForm, MissingLibrary, WebSocketError

try:
    import websockets as _websockets  # noqa: F401
except ImportError as error:
    raise MissingLibrary("the WebSocket API needs websockets: pip install 'dafka[websocket]'") from error

from dafka.overlay.websocket.client import Client, Message
from dafka.overlay.websocket.forms.messages import Failure

__all__ = ["Client", "Failure", "InvalidForm", "Message", "MissingLibrary", "WebSocketError"]
