"""Topics, and what the bindings take for one or for several."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from dafka.overlay.values.containers import octets_of

SEPARATOR = "/"


class Topic:
    """A topic, or the prefix of topics."""

    __slots__ = ("_text",)

    def __init__(self, text: str | bytes) -> None:
        if not isinstance(text, (str, bytes)):
            raise TypeError(f"a topic is a str, not {type(text).__name__}")
        octets_of(text)
        self._text = text.decode("utf-8", "surrogateescape") if isinstance(text, bytes) else text

    def string(self) -> str:
        return self._text

    def __truediv__(self, other: object) -> Topic:
        """Both, with one ``/`` between them where neither has it, and none at the end."""
        if not isinstance(other, Topic):
            return NotImplemented
        between = SEPARATOR if self._text and other._text and not other._text.startswith(SEPARATOR) else ""
        joined = self._text + between + other._text
        return Topic(joined[: -len(SEPARATOR)] if joined.endswith(SEPARATOR) else joined)

    def __itruediv__(self, other: object) -> Topic:
        if not isinstance(other, Topic):
            return NotImplemented
        self._text = (self / other)._text
        return self

    def __repr__(self) -> str:
        return self._text


AnyTopic: TypeAlias = "Topic | str | bytes"


def topic_text(topic: AnyTopic) -> str:
    """The text of what stands for a topic. Raises TypeError for anything else."""
    return (topic if isinstance(topic, Topic) else Topic(topic)).string()


def topic_texts(topics: AnyTopic | Iterable[AnyTopic]) -> list[str]:
    """The texts of one topic or of several. Raises TypeError for anything else."""
    if isinstance(topics, (Topic, str, bytes)):
        return [topic_text(topics)]
    return [topic_text(topic) for topic in topics]
