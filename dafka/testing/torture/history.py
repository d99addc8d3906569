"""The history of a run: the calls of the clients in their order, and what each of them was told.

It has the calls that faults may meet, and those with which members leave: calls that depend on the time
(heartbeats, fetches that found nothing) are left out. It is bounded: the oldest calls are forgotten.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from dafka.broker.interface.broker import TopicPartition
from dafka.testing.torture.plan import Fault

CALLS_KEPT = 100_000

NOTHING = "nothing"  # said to a client whose answer was lost
NO_OFFSETS: Mapping[TopicPartition, tuple[int, int]] = {}


class Call(NamedTuple):
    """A call of a client.

    ``at``: seconds since the broker started, when it was answered. ``number``: of the call at its point.
    ``told``: "ok", the name of an error, or "nothing". ``done``: whether it was carried out, whatever the
    client was told. ``offsets`` by partition: the first one and the one behind the last, of the records
    that were written or read; for commits the committed offset twice. ``group``: for commits.
    """

    at: float
    client: str
    point: str
    number: int
    told: str
    done: bool
    offsets: Mapping[TopicPartition, tuple[int, int]] = NO_OFFSETS
    fault: Fault | None = None
    group: str = ""

    @property
    def operation(self) -> str:
        """The first word of the point."""
        return self.point.partition(" ")[0]


class History:
    """The calls, and the faults among them. Written in the hub, read from any thread."""

    def __init__(self, kept: int = CALLS_KEPT, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._began = clock()
        self._calls: deque[Call] = deque(maxlen=kept)
        self._faults: deque[Fault] = deque(maxlen=kept)
        self.written = 0  # calls, the forgotten ones included

    @property
    def complete(self) -> bool:
        """Whether nothing was forgotten."""
        return self.written == len(self._calls)

    def add(
        self,
        client: str,
        point: str,
        number: int,
        told: str,
        done: bool,
        offsets: Mapping[TopicPartition, tuple[int, int]] = NO_OFFSETS,
        fault: Fault | None = None,
        group: str = "",
    ) -> None:
        """Note a call."""
        at = self._clock() - self._began
        self._calls.append(Call(at, client, point, number, told, done, offsets, fault, group))
        self.written += 1

    def happens(self, fault: Fault) -> None:
        """Note a fault, when it happens."""
        self._faults.append(fault)

    def calls(self) -> list[Call]:
        """All that are kept, the first one first."""
        return list(self._calls)

    def faults(self) -> list[Fault]:
        """The faults that have happened, the first one first."""
        return list(self._faults)


ROWS_BEFORE, ROWS_BEHIND = 12, 4


def around(calls: list[Call], position: int | None) -> list[Call]:
    """The calls around one; the last ones, for None."""
    if position is None:
        return calls[-(ROWS_BEFORE + ROWS_BEHIND) :]
    return calls[max(position - ROWS_BEFORE, 0) : position + ROWS_BEHIND + 1]


def table(calls: Iterable[Call]) -> str:
    """Calls as a table: a row for each, by time, with a column for each client."""
    rows = list(calls)
    clients = list(dict.fromkeys(call.client for call in rows))
    cells = [["ms", *clients]]
    for call in rows:
        row = [f"{call.at * 1000:.0f}"] + [""] * len(clients)
        row[1 + clients.index(call.client)] = described(call)
        cells.append(row)
    widths = [max(len(row[column]) for row in cells) for column in range(len(clients) + 1)]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in cells
    )


def described(call: Call) -> str:
    """A call in a few words."""
    words = [f"{call.point} #{call.number}" if call.number else call.point]
    for (topic, number), (first, end) in call.offsets.items():
        if call.group:
            words.append(f"{topic}-{number}@{first}")
        else:
            words.append(f"[{first}..{end - 1}]" if end - first > 1 else f"[{first}]")
    if call.told != "ok":
        words.append(f"told {call.told}")
    if call.fault is not None:
        words.append(f"<{call.fault.kind}>")
    return " ".join(words)
