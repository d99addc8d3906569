"""The errors every layer shares."""

from __future__ import annotations


class DafkaError(Exception):
    """Base of all errors that are Dafka's own."""


class MalformedMessage(DafkaError, ValueError):
    """Bytes that are no message of the protocol. Receivers discard them and count them by ``cause``."""

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        super().__init__(f"{cause}: {detail}" if detail else cause)
