"""Messages between controllers, as frames without the envelope.

A node asks every other node that its configuration names, once in a while::

    NODE | {"node": {...}, "have": {"generation": 3, "version": 1708}}

and is answered with a status and::

    {"node": {...},
     "topics": {"generation": 3, "since": 1708, "version": 1711, "changed": [["flights", 0, 4711], ...]}}

``node`` describes the node itself (:class:`Node`). Each change of a topic has a version: a node that knows
the topics up to version 1708 is told those that have changed since, some at a time. When the generation
differs from the one it knows, it drops what it knows and begins anew: topics were deleted, or the node was
restarted.

Anybody who reaches the port can send these messages, so every size is bounded and every type is checked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from dafka.protocol.errors import MalformedMessage
from dafka.protocol.json_text import read_json
from dafka.zper import commands
from dafka.zper.cluster import limits
from dafka.zper.commands import Status

NODE = b"NODE"
_NUMBER = 2**63


class InvalidNodeError(MalformedMessage):
    """A message between controllers that has a wrong shape."""


class Node(NamedTuple):
    """How a node describes itself."""

    id: str
    """The same after a restart."""
    started: int
    """Milliseconds since 1970."""
    sequence: int
    """Number of the description; a larger one is newer, until the node is restarted."""
    binds: dict[str, str]
    """The address of each of its servers."""
    topics: int
    """How many it has."""
    health: dict[str, int]
    """Figures by their names."""


class Have(NamedTuple):
    """Up to where one node knows the topics of another."""

    generation: int = -1
    version: int = 0


class Changes(NamedTuple):
    """Topics that have changed."""

    generation: int
    since: int
    """The version that these changes follow; 0: all topics."""
    version: int
    """The version that the receiver knows afterwards."""
    changed: list[tuple[str, int, int]]
    """Topic, first position, end."""


def question(node: Node, have: Have) -> list[bytes]:
    return [NODE, _encoded({"node": node._asdict(), "have": have._asdict()})]


def answer(node: Node, topics: Changes) -> list[bytes]:
    return [commands.status(Status.OK), _encoded({"node": node._asdict(), "topics": topics._asdict()})]


def read_question(arguments: Sequence[bytes]) -> tuple[Node, Have]:
    """Raises :class:`InvalidNodeError`."""
    if len(arguments) != 1:
        raise InvalidNodeError("argument-count", f"NODE with {len(arguments)} arguments; it takes 1")
    document = _document(arguments[0], limits.QUESTION)
    have = _dict(document, "have")
    return _node(document), Have(_number(have, "generation", -1), _number(have, "version"))


def read_answer(frames: Sequence[bytes]) -> tuple[Node, Changes]:
    """Raises :class:`InvalidNodeError`."""
    if len(frames) != 2 or frames[0] != commands.status(Status.OK):
        raise InvalidNodeError("answer", f"{len(frames)} frames, the first {bytes(frames[0][:8])!r}")
    document = _document(frames[1], limits.ANSWER)
    topics = _dict(document, "topics")
    changed = topics.get("changed")
    if not isinstance(changed, list) or len(changed) > limits.CHANGES:
        raise InvalidNodeError("changed", f"a list of {limits.CHANGES} topics at most is wanted")
    since, version = _number(topics, "since"), _number(topics, "version")
    return _node(document), Changes(_number(topics, "generation"), since, version, list(map(_topic, changed)))


def encode_for_client(document: Mapping[str, Any]) -> list[bytes]:
    return [commands.status(Status.OK), _encoded(document)]


def _encoded(document: Mapping[str, Any]) -> bytes:
    return json.dumps(document, separators=(",", ":")).encode()


def _document(octets: bytes, most: int) -> dict[str, Any]:
    if len(octets) > most:
        raise InvalidNodeError("size", f"{len(octets)} octets, at most {most} are taken")
    try:
        document = read_json(octets)
    except ValueError as error:  # also of octets that are not UTF-8
        raise InvalidNodeError("json", str(error)[: limits.TEXT]) from None
    if not isinstance(document, dict):
        raise InvalidNodeError("json", f"a JSON object is wanted, not {type(document).__name__}")
    return document


def _node(document: dict[str, Any]) -> Node:
    node = _dict(document, "node")
    binds, health = _dict(node, "binds"), _dict(node, "health")
    if max(len(binds), len(health)) > limits.FIGURES:
        raise InvalidNodeError("figures", f"at most {limits.FIGURES} are taken")
    return Node(
        _text(node.get("id"), "id"),
        _number(node, "started"),
        _number(node, "sequence"),
        {_text(name, "binds"): _text(address, name) for name, address in binds.items()},
        _number(node, "topics"),
        {_text(name, "health"): _number(health, name, -_NUMBER) for name in health},
    )


def _topic(entry: Any) -> tuple[str, int, int]:
    if not isinstance(entry, list) or len(entry) != 3:
        raise InvalidNodeError("changed", "a topic is its name, its first position and its end")
    name, first, end = entry
    positions = {"first": first, "end": end}
    return _text(name, "topic"), _number(positions, "first"), _number(positions, "end")


def _dict(document: dict[str, Any], name: str) -> dict[str, Any]:
    found = document.get(name)
    if not isinstance(found, dict):
        raise InvalidNodeError(name, f"a JSON object is wanted, not {type(found).__name__}")
    return found


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= limits.TEXT or not value.isprintable():
        raise InvalidNodeError(
            "text", f"{what[: limits.TEXT]}: 1 to {limits.TEXT} printable characters are wanted"
        )
    return value


def _number(document: Mapping[str, Any], name: str, least: int = 0) -> int:
    value = document.get(name)
    if type(value) is not int or not least <= value < _NUMBER:
        raise InvalidNodeError("number", f"{name[: limits.TEXT]}: a whole number of 64 bits, {least} or more")
    return value
