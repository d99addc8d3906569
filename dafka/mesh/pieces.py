"""Runs as pieces: records that are made as they are taken, and how far they were.

Ctrl-C may end any call of a program's, and the program may read on, as in a notebook. A generator would be
over then, with its rest. So records come from loops in C, and how many are left is told by one of these.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from operator import length_hint
from typing import Any, NamedTuple

from dafka.mesh.address import address_name, topic_name
from dafka.mesh.record import BatchError, Made, Record, batch_records, is_batch, raw_records
from dafka.roles.outputs import Deliver

log = logging.getLogger(__name__)


class Piece(NamedTuple):
    """Raw messages that follow each other, or one record batch."""

    records: Iterator[Record]
    left: Any  # whose length hint says how many of them are left
    run: Deliver | None = None  # that it is of
    behind: int = 0  # the place in the run where the next piece begins
    partition: str = ""
    first: int = 0
    end: int = 0
    """The sequences of its messages, ``end`` not included."""

    @property
    def left_over(self) -> int:
        """How many records are left."""
        return length_hint(self.left)

    @property
    def position(self) -> int:
        """Where to go on behind the records that were taken: of a batch that is taken in part, at it."""
        return self.end - min(self.left_over, self.end - self.first)


NOTHING = Piece(iter(()), ())
_new = tuple.__new__  # of a NamedTuple, without the call in Python that its class makes of it


def next_piece(run: Deliver, place: int, *, newest: bool = False) -> Piece:
    """The piece of a run that begins at this place. ``newest``: its last record alone."""
    # A producer sends one kind of message, raw or batches, as long as it lives: the first of a run tells.
    if not is_batch(run.contents[0]):
        behind = len(run.contents)
        contents = run.contents[place:] if place else run.contents
        made = raw_records(run.topic, run.address, run.first + place, contents)
    else:
        behind = place + 1
        made = _of_one(run, place)
    if newest:
        last = iter(list(deque(made.records, maxlen=1)))
        made = Made(last, last)
    first = run.first
    return _new(Piece, (*made, run, behind, address_name(run.address), first + place, first + behind))


def _of_one(run: Deliver, place: int) -> Made:
    content, sequence = run.contents[place], run.first + place
    if not is_batch(content):  # a producer that does not keep to one kind; nothing is lost for that
        return raw_records(run.topic, run.address, sequence, [content])
    try:
        return batch_records(run.topic, run.address, sequence, content)
    except BatchError as error:
        log.warning(
            "%s partition %s: message %d is dropped: %s",
            topic_name(run.topic),
            address_name(run.address),
            sequence,
            error,
        )
        return Made(iter(()), ())
