"""The errors every layer shares."""

from __future__ import annotations


class DafkaError(Exception):
    """Base of all errors that are Dafka's own."""


class MalformedMessage(DafkaError, ValueError):
    """A malformed message. Receivers discard it and count it by ``cause``."""

    def __init__(self, cause: str, detail: str = "") -> None:
        self.cause = cause
        super().__init__(f"{cause}: {detail}" if detail else cause)


class TooDeepError(DafkaError, ValueError):
    """A text in which brackets are nested deeper than anything that is read."""
