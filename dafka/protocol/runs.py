"""Runs: consecutive records of one partition, the unit in which records move through a process.

Per message, Python can afford a microsecond or two. So frames are taken apart only once for each partition:
two RECORDs of one partition differ in the last eight octets of the fields (the sequence), and everything
before them is looked up in a table. The messages of one round of reading are grouped into runs, and all
further work is per run.
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from dafka.protocol.commands import Command, DirectRecord, Record
from dafka.protocol.errors import MalformedMessage
from dafka.protocol.framing import SEQUENCE_LIMIT, SIGNATURE, VERSION, Framing, decode, string, zmq_topic

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
    """The result of one round of reading: fetched runs before published ones, then the other commands."""

    runs: list[Run]
    commands: list[Command]
    discarded: Counter[str]  # messages by the cause that MalformedMessage names


def topic_of(item: Run | Command) -> bytes:
    """The ZeroMQ topic that a command, or the messages of a run, are published under."""
    if not isinstance(item, Run):
        return zmq_topic(item)
    return b"M" + item.topic if item.recipient is None else b"D" + item.recipient


def encode_run(run: Run, framing: Framing = Framing.LIBDAFKA) -> list[list[bytes]]:
    """The messages of a run, each as its list of frames. ValueError for values that do not fit the wire."""
    topic = topic_of(run)
    fields = string(run.address) + string(run.topic)
    pack = _U64.pack
    numbered = enumerate(run.contents, run.first)
    try:
        if framing is Framing.LIBDAFKA:
            head = topic + b"\0" + VERSION + fields
            return [[head + pack(sequence), content] for sequence, content in numbered]
        head = SIGNATURE + topic[:1] + VERSION + fields
        return [[topic, head + pack(sequence), content] for sequence, content in numbered]
    except struct.error as error:
        raise ValueError(f"sequences are numbers of 64 bits, not {run.first} to {run.next - 1}") from error


class RunReader:
    """Turns messages into runs and commands, remembering the heads it has seen."""

    def __init__(self) -> None:
        # By the octets before the sequence; in rfc46 the ZeroMQ topic is a frame of its own.
        self._streams: dict[bytes | tuple[bytes, bytes], Stream] = {}
        self.stream_of: Callable[[bytes], Stream | None] = self._streams.get
        """The stream of the RECORDs read so far with these octets in front of the sequence, in ``libdafka``'s
        framing."""

    def read(self, messages: Sequence[Sequence[bytes]]) -> Inbound:
        """Sort a round of messages. Malformed messages are counted by cause; they raise nothing."""
        groups: dict[bytes | tuple[bytes, bytes], _Group] = {}
        inbound = _Round([], [], [], Counter())
        for frames in messages:
            # RECORD and DIRECT-RECORD have two frames in libdafka and three in rfc46. Other commands of
            # two frames are never in the table.
            count = len(frames)
            if count == 2:
                head = frames[0]
                prefix: bytes | tuple[bytes, bytes] = head[:-8]
            elif count == 3:
                head = frames[1]
                prefix = (frames[0], head[:-8])
            else:
                _read_other(frames, inbound)
                continue
            group = groups.get(prefix)
            if group is None:
                stream = self._streams.get(prefix)
                if stream is None:
                    stream = self._learn(prefix, frames, inbound)
                    if stream is None:
                        continue
                group = groups[prefix] = (stream, [], [])
            group[1].append(head[-8:])
            group[2].append(frames[-1])
        for stream, sequences, contents in groups.values():
            _cut(stream, sequences, contents, inbound)
        return Inbound(inbound.fetched + inbound.published, inbound.commands, inbound.discarded)

    def _learn(
        self, prefix: bytes | tuple[bytes, bytes], frames: Sequence[bytes], inbound: _Round
    ) -> Stream | None:
        """Decode a message with an unknown head in full; its stream if the head is one to remember."""
        command = _decode(frames, inbound)
        if command is None:
            return None
        if not isinstance(command, (Record, DirectRecord)):
            inbound.commands.append(command)
            return None
        recipient = command.recipient if isinstance(command, DirectRecord) else None
        stream = Stream(recipient, command.address, command.topic)
        if not frames[-2].endswith(string(command.topic) + _U64.pack(command.sequence)):
            # Octets behind the last field are legal, but the short cut would take them for the sequence.
            runs = inbound.published if recipient is None else inbound.fetched
            runs.append(Run(*stream, command.sequence, [command.content]))
            return None
        if len(self._streams) >= PREFIXES_LIMIT:
            self._streams.clear()
        self._streams[prefix] = stream
        return stream


class Stream(NamedTuple):
    """The common part of a run's records."""

    recipient: bytes | None
    address: bytes
    topic: bytes


_Group = tuple[Stream, list[bytes], list[bytes]]  # its messages' sequences (eight octets) and contents


class _Round(NamedTuple):
    fetched: list[Run]
    published: list[Run]
    commands: list[Command]
    discarded: Counter[str]


def _decode(frames: Sequence[bytes], inbound: _Round) -> Command | None:
    try:
        return decode(frames)
    except MalformedMessage as error:
        inbound.discarded[error.cause] += 1
        return None


def _read_other(frames: Sequence[bytes], inbound: _Round) -> None:
    command = _decode(frames, inbound)
    if command is not None:
        inbound.commands.append(command)


def _cut(stream: Stream, sequences: list[bytes], contents: list[bytes], inbound: _Round) -> None:
    """Append the runs of one partition: its messages, cut where sequences are not consecutive."""
    runs = inbound.published if stream.recipient is None else inbound.fetched
    recipient, address, topic = stream
    if len(sequences) == 1:
        first = int.from_bytes(sequences[0], "big")
        if first <= SEQUENCE_LIMIT:
            runs.append(Run(recipient, address, topic, first, contents))
        else:
            inbound.discarded["sequence"] += 1
        return
    numbers = struct.unpack(f">{len(sequences)}Q", b"".join(sequences))
    first, last = numbers[0], numbers[-1]
    consecutive = last - first == len(numbers) - 1 and numbers == tuple(range(first, last + 1))
    if consecutive and last <= SEQUENCE_LIMIT:
        runs.append(Run(recipient, address, topic, first, contents))
        return
    start = 0
    for position in range(1, len(numbers) + 1):
        if position == len(numbers) or numbers[position] != numbers[position - 1] + 1:
            # A run that reaches beyond the limit is cut there: messages beyond it are malformed.
            allowed = min(position, start + max(SEQUENCE_LIMIT + 1 - numbers[start], 0))
            if allowed > start:
                runs.append(Run(recipient, address, topic, numbers[start], contents[start:allowed]))
            if allowed < position:
                inbound.discarded["sequence"] += position - allowed
            start = position
