"""Outputs of a role for its surroundings, besides commands and runs to publish.

Lists of contents in outputs may be shared with other roles and with what was received: nobody changes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from dafka.protocol.beacons import NodeBeacon
from dafka.protocol.commands import Command, DirectHead
from dafka.protocol.runs import Run


class Subscribe(NamedTuple):
    """Subscribe the SUB socket to a prefix: the ID octet of a command and (the start of) a ZeroMQ topic."""

    prefix: bytes


class Unsubscribe(NamedTuple):
    """Take one :class:`Subscribe` of the same role back."""

    prefix: bytes


class Deliver(NamedTuple):
    """Consumer to user: the next records of a partition, in order, without gaps, none twice."""

    topic: bytes
    address: bytes
    first: int
    contents: list[bytes]


class Gap(NamedTuple):
    """Consumer to user: records ``first`` .. ``next - 1`` no longer exist; delivery goes on at ``next``."""

    topic: bytes
    address: bytes
    first: int
    next: int


class Append(NamedTuple):
    """Store to log: write these next; answer with ``stored`` after the commit or with ``not_stored``."""

    topic: bytes
    address: bytes
    first: int
    contents: list[bytes]


class Begin(NamedTuple):
    """Store to log: the partition goes on at ``first``; the records between cannot be had from anybody.

    The next :class:`Append` starts there, above where the log stands. None is under way when this comes. It
    is said again when that append fails.
    """

    topic: bytes
    address: bytes
    first: int


class Serve(NamedTuple):
    """Store to log: send ``count`` committed records from ``first`` on to ``recipient`` as DIRECT-RECORDs.

    When the log finds ``first`` gone (retention was quicker, or there is a hole from a :class:`Begin`), the
    recipient is to be told with TRIMMED where the records go on, or it asks for ever.
    """

    recipient: bytes
    topic: bytes
    address: bytes
    first: int
    count: int  # type: ignore[assignment]  # hides tuple.count, as the wire names it


class TellHeads(NamedTuple):
    """From a store to its publisher: ``recipient`` is to get all the ``heads``, some at a time.

    They are those of ``topic``, as it was asked for; a newer request of the same replaces it. Each head is
    what is committed when it is taken from the iterator, and what is deleted by then is left out.
    """

    recipient: bytes
    topic: bytes
    heads: Iterator[DirectHead]


class Hold(NamedTuple):
    """There is no room for these published records, the next of their partition.

    An endpoint that can keep them gives them again when there is room, and before anything that was sent
    behind them. One that cannot tells the role of the head instead: then they are fetched.
    """

    run: Run


class HearAnswers(NamedTuple):
    """Nobody answers a FETCH of this partition: hear its producer, if its answers were not heard so far."""

    address: bytes


class Connect(NamedTuple):
    """Connect the SUB socket to a peer's publisher, ``tcp://host:port``."""

    endpoint: bytes


class Disconnect(NamedTuple):
    """Undo :class:`Connect`."""

    endpoint: bytes


Output = (
    Command
    | Run
    | Subscribe
    | Unsubscribe
    | Deliver
    | Gap
    | Append
    | Begin
    | Serve
    | TellHeads
    | Hold
    | HearAnswers
    | NodeBeacon
    | Connect
    | Disconnect
)
