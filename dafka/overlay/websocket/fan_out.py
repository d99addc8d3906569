"""Messages as frames, which all clients of a server share: one is written once, however many get it."""

from __future__ import annotations

from collections import OrderedDict

from dafka.hub.pool import BATCHES
from dafka.overlay.values import decode
from dafka.overlay.websocket import limits
from dafka.overlay.websocket.forms.messages import data_octets
from dafka.overlay.websocket.forms.writing import TooManyPieces
from dafka.overlay.websocket.frames import text_frame
from dafka.protocol.errors import MalformedMessage


class FanOut:
    """The frames of the last messages. Hub side."""

    def __init__(self) -> None:
        # By the identity of payloads, which all clients get the same of.
        self._frames: OrderedDict[tuple[int, bytes], tuple[bytes, bytes]] = OrderedDict()
        self._octets = 0

    def frame(self, topic: bytes, payload: bytes) -> bytes:
        """The frame of a message; empty if there is no value in it. Large ones are waited for."""
        key = id(payload), topic
        found = self._frames.get(key)
        if found is not None:
            return found[1]
        if len(payload) > limits.DIRECT_OCTETS:
            frame = BATCHES.run(_frame, topic, payload)
        else:
            try:
                frame = _frame(topic, payload, limits.DIRECT_PIECES)
            except TooManyPieces:
                frame = BATCHES.run(_frame, topic, payload)
        if key not in self._frames:
            self._keep(key, payload, frame)
        return frame

    def _keep(self, key: tuple[int, bytes], payload: bytes, frame: bytes) -> None:
        self._frames[key] = payload, frame
        self._octets += len(frame)
        while len(self._frames) > limits.FRAMES or self._octets > limits.FRAMES_OCTETS:
            _, (_, oldest) = self._frames.popitem(last=False)
            self._octets -= len(oldest)


def _frame(topic: bytes, payload: bytes, most: int | None = None) -> bytes:
    try:
        return text_frame(data_octets(topic, decode(payload), most))
    except MalformedMessage:
        return b""
