"""Questions for the neighbours of a node, which every node of ours answers.

A node knows paths to all peers, but not every link between others. So an observer of the topology
asks each peer for its neighbours, by unicast over any number of hops.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from dafka.overlay.filters import Filter
from dafka.overlay.limits import MOST_CONNECTIONS, MOST_PREFIXES
from dafka.overlay.values import Count, encode
from dafka.overlay.values.containers import octets_of
from dafka.overlay.wire.primitives import ID_OCTETS
from dafka.protocol.errors import MalformedMessage

ASK = b"<$>/dafka/links/ask"
ANSWER = b"<$>/dafka/links/answer"

_VERSION = Count(1)

QUESTION = encode(_VERSION)
"""The payload on :data:`ASK`."""


class Links(NamedTuple):
    """A node's direct peers, and the prefixes of the topics that it wants."""

    neighbours: tuple[bytes, ...]
    filter: Filter


def encode_links(neighbours: Iterable[bytes], filter: Filter) -> bytes:
    """The payload on :data:`ANSWER`."""
    ids = tuple([one.hex() for one in neighbours])[:MOST_CONNECTIONS]
    return encode((_VERSION, ids, tuple([_text(prefix) for prefix in filter[:MOST_PREFIXES]])))


def links_of(value: object) -> Links:
    """Decode an answer. Raises :class:`MalformedMessage`."""
    match value:
        case (1, tuple(ids), tuple(prefixes), *_) if all(type(one) is str for one in (*ids, *prefixes)):
            try:
                neighbours = tuple([bytes.fromhex(one) for one in ids])
            except ValueError as error:
                raise MalformedMessage("links", "an id that is not hexadecimal") from error
            if all(len(one) == ID_OCTETS for one in neighbours):
                return Links(neighbours, tuple([octets_of(prefix) for prefix in prefixes]))
    raise MalformedMessage("links", f"{value!s:.100}")


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")
