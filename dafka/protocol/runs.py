"""Runs: consecutive records of one partition, the unit in which records move through a process.

Per message, Python can afford a microsecond or two. So frames are taken apart only once for each partition:
two RECORDs of one partition differ in the last eight octets of the head (the sequence), and everything
before them is looked up in a table. What a round of reading brought is grouped into runs, and all further
work is per run.
"""

from __future__ import annotations

import struct
from collections import Counter
from typing import NamedTuple

from dafka.protocol.commands import Command, DirectRecord, Record
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import SIGNATURE, VERSION, Framing, decode, string

PREFIXES_LIMIT = 65536  # heads remembered; a flood of made-up partitions empties the table, no more

_U64 = struct.Struct(">Q")


class Run(NamedTuple):
    """Records ``first``, ``first + 1``, ... of the partition ``address``, one content each.

    ``recipient`` is None for RECORDs and the requester's address for DIRECT-RECORDs.
    """

    recipient: bytes | None
    address: bytes
    topic: bytes
    first: int
    contents: list[bytes]

    @property
    def next(self) -> int:
        """The sequence behind the last one."""
        return self.first + len(self.contents)


class Inbound(NamedTuple):
    """What a round of reading brought: fetched runs before published ones, then the other commands."""

    runs: list[Run]
    commands: list[Command]
    discarded: Counter[str]


def encode_run(run: Run, framing: Framing = Framing.LIBDAFKA) -> list[list[bytes]]:
    """The messages of a run, each as its list of frames."""
    topic = b"M" + run.topic if run.recipient is None else b"D" + run.recipient
    fields = string(run.address) + string(run.topic)
    pack = _U64.pack
    numbered = enumerate(run.contents, run.first)
    if framing is Framing.LIBDAFKA:
        head = topic + b"\0" + VERSION + fields
        return [[head + pack(sequence), content] for sequence, content in numbered]
    head = SIGNATURE + topic[:1] + VERSION + fields
    return [[topic, head + pack(sequence), content] for sequence, content in numbered]


class _Stream(NamedTuple):
    recipient: bytes | None
    address: bytes
    topic: bytes


class RunReader:
    """Turns messages into runs and commands, remembering the heads it has seen."""

    def __init__(self) -> None:
        self._streams: dict[bytes, _Stream] = {}

    def read(self, messages: list[list[bytes]]) -> Inbound:
        """Sort a round of messages. What is malformed is counted by its cause."""
        groups: dict[bytes, tuple[_Stream, list[bytes], list[bytes]]] = {}
        singles: list[Run] = []
        commands: list[Command] = []
        discarded: Counter[str] = Counter()
        for frames in messages:
            # Heads with fields of their own are told apart by their length: 2 frames libdafka, 3 rfc46.
            count = len(frames)
            if count == 2:
                head = frames[0]
                prefix = head[:-8]
            elif count == 3:
                head = frames[1]
                prefix = frames[0] + b"\0rfc46" + head[:-8]
            else:
                self._other(frames, commands, discarded)
                continue
            group = groups.get(prefix)
            if group is None:
                stream = self._streams.get(prefix)
                if stream is None:
                    stream = self._learn(prefix, frames, singles, commands, discarded)
                    if stream is None:
                        continue
                group = groups[prefix] = (stream, [], [])
            group[1].append(head[-8:])
            group[2].append(frames[-1])
        runs = singles
        for stream, sequences, contents in groups.values():
            _cut(stream, sequences, contents, runs)
        runs.sort(key=_is_live)
        return Inbound(runs, commands, discarded)

    def _other(self, frames: list[bytes], commands: list[Command], discarded: Counter[str]) -> None:
        try:
            commands.append(decode(frames))
        except MalformedMessage as error:
            discarded[error.cause] += 1

    def _learn(
        self,
        prefix: bytes,
        frames: list[bytes],
        singles: list[Run],
        commands: list[Command],
        discarded: Counter[str],
    ) -> _Stream | None:
        """Decode a message with an unknown head in full; its stream if the head is one to remember."""
        try:
            command = decode(frames)
        except MalformedMessage as error:
            discarded[error.cause] += 1
            return None
        if not isinstance(command, (Record, DirectRecord)):
            commands.append(command)
            return None
        recipient = command.recipient if isinstance(command, DirectRecord) else None
        stream = _Stream(recipient, command.address, command.topic)
        if not frames[-2].endswith(string(command.topic) + _U64.pack(command.sequence)):
            # Octets behind the last field are legal, but the short cut would take them for the sequence.
            singles.append(Run(*stream, command.sequence, [command.content]))
            return None
        if len(self._streams) >= PREFIXES_LIMIT:
            self._streams.clear()
        self._streams[prefix] = stream
        return stream


def _is_live(run: Run) -> bool:
    return run.recipient is None


def _cut(stream: _Stream, sequences: list[bytes], contents: list[bytes], runs: list[Run]) -> None:
    """Append the runs of one partition: its messages, cut where sequences are not consecutive."""
    numbers = struct.unpack(f">{len(sequences)}Q", b"".join(sequences))
    first = numbers[0]
    if numbers[-1] - first == len(numbers) - 1 and numbers == tuple(range(first, first + len(numbers))):
        runs.append(Run(*stream, first, contents))
        return
    start = 0
    for position in range(1, len(numbers) + 1):
        if position == len(numbers) or numbers[position] != numbers[position - 1] + 1:
            runs.append(Run(*stream, numbers[start], contents[start:position]))
            start = position
